package main

import (
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// walk calls f for each command that users see, the root among them.
func walk(cmd *cobra.Command, f func(*cobra.Command)) {
	f(cmd)
	for _, c := range cmd.Commands() {
		if !c.Hidden && c.Name() != "help" && c.Name() != "completion" {
			walk(c, f)
		}
	}
}

// A flag that several commands have is of one kind, letter and meaning: it is in sharedFlags, or it reads the same in all.
func TestSharedFlagsAreTheSameEverywhere(t *testing.T) {
	type seen struct {
		command string
		flag    *pflag.Flag
	}
	first := map[string]seen{}
	used := map[string]bool{}
	walk(newRoot(), func(cmd *cobra.Command) {
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Hidden || f.Name == "help" || f.Name == "version" {
				return
			}
			of, shared := sharedFlags[f.Name]
			if shared {
				used[f.Name] = true
				if f.Shorthand != of.letter || !strings.HasPrefix(f.Usage, of.usage) {
					t.Errorf("%s --%s: %q, letter %q: the table of shared flags says %q, letter %q", cmd.CommandPath(),
						f.Name, f.Usage, f.Shorthand, of.usage, of.letter)
				}
			}
			if kind, _ := pflag.UnquoteUsage(f); kind != strings.ToUpper(kind) {
				t.Errorf("%s --%s: its value reads %q: give it a word in capitals between backquotes", cmd.CommandPath(), f.Name, kind)
			}
			if f.Value.Type() == "duration" {
				t.Errorf("%s --%s: lengthVar and timeVar say what is wrong with a time; this does not", cmd.CommandPath(), f.Name)
			}
			before, ok := first[f.Name]
			switch {
			case !ok:
				first[f.Name] = seen{cmd.CommandPath(), f}
			case before.flag.Value.Type() != f.Value.Type():
				t.Errorf("--%s is a %s in %s and a %s in %s", f.Name, before.flag.Value.Type(), before.command,
					f.Value.Type(), cmd.CommandPath())
			case !shared && before.flag.Usage != f.Usage && !slices.Contains(differing, f.Name):
				t.Errorf("--%s of %s and of %s read differently: put what is common into sharedFlags", f.Name,
					before.command, cmd.CommandPath())
			}
		})
	})
	for name := range sharedFlags {
		if !used[name] {
			t.Errorf("no command has the shared flag --%s", name)
		}
	}
}

// differing flags have a subject of their own in each command, whose words say which.
var differing = []string{"remedy", "slo-command"}

// Words for lengths, rounds and bounds that the shared flags replaced.
func TestNoOlderSpellingIsShown(t *testing.T) {
	older := []string{"window", "seconds", "fail-above", "repeats", "seeds", "plan", "step"}
	walk(newRoot(), func(cmd *cobra.Command) {
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden && slices.Contains(older, f.Name) {
				t.Errorf("%s shows --%s", cmd.CommandPath(), f.Name)
			}
		})
	})
}

// A command with a result prints it in every form, and a command that writes shows beforehand what it would write.
func TestEachCommandHasTheCommonFlags(t *testing.T) {
	without := []string{"unthrottle", "unthrottle bench", "unthrottle top", "unthrottle agent",
		"unthrottle fleet",  // the flags are the other program's; TestFlags of fleet/cmd/unthrottle-fleet
		"unthrottle spans",  // its result has the form of its input, OTLP
		"unthrottle schema"} // its result is JSON
	dry := []string{"unthrottle apply", "unthrottle fix", "unthrottle defrag", "unthrottle restore", "unthrottle simulate"}
	walk(newRoot(), func(cmd *cobra.Command) {
		for _, name := range []string{"output", "json"} {
			if has := cmd.Flags().Lookup(name) != nil; has == slices.Contains(without, cmd.CommandPath()) {
				t.Errorf("%s --%s: %v", cmd.CommandPath(), name, has)
			}
		}
		if has := cmd.Flags().Lookup("dry-run") != nil; has != slices.Contains(dry, cmd.CommandPath()) {
			t.Errorf("%s --dry-run: %v", cmd.CommandPath(), has)
		}
	})
}

// What is wrong with a value is said in words that tell what to write.
func TestFlagValues(t *testing.T) {
	for _, c := range []struct{ args, says string }{
		{"ls --for 10", "give a time with its unit, such as 10s"},
		{"apply x --remedy burst --burst 10", "give a time with its unit"},
		{"ls -o yaml", "choose text, json or wide"},
		{"ls --bound 105%", "0% to 100%"},
		{"simulate x --repeat a", "give a whole number"},
		{"bench service --steps a", "give a whole number"},
		{"bench service --steps 1", "--steps 1: give 2 to 20"},
		{"bench service --repeat 1", "--repeat 1: give 2 to 50"},
		{"bench service --for 100ms", "--for 100ms: give a time from 1s to 1m"},
		{"bench service --quick=maybe", "give true or false"},
		{"bench service extra", "bench service takes no arguments"},
		{"simulate x --seed -1", "give a whole number from 0 on"},
		{"fix x --yes=perhaps", "give true or false"},
		{"ls --json=perhaps", "give true or false"},
	} {
		root := newRoot()
		root.SetOut(io.Discard)
		root.SetErr(io.Discard)
		root.SetArgs(strings.Fields(c.args))
		if err := root.Execute(); err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "--help'") {
			t.Errorf("%s: %v, want %q in it", c.args, err, c.says)
		}
	}
}

// --json and -o set the same thing; the later one counts.
func TestOutput(t *testing.T) {
	for args, want := range map[string]string{
		"": formatText, "--json": formatJSON, "-o json": formatJSON, "-o wide": formatWide, "-o wide --json": formatJSON,
		"--json -o text": formatText, "--json=false": formatText,
	} {
		var o output
		cmd := &cobra.Command{}
		o.add(cmd)
		if err := cmd.ParseFlags(strings.Fields(args)); err != nil || o.format != want {
			t.Errorf("%q: %q, %v, want %q", args, o.format, err, want)
		}
	}
}

func TestPlainTime(t *testing.T) {
	for d, want := range map[time.Duration]string{
		time.Hour: "1h", 90 * time.Minute: "1h30m", time.Minute: "1m", 90 * time.Second: "1m30s", 1500 * time.Millisecond: "1.5s", 0: "0s",
		10 * time.Hour: "10h", 20 * time.Minute: "20m",
	} {
		if got := plainTime(d); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
}
