package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/unthrottle/unthrottle/internal/cure/remedy"
)

// A flag that is empty, most likely from a variable that is not set, is no flag
// left out; one that would be passed over in silence is refused.
func TestFlagsThatCannotBeMeant(t *testing.T) {
	state := t.TempDir()
	for _, tc := range []struct{ args, says string }{
		{"apply x --remedy=", "--remedy is empty"},
		{"apply x --remedy pin --reserve=", "--reserve is empty"},
		{"apply x --remedy pin --class=", "--class is empty"},
		{"apply x --remedy narrow --via=", "--via is empty"},
		{"apply x --remedy secondary --slo=", "--slo is empty"},
		{"apply x --remedy secondary --slo-command=", "--slo-command is empty"},
		{"fix x --remedy=", "--remedy is empty"},
		{"fix x --reserve=", "--reserve is empty"},
		{"fix x --slo= --slo-command=", "--slo is empty"},
		{"fix x --slo-command=", "--slo-command is empty"},
		{"defrag --dry-run --reserve=", "--reserve is empty"},
		{"restore x --scope=", "--scope is empty"},
		{"ls --watch --bound 5%", "--watch and --bound: give one of them"},
		{"status --scope /", "unknown flag: --scope"},
		{"defrag --dry-run --pause 0s", "--pause 0s: must be above 0"},
		{"defrag --dryrun", "unknown flag: --dryrun; did you mean --dry-run?"},
		{"fix x --for 10", `--for "10": give a time with its unit`},
		{"defrag --dry-run --scope /no/such/cgroup", "--scope /no/such/cgroup: there is no such cgroup"},
		{"apply x --remedy pin --lift-below /no/such/cgroup", "--lift-below /no/such/cgroup: there is no such cgroup"},
		{"fix x --lift-below /no/such/cgroup", "--lift-below /no/such/cgroup: there is no such cgroup"},
		{"agent --config /no/such/file", "/no/such/file: no such file"},
	} {
		got := unthrottle(t, append(strings.Fields(tc.args), "--state-dir", state)...)
		if strings.HasPrefix(tc.args, "ls ") {
			got = unthrottle(t, strings.Fields(tc.args)...)
		}
		if got.code != exitFailure || !strings.Contains(got.errors, tc.says) || got.out != "" {
			t.Errorf("%s: exit code %d, want 2; %q, want %q in it; %q", tc.args, got.code, got.errors, tc.says, got.out)
		}
	}
}

// An empty flag of the agent is refused before anything begins, also with --check; so is that of check.
func TestEmptyFlagsOfAgentAndCheck(t *testing.T) {
	for _, flag := range []string{"answers", "pods", "node", "budget-cpu", "budget-memory", "scope", "state-dir", "lift-below"} {
		for _, args := range [][]string{{"agent", "--config", "/no/such/file"}, {"agent", "--check", "--config", "/no/such/file"}} {
			if _, err := called(append(args, "--"+flag+"=")...); err == nil || !strings.Contains(err.Error(), "--"+flag+" is empty") {
				t.Errorf("%v --%s=: %v", args, flag, err)
			}
		}
	}
	if _, err := called("check", "--state-dir="); err == nil || !strings.Contains(err.Error(), "--state-dir is empty") {
		t.Errorf("check --state-dir=: %v", err)
	}
}

// A flag that another one has to go with, or that says nothing about what is named, is refused: its user believes that it counts.
func TestFlagsThatWouldDoNothing(t *testing.T) {
	recording := filepath.Join(t.TempDir(), "cart")
	if err := os.WriteFile(recording, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ args, says string }{
		{"status --limit 5", "--limit goes with --history"},
		{"place --containers x --max-moves 3", "--max-moves goes with --score"},
		{"explain x --flight-dir /x", "--flight-dir goes with --at"},
		{"explain " + recording + " --for 30s", "--for is for a container that runs"},
		{"forecast " + recording + " --for 30s", "--for is for a container that runs"},
		{"forecast --all --pools", "--pools is of one container"},
		{"bench service --url http://127.0.0.1:1/ --fair", "--url and --fair: give one of them"},
	} {
		if _, err := called(strings.Fields(c.args)...); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q in it", c.args, err, c.says)
		}
	}
}

// A flag of apply is a setting of a remedy, or in this list of those that go with any remedy, or with none. A flag
// in neither would be taken with each remedy, and have no effect.
func TestFlagsOfApplyAreSettings(t *testing.T) {
	common := []string{"remedy", "system", "dry-run", "for", "output", "json", "scope", "state-dir", "lift-below", "verbose",
		"slo", "slo-command", "slo-look-back"}
	settings := map[string]remedy.Setting{}
	for _, s := range remedy.Settings() {
		settings[s.Flag] = s
	}
	cmd := commandOf(newRoot(), "apply")
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		_, setting := settings[f.Name]
		switch {
		case setting && slices.Contains(common, f.Name):
			t.Errorf("apply --%s is a setting of a remedy: take it off the list of this test", f.Name)
		case !setting && !slices.Contains(common, f.Name) && f.Name != "help":
			t.Errorf("apply --%s is a setting of no remedy: name it in the Settings of each remedy that has it", f.Name)
		}
	})
	for _, name := range slices.Concat(common, slices.Collect(maps.Keys(settings))) {
		if cmd.Flags().Lookup(name) == nil {
			t.Errorf("apply has no flag --%s", name)
		}
	}
}

// A number of 0 or an empty text stands for a setting that was not given, so that people cannot give it.
func TestNothingIsNoSetting(t *testing.T) {
	for _, s := range remedy.Settings() {
		var f remedyFlags
		cmd := new(cobra.Command)
		f.add(cmd)
		flag := cmd.Flags().Lookup(s.Flag)
		if flag == nil || flag.Value.Type() == "bool" {
			continue
		}
		nothing := "0"
		if kind := flag.Value.Type(); kind == "string" || kind == new(word).Type() {
			nothing = ""
		}
		if err := errors.Join(cmd.Flags().Set("remedy", string(s.Of[0])), cmd.Flags().Set(s.Flag, nothing)); err != nil {
			continue // refused as it is read
		}
		if err := errors.Join(f.rejectEmptyFlags(cmd), f.validateFlags(cmd)); err == nil ||
			!strings.Contains(err.Error(), "--"+s.Flag+" ") {
			t.Errorf("--%s=%s: %v: refuse it in rejectEmptyFlags or validateFlags", s.Flag, nothing, err)
		}
	}
}

// An interrupt hides nothing that its error says beside.
func TestInterruption(t *testing.T) {
	for _, tc := range []struct {
		err  error
		want string
	}{
		{context.Canceled, "interrupted"},
		{exitWith{exitNotMeasurable, context.Canceled}, "interrupted"},
		{fmt.Errorf("%w; and the rollback is incomplete: run unthrottle restore", context.Canceled),
			"interrupted; and the rollback is incomplete: run unthrottle restore"},
		{errors.Join(context.Canceled, errors.New("undoing it: refused")), "interrupted\nundoing it: refused"},
		{silent{errors.New("half of it is done")}, "interrupted: half of it is done"},
	} {
		if got := interruption(tc.err); got != tc.want {
			t.Errorf("%q, want %q", got, tc.want)
		}
		if code := exitCode(tc.err, true); code != exitInterrupted {
			t.Errorf("%q: exit code %d", tc.want, code)
		}
	}
}

// silent is an interrupt that does not say so.
type silent struct{ error }

func (silent) Is(target error) bool { return target == context.Canceled }
