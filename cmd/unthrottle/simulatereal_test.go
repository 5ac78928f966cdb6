package main

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/unthrottle/unthrottle/internal/load/cgrouptest"
	"github.com/unthrottle/unthrottle/internal/scenario"
)

// The contract of simulate --real --json: the same keys as simulate --json.
func TestRun(t *testing.T) {
	t.Parallel()
	tree := cgrouptest.New(t)
	tree.Make("inner") // on v2: makes the top hand its controllers on
	const text = "version: 1\nhost: {cpus: 1}\ncgroups: {app: {quota: 20ms}}\nworkloads: {burner: {kind: burn, cgroup: app}}\n"
	ran := runIn(t.Context(), t, text, "simulate", "-", "--real", "--json", "--for", "500ms", "--parent", tree.Top)
	real := decoded[scenario.Outcome](t, ran, 0)
	simulated := runIn(t.Context(), t, strings.Replace(text, "version: 1\n", "version: 1\nduration: 500ms\n", 1), "simulate", "-", "--json")
	if a, b := jsonKeys("", decoded[any](t, ran, 0)), jsonKeys("", decoded[any](t, simulated, 0)); !slices.Equal(a, b) {
		t.Errorf("real %q\nsimulated %q", a, b)
	}
	for _, key := range []string{".simulated", ".era", ".cgroup_mode", ".notes", ".cgroups.app.width", ".workloads.burner.p99_ms"} {
		if !slices.Contains(jsonKeys("", decoded[any](t, ran, 0)), key) {
			t.Errorf("no %s", key)
		}
	}
	if app := real.Cgroups["app"]; app.ThrottledPeriods == 0 || app.ThrottledPeriods > app.Periods || app.UsageSeconds <= 0 {
		t.Errorf("a thread that burns under 0.2 CPUs was not throttled: %+v", app)
	}
}

// jsonKeys are the paths of all keys of objects, those in arrays left out.
func jsonKeys(path string, v any) (all []string) {
	object, _ := v.(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(object)) {
		all = append(all, path+"."+key)
		all = append(all, jsonKeys(path+"."+key, object[key])...)
	}
	return all
}

func TestRunRefuses(t *testing.T) {
	const good = "version: 1\nhost: {cpus: 1}\nworkloads: {w: {kind: burn, start: 1s}}\n"
	for _, test := range []struct {
		code  int
		input string
		want  string
		args  []string
	}{
		{3, "version: 1\nhost: {cpus: 1024}\nworkloads: {w: {kind: burn}}\n", "the scenario needs 1024 CPUs", nil},
		{2, "version: 1\nhost: {cpus: 1, cores: 2}\nworkloads: {w: {kind: burn}}\n", "unknown key \"cores\"", nil},
		{2, good, "--for 0s: give a time", []string{"--for", "0s"}},
		{2, good, "--for -1s", []string{"--for", "-1s"}},
		{2, good, "w starts at 1s only", []string{"--for", "500ms"}},
		{2, good, "--repeat 0", []string{"--repeat", "0"}},
		{2, good, "--parent is empty", []string{"--parent", ""}},
	} {
		r := runIn(t.Context(), t, test.input, append([]string{"simulate", "-", "--real"}, test.args...)...)
		if r.code != test.code || !strings.Contains(r.errors, test.want) {
			t.Errorf("%q: exit code %d, %s", test.want, r.code, r.errors)
		}
	}
	for _, args := range [][]string{{"simulate", "--real"}, {"simulate", "a.yaml", "--fair"},
		{"simulate", "a.yaml", "--real", "--timeline"}, {"bench", "latency", "--for", "0s"},
		{"bench", "fibtest", "--repeat", "-1"}, {"bench", "fibtest", "--parent", ""}} {
		if r := unthrottle(t, args...); r.code != 2 || r.errors == "" {
			t.Errorf("%q: %d %s", args, r.code, r.errors)
		}
	}
}
