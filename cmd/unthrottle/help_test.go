package main

import (
	"bytes"
	"encoding/json"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/unthrottle/unthrottle/internal/text"
)

// called is what a call within this process prints, and its error.
func called(args ...string) (string, error) {
	var out bytes.Buffer
	root := newRoot()
	root.SetOut(&out)
	root.SetErr(io.Discard)
	root.SetArgs(args)
	err := root.Execute()
	return out.String(), err
}

// Each help has an example whose flags the command has.
func TestEveryHelpHasExamples(t *testing.T) {
	flag := regexp.MustCompile(`--?[a-z][a-z-]*`)
	walk(newRoot(), func(cmd *cobra.Command) {
		if cmd.Example == "" {
			t.Errorf("%s has no example", cmd.CommandPath())
		}
		for _, line := range strings.Split(cmd.Example, "\n") {
			call, _, _ := strings.Cut(strings.TrimSpace(line), "   ")
			_, args, ok := strings.Cut(call, "unthrottle")
			if !ok {
				t.Errorf("%s: %q is no call", cmd.CommandPath(), line)
				continue
			}
			args = regexp.MustCompile(`'[^']*'`).ReplaceAllString(args, "''")
			command, _, err := cmd.Root().Find(strings.Fields(args))
			if err != nil || cmd.HasParent() && command != cmd && command.Parent() != cmd {
				t.Errorf("%s: %q is a call of %s, %v", cmd.CommandPath(), line, command.CommandPath(), err)
			}
			for _, word := range strings.Fields(args) {
				name := flag.FindString(word)
				if name == "" || !strings.HasPrefix(word, name) {
					continue
				}
				known := command.Flags().Lookup(strings.TrimLeft(name, "-"))
				if !strings.HasPrefix(name, "--") {
					known = command.Flags().ShorthandLookup(strings.TrimPrefix(name, "-"))
				}
				if known == nil || known.Hidden {
					t.Errorf("%s: there is no %s in %q", cmd.CommandPath(), name, line)
				}
			}
		}
		for _, line := range strings.Split(cmd.Long+"\n"+cmd.Example, "\n") {
			if text.Width(line) > 80 {
				t.Errorf("%s: a line of its help has %d columns: %s", cmd.CommandPath(), text.Width(line), line)
			}
		}
		if help := cmd.Long + cmd.Short + cmd.UsageString(); regexp.MustCompile(`seed 0`).MatchString(help) {
			t.Errorf("%s: its help has an insider's name", cmd.CommandPath())
		}
	})
}

// The program alone lists the commands of a first month, and 'help all' every one.
func TestFewCommandsAndAll(t *testing.T) {
	listed := func(args ...string) (names []string) {
		out, err := called(args...)
		if err != nil {
			t.Fatal(err)
		}
		for _, of := range regexp.MustCompile(`(?m)^  ([a-z-]+) {2,}\S`).FindAllStringSubmatch(out, -1) {
			if of[1] != "unthrottle" && of[1] != "help" { // cobra lists help anyway
				names = append(names, of[1])
			}
		}
		slices.Sort(names)
		return names
	}
	few := slices.Sorted(slices.Values(firstMonth))
	if len(few) > 12 {
		t.Errorf("%d commands are no few", len(few))
	}
	var all []string
	for _, c := range newRoot().Commands() {
		if !c.Hidden {
			all = append(all, c.Name())
		}
	}
	for call, want := range map[string][]string{"": few, "--help": few, "help": few, "help all": all} {
		got := listed(strings.Fields(call)...)
		if call == "help all" {
			for _, name := range want {
				if name != "help" && !slices.Contains(got, name) {
					t.Errorf("help all does not list %s", name)
				}
			}
		} else if !slices.Equal(got, want) {
			t.Errorf("unthrottle %s lists %v, want %v", call, got, want)
		}
	}
}

