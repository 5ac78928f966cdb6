package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
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
		{"defrag --dryrun", "unknown flag: --dryrun; did you mean --dry-run?"},
		{"fix x --for 10", `--for "10": give a time with its unit`},
		{"defrag --dry-run --scope /no/such/cgroup", "--scope /no/such/cgroup: there is no such cgroup"},
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
