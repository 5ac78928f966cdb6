package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/experiment/capacity"
)

// A setting is in force until it is put back, and one that the kernel does not have says so.
func TestSettings(t *testing.T) {
	file := filepath.Join(t.TempDir(), "slice")
	if err := os.WriteFile(file, []byte("5000\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	is := func() string {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	back, err := setting{name: "slice", file: file, value: "1000"}.apply()
	if err != nil || is() != "1000" {
		t.Fatalf("%v; it is %q", err, is())
	}
	if err := back(); err != nil || is() != "5000" {
		t.Errorf("%v; then %q", err, is())
	}
	if _, err := (setting{name: "slice", file: file + "x", value: "1"}).apply(); err == nil || !strings.Contains(err.Error(), "this kernel has no such setting") {
		t.Errorf("error: %v", err)
	}
	if _, err := settingOf("nonsense"); err == nil {
		t.Error("there is a setting nonsense")
	}
	for _, name := range append(settingNames(), "") {
		if s, err := settingOf(name); err != nil || s.name != name || s.file == "" && s.beside == nil && name != "" {
			t.Errorf("%q: %+v, %v", name, s, err)
		}
	}
}

// Other containers use the share of the host that is said.
func TestNeighbours(t *testing.T) {
	p := withSetting(small, capacity.Shard, capacity.Quota, fullHost, comparedLevel, 1)
	s, err := neighbours(0.9)(p, cpuset.New(1, 2, 3, 4, 5, 6, 7))
	if err != nil {
		t.Fatal(err)
	}
	w := s.Workloads[0]
	if on, off := w.On.Seconds(), w.Off.Seconds(); s.Host.CPUs != small.CPUs || w.Threads != small.CPUs-1 || on/(on+off) < 0.899 || on/(on+off) > 0.901 {
		t.Errorf("%+v", w)
	}
}

// Three services spike on all CPUs at the same time, or one after the other, each within its limit.
func TestSpikes(t *testing.T) {
	p := withSetting(small, capacity.Shard, capacity.Quota, "spikes-apart", comparedLevel, 1)
	for _, later := range []time.Duration{0, 80 * time.Millisecond} {
		s, err := spikes(later)(p, cpuset.New(1, 2, 3, 4, 5, 6, 7))
		if err != nil {
			t.Fatal(err)
		}
		if len(s.Workloads) != 3 {
			t.Fatalf("%d workloads", len(s.Workloads))
		}
		for i, w := range s.Workloads {
			limit := s.Cgroups[w.Cgroup].Limit.CPUs()
			if w.Threads != small.CPUs-1 || w.Start != time.Duration(i)*later || limit != float64(small.Limit) || w.On.Seconds()*float64(w.Threads) > 0.1*limit {
				t.Errorf("%+v under %g CPUs", w, limit)
			}
		}
	}
}

// The plan has each tunable once, and a piece with a setting is no piece of another stage.
func TestTunablesAreInThePlan(t *testing.T) {
	want := map[string]bool{}
	for _, name := range settingNames() {
		want[name] = true
	}
	stagesOf := 0
	for _, s := range stages() {
		if s.covers(withSetting(small, capacity.Shard, capacity.Quota, fullHost, comparedLevel, 1)) {
			stagesOf++
		}
		for _, p := range s.next(&records{failed: map[piece]int{}}) {
			if p.Remedy != capacity.Quota || p.Setting == "" {
				continue
			}
			if !want[p.Setting] {
				t.Errorf("%v: it is there twice", p)
			}
			delete(want, p.Setting)
		}
	}
	if len(want) > 0 || stagesOf != 1 {
		t.Errorf("missing %v; %d stages have it", want, stagesOf)
	}
}