func TestHelpOfWhatIsNotThere(t *testing.T) {
	for _, c := range []struct{ args, says string }{
		{"help nonsense", `unknown command "nonsense"`},
		{"help bench servce", "did you mean service?"},
		{"bench servce", "did you mean service?"},
		{"bench foo", `unknown command "bench foo"`},
		{"rstore", "did you mean restore?"},
		{"apply x --remedy brust", "did you mean burst?"},
		{"simulate nope.yaml", "nope.yaml: no such file"},
		{"place --containers nope.yaml", "nope.yaml: no such file"},
		{"agent --config nope.yaml", "nope.yaml: no such file"},
		{"topology --sysfs /no/such", "/no/such: no such file"},
		{"restore a b", "one TARGET at most"},
	} {
		if _, err := called(strings.Fields(c.args)...); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q in it", c.args, err, c.says)
		}
	}
	if out, err := called("help", "bench", "service"); err != nil || !strings.Contains(out, "unthrottle bench service") {
		t.Errorf("help bench service: %v, %q", err, out)
	}
}

// No line of a flag is wider than the terminal, and none is lost.
func TestHelpFits(t *testing.T) {
	for _, columns := range []int{60, 80, 100} {
		walk(newRoot(), func(cmd *cobra.Command) {
			cmd.SetUsageTemplate(wrapFlags((&cobra.Command{}).UsageTemplate(), columns))
			usage := cmd.UsageString()
			_, flags, _ := strings.Cut(usage, "\nFlags:\n")
			for _, line := range strings.Split(flags, "\n") {
				if text.Width(line) > columns && len(strings.Fields(line)) > 1 { // a word is kept whole
					t.Errorf("%s: %d columns in %d: %s", cmd.CommandPath(), text.Width(line), columns, line)
				}
			}
			cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
				if !f.Hidden && !strings.Contains(usage, "--"+f.Name) {
					t.Errorf("%s: no --%s in its help", cmd.CommandPath(), f.Name)
				}
			})
		})
	}
}

// A user other than root has a journal of their own: that nothing is in force there says nothing about root's.
func TestWhoseJournal(t *testing.T) {
	f := writeFlags{stateDir: "/home/x/.local/state/unthrottle"}
	if note := f.whose(1000, false); !strings.Contains(note, f.stateDir) || !strings.Contains(note, systemStateDir) {
		t.Errorf("%q", note)
	}
	if f.whose(0, false) != "" || f.whose(1000, true) != "" {
		t.Error("a note for root, or beside a folder that was named")
	}
}

// A folder that is not there tells nothing of what is in force.
func TestStateDirThatIsNotThere(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "smal")
	for _, command := range []string{"status", "restore"} {
		r := unthrottle(t, command, "--state-dir", missing)
		if r.code != exitFailure || r.out != "" || !strings.Contains(r.errors, "no such folder") {
			t.Errorf("%s: %+v", command, r)
		}
	}
}

func TestVersion(t *testing.T) {
	out, err := called("version")
	if err != nil || !strings.HasPrefix(out, "unthrottle ") || !strings.Contains(out, "Go  ") || !strings.Contains(out, "6.18") {
		t.Errorf("%v, %q", err, out)
	}
	var b build
	out, err = called("version", "--json")
	if err != nil || json.Unmarshal([]byte(out), &b) != nil || b.Go == "" || len(b.KernelsTried) == 0 {
		t.Errorf("%v, %q", err, out)
	}
	before := version
	defer func() { version = before }()
	for described, want := range map[string]struct {
		release, commit string
		modified        bool
	}{
		"dev":                      {},
		"v0.3.1":                   {release: "v0.3.1"},
		"0.3.1~rc1":                {release: "0.3.1~rc1"},
		"v0.3.1-4-g0123abc":        {"v0.3.1-4-g0123abc", "0123abc", false},
		"0123abc":                  {commit: "0123abc"},
		"v0.3.1-4-g0123abcd-dirty": {"v0.3.1-4-g0123abcd-dirty", "0123abcd", true},
	} {
		version = described
		b := thisBuild()
		if release := b.Release; (release == nil) != (want.release == "") || release != nil && *release != want.release {
			t.Errorf("%s: release %v", described, release)
		}
		if want.commit != "" && (b.Commit == nil || b.Modified == nil) {
			t.Errorf("%s: no commit", described)
		}
	}
}
