package generate

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/demand"
	"github.com/unthrottle/unthrottle/internal/demand/store"
)

// A fleet with churn has all that makes "now" hard, its pods have the names of their kind, and none runs where no node
// is.
func TestChanging(t *testing.T) {
	o := Options{Hosts: 20, Containers: 200, Seed: 3, Start: time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC), Hours: 24,
		Churn: true, Bound: 0.001}
	services, runs, err := draw(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	torn, drained, came, apart, now := 0, 0, 0, 0, make([]int, len(services))
	pods, replaced := map[string]bool{}, map[int]int{}
	ends := map[string]int64{} // of StatefulSets' pods, and of a node's DaemonSets'
	for _, n := range runs.nodes {
		switch {
		case n.torn:
			torn++
		case n.to <= runs.end:
			drained++
		}
		if n.from > 0 {
			came++
		}
		if n.clock > 60 || n.clock < -60 {
			apart++
		}
		for _, l := range n.lives {
			if l.from < n.from || l.to <= l.from || l.from >= n.to {
				t.Errorf("%s runs from %d to %d on a node from %d to %d", l.pod, l.from, l.to, n.from, n.to)
			}
			if min(l.to, n.to) > runs.end {
				now[l.service]++
			} else {
				replaced[kindOf(l.service)]++
			}
			workload, kind := demand.WorkloadOf(l.pod, "")
			want := map[int]string{deployment: demand.Deployment, autoscaled: demand.Deployment,
				statefulSet: demand.StatefulSet, daemonSet: demand.DaemonSetOrJob, cronJob: demand.CronJob}[kindOf(l.service)]
			if kind != want || workload != services[l.service].workload {
				t.Errorf("%s is of %s, a %s", l.pod, workload, kind)
			}
			if kind != demand.StatefulSet && pods[l.pod] {
				t.Errorf("%s is there twice", l.pod)
			}
			pods[l.pod] = true
			if kind == demand.DaemonSetOrJob {
				if ends[n.name+workload] > l.from {
					t.Errorf("two of %s on %s at once", workload, n.name)
				}
				ends[n.name+workload] = l.to
			}
		}
	}
	if torn < 2 || drained < 2 || came < 5 || apart < 2 || len(replaced) != kindsOfService {
		t.Errorf("%d nodes are torn, %d drained, %d came later, %d have other clocks; of kinds %v pods were replaced", torn,
			drained, came, apart, replaced)
	}
	for i := range services {
		if s := &services[i]; now[i] != s.now || now[i] != s.truth.Containers {
			t.Errorf("%s: %d at the end, told %d and %d", s.name, now[i], s.now, s.truth.Containers)
		}
	}
}

// Rows are of what ran, by the clocks of the nodes: within five minutes, in the file of their hour, and as many as told.
func TestRowsOfChurn(t *testing.T) {
	start := time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)
	for _, joined := range []bool{false, true} {
		dir := t.TempDir()
		o := Options{Hosts: 8, Containers: 60, Seed: 3, Start: start, Hours: 5, Churn: true, Bound: 0.001, Drawn: true,
			Joined: joined}
		truth, err := Make(t.Context(), dir, o)
		if err != nil {
			t.Fatal(err)
		}
		files, err := filepath.Glob(filepath.Join(dir, "*", "*", "*", "*.parquet"))
		if err != nil {
			t.Fatal(err)
		}
		rows, parts := 0, 0
		for _, name := range files {
			some, err := store.Read(name)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range some {
				rows++
				ends := r.Began.Add(time.Duration(r.Seconds * float64(time.Second)))
				if r.Seconds < 1 || r.Began.Before(r.Start) || ends.After(r.Start.Add(demand.SlotLength)) ||
					filepath.Dir(store.File(&r)) != filepath.Dir(name[len(dir)+1:]) {
					t.Errorf("%s: %v from %v for %v s", name, r.Start, r.Began, r.Seconds)
				}
				lasted := int64(0)
				for _, l := range r.Width {
					lasted += l.Microseconds
				}
				if off := float64(lasted)/1e6 - r.Seconds; off > 0.001 || off < -0.001 || *r.CandidateSeconds != r.Seconds {
					t.Errorf("%s: its levels are of %v s, its periods of %v, and it of %v", r.Pod, float64(lasted)/1e6,
						*r.CandidateSeconds, r.Seconds)
				}
				if r.Seconds < 300 {
					parts++
				}
			}
		}
		if rows != truth.Rows || parts < 20 || !truth.Until.Equal(start.Add(5*time.Hour)) {
			t.Errorf("joined %v: %d rows, told %d, %d of a part of five minutes, until %v", joined, rows, truth.Rows, parts,
				truth.Until)
		}
		if info, err := os.Stat(filepath.Join(dir, "truth.json")); err != nil || info.Size() == 0 {
			t.Error(err)
		}
	}
}

// A shorter fleet is the beginning of a longer one, so that the truth of a moment is known.
func TestShorterChurnIsItsBeginning(t *testing.T) {
	o := Options{Hosts: 12, Containers: 100, Seed: 1, Start: time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC), Churn: true,
		Bound: 0.001, Drawn: true}
	lives := func(hours int) map[life]bool {
		o.Hours = hours
		_, runs, err := draw(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		all := map[life]bool{}
		for _, n := range runs.nodes {
			for _, l := range n.lives {
				if l.from < 6*secondsPerHour {
					same := *l
					if min(l.to, n.to) > 6*secondsPerHour+secondsPerSlot {
						same.to = never
					}
					all[same] = true
				}
			}
		}
		return all
	}
	short, long := lives(6), lives(9)
	if len(short) < 100 || len(short) != len(long) {
		t.Fatalf("%d containers, and %d", len(short), len(long))
	}
	for l := range short {
		if !long[l] && l.to != never {
			t.Errorf("%+v is not in the longer one", l)
		}
	}
}
