package simulate

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unthrottle/unthrottle/internal/scenario"
)

// What the simulator lacks is refused, and named; nothing is left out silently.
func TestUnmodelled(t *testing.T) {
	_, err := Run(parseText(t, file("cpus: 2", "a: {quota: 50ms}", "j: {kind: jvm, cgroup: a}")), Options{})
	part := new(Unmodelled)
	if !errors.As(err, &part) || part.Key != "workloads.j.kind" || !strings.Contains(err.Error(), "unthrottle simulate --real") {
		t.Errorf("a JVM: %v", err)
	}
	s := parseText(t, file("cpus: 2", "a: {quota: 50ms}", "w: {kind: sleep-run, cgroup: a, run: 1ms, sleep: 9ms}"))
	s.Workloads[0].Kind = "no-such-kind"
	_, err = Run(s, Options{})
	if !errors.As(err, &part) || part.Key != "workloads.w.kind" || !strings.Contains(part.What, "no-such-kind") {
		t.Errorf("a kind that the simulator does not know: %v", err)
	}
}

// Every scenario of the folder runs here, but for the one with a real JVM.
func TestScenariosRun(t *testing.T) {
	files, err := filepath.Glob("../../../examples/scenarios/*.yaml")
	if err != nil || len(files) < 10 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		s, err := scenario.Parse(file, data)
		if err != nil {
			t.Error(err)
			continue
		}
		s.Duration = min(s.Duration, 2e9)
		part := new(Unmodelled)
		_, err = Run(s, Options{Seed: 1})
		if refused := errors.As(err, &part); refused != (filepath.Base(file) == "jvm.yaml") || err != nil && !refused {
			t.Errorf("%s: %v", file, err)
		}
	}
}
