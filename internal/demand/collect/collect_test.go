package collect

import (
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/demand"
	"github.com/unthrottle/unthrottle/internal/demand/store"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/objective"
	"github.com/unthrottle/unthrottle/internal/see/observe"
	"github.com/unthrottle/unthrottle/internal/see/probe/counts"
	"github.com/unthrottle/unthrottle/internal/txn"
)

var noon = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

// round is of so many containers: the first has a number by the probe, which has no room for the others.
func round(at time.Time, containers int) (all []observe.Observation) {
	for i := range containers {
		path := "/" + string(rune('a'+i))
		o := observe.Observation{Container: container.Container{Name: path, Group: cgroup.Group{Path: path}},
			Start: at, Window: time.Second, UsedCPUs: new(0.5)}
		if i == 0 {
			o.CgroupID = 7
		}
		all = append(all, o)
	}
	return all
}

// What was observed is in the folder once, the slot under way too, with the remedy in force.
func TestSink(t *testing.T) {
	dir := t.TempDir()
	s := New(Options{Dir: dir, Names: demand.Names{Node: "n"}, InForce: func() ([]txn.InForce, error) {
		return []txn.InForce{{Target: "/b", Remedy: "burst"}}, nil
	}})
	for i := range 700 { // two slots, and a third of the next
		s.Round(round(noon.Add(time.Duration(i)*time.Second), 3))
	}
	written, err := s.Close(round(noon, 3))
	if err != nil || written != 9 {
		t.Fatalf("%d rows, %v", written, err)
	}
	rows, err := store.Read(filepath.Join(dir, "cluster=unknown", "date=2026-11-25", "hour=12", "n.parquet"))
	if err != nil || len(rows) != 9 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	seconds := 0.0
	for _, r := range rows {
		seconds += r.Seconds
		if (r.Remedy == "burst") != (r.Container == "/b") {
			t.Errorf("%s: %q", r.Container, r.Remedy)
		}
	}
	if seconds != 2100 {
		t.Errorf("%v seconds", seconds)
	}
	if again, err := s.Close(nil); again != 9 || err != nil {
		t.Errorf("closed twice: %d, %v", again, err)
	}
}

// Rows per period come from another goroutine.
func TestPeriods(t *testing.T) {
	var rows []demand.Row
	s := New(Options{Dir: "x", write: func(_ string, of []demand.Row) error { rows = append(rows, of...); return nil }})
	s.Feed(true)
	limited := func(i int) []observe.Observation {
		all := round(noon.Add(time.Duration(i)*time.Second), 1)
		all[0].Levels = []cgroup.Level{{Path: "/a", Limit: cgroup.Limit{Quota: 100 * time.Millisecond, Period: 100 * time.Millisecond}}}
		return all
	}
	s.Round(limited(0))
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 100 {
			s.Period(counts.PeriodRow{Cgroup: 1, LengthNS: 1e8, MeanWidth: 1.5, MostWidth: 3})
		}
	}()
	for i := range 10 {
		s.Round(limited(1 + i))
	}
	<-done
	s.Feed(false)
	s.Feed(true)
	s.Period(counts.PeriodRow{Cgroup: 1, LengthNS: 1e8, MeanWidth: 9, MostWidth: 9}) // no round has told of it since
	if _, err := s.Close(nil); err != nil || len(rows) != 1 || rows[0].CandidateSeconds != nil {
		t.Errorf("%v: %+v", err, rows)
	}
}

// A disk that is full for a while loses nothing, and one that stays full is told.
func TestSinkTriesAgain(t *testing.T) {
	full := errors.New("no space left on device")
	for name, fails := range map[string]int{"for a while": 1, "for ever": 1 << 30} {
		var mu sync.Mutex
		var got []demand.Row
		told := 0
		s := New(Options{Dir: "x", Failed: func(error) { mu.Lock(); told++; mu.Unlock() }, write: func(_ string, rows []demand.Row) error {
			mu.Lock()
			defer mu.Unlock()
			if fails > 0 {
				fails--
				return full
			}
			got = append(got, rows...)
			return nil
		}})
		for i := range 3 {
			s.Round(round(noon.Add(time.Duration(i)*demand.SlotLength), 2))
		}
		written, err := s.Close(nil)
		if name == "for ever" {
			if !errors.Is(err, full) || written != 0 || told == 0 {
				t.Errorf("%s: %d rows, %v, told %d times", name, written, err, told)
			}
			continue
		}
		if err != nil || written != 6 || len(got) != 6 || told != 1 {
			t.Errorf("%s: %d rows, %v, got %d, told %d times", name, written, err, len(got), told)
		}
	}
}

// The rows that wait are bounded, and what is lost is counted.
func TestSinkIsBounded(t *testing.T) {
	s := New(Options{Dir: "x", write: func(string, []demand.Row) error { return errors.New("no") }})
	for range 3 {
		s.hand(make([]demand.Row, maxWaiting/2+1))
	}
	if _, err := s.Close(nil); err == nil || s.Lost() == 0 {
		t.Errorf("%v, lost %d", err, s.Lost())
	}
}

// memoryFS is cgroups of which only the memory is known.
type memoryFS struct {
	cgroup.FS
	files map[string]string
}

func (f memoryFS) Version(c cgroup.Controller) (cgroup.Version, bool) {
	return cgroup.V2, c == cgroup.Memory
}

func (f memoryFS) Read(_ cgroup.Controller, path, file string) (string, error) {
	if text, ok := f.files[path+"/"+file]; ok {
		return text, nil
	}
	return "", errors.New("no such file")
}

// Rows have the host's CPUs and memory, and what each container may need: its limit, or its use where the limit is
// none.
func TestHostAndMemory(t *testing.T) {
	files := map[string]string{}
	for path, limit := range map[string]string{"/a": "max", "/b": "3000", "/c": "99999999"} {
		files[path+"/memory.max"], files[path+"/memory.current"], files[path+"/memory.stat"] = limit, "2000", "inactive_file 500"
	}
	var kept []demand.Row
	s := New(Options{FS: memoryFS{files: files}, write: func(_ string, rows []demand.Row) error { kept = rows; return nil },
		Proc: fstest.MapFS{"meminfo": {Data: []byte("MemTotal: 10 kB\n")},
			"stat": {Data: []byte("cpu 1 2 3 4 5 6 7 8\ncpu0 1 2 3 4 5 6 7 8\ncpu5 1 2 3 4 5 6 7 8\n")}}})
	s.Round(round(noon, 4))
	if _, err := s.Close(round(noon, 4)); err != nil || len(kept) != 4 {
		t.Fatalf("%d rows, %v", len(kept), err)
	}
	for i, want := range []int64{1500, 3000, 1500, 0} {
		r := kept[i]
		if r.HostCPUs == nil || *r.HostCPUs != 2 || r.HostMemoryBytes == nil || *r.HostMemoryBytes != 10240 {
			t.Errorf("%s: host %v, %v", r.Container, r.HostCPUs, r.HostMemoryBytes)
		}
		if (r.MemoryBytes != nil) != (want > 0) || want > 0 && *r.MemoryBytes != want {
			t.Errorf("%s: %v, want %d", r.Container, r.MemoryBytes, want)
		}
	}
	bare := New(Options{write: func(_ string, rows []demand.Row) error { kept = rows; return nil }})
	bare.Round(round(noon, 1))
	if _, err := bare.Close(nil); err != nil || kept[0].HostCPUs != nil || kept[0].HostMemoryBytes != nil || kept[0].MemoryBytes != nil {
		t.Errorf("of nothing: %+v, %v", kept[0], err)
	}
}

// weightFS is a host of cgroup v1 of which only weights are known.
type weightFS struct {
	cgroup.FS
	shares map[string]string
}

func (f weightFS) Version(cgroup.Controller) (cgroup.Version, bool) { return cgroup.V1, true }

func (f weightFS) Read(_ cgroup.Controller, path, _ string) (string, error) {
	if text, ok := f.shares[path]; ok {
		return text, nil
	}
	return "", errors.New("no such file")
}

// Each container's row has its own request and objective, whether the probe counts it or not. What a cgroup had that ended in
// the slot under the path of one that runs is not known.
func TestRequestAndObjective(t *testing.T) {
	var kept []demand.Row
	s := New(Options{FS: weightFS{shares: map[string]string{"/a": "512", "/b": "1024", "/c": "2048"}},
		Objective: func(c container.Container) objective.Objective {
			return objective.Objective{Quantile: 0.9, Bound: time.Duration(c.Name[1]-'a'+1) * time.Millisecond}
		},
		write: func(_ string, rows []demand.Row) error { kept = rows; return nil }})
	pods := func(at time.Time, n int) []observe.Observation {
		all := round(at, n)
		for i := range all {
			all[i].Container.Pod = "pod"
		}
		return all
	}
	s.Round(pods(noon, 3))
	again := pods(noon.Add(time.Second), 3)
	again[0].CgroupID++
	s.Round(again)
	if _, err := s.Close(again); err != nil || len(kept) != 4 {
		t.Fatalf("%d rows, %v", len(kept), err)
	}
	for i, want := range []float64{0, 0.5, 1, 2} {
		request, bound := 0.0, int64(0)
		if r := kept[i]; r.RequestCPUs != nil {
			request, bound = *r.RequestCPUs, *r.ObjectiveMicroseconds
		}
		if request != want || bound != []int64{0, 1000, 2000, 3000}[i] {
			t.Errorf("%s from %v on: %v CPUs, %d us, want %v", kept[i].Container, kept[i].Began, request, bound, want)
		}
	}
}

// Older files go as rows come, and what there is and what went is told.
func TestOlderFilesGo(t *testing.T) {
	dir := t.TempDir()
	var told []store.Kept
	now := noon.Add(time.Hour)
	s := New(Options{Dir: dir, Names: demand.Names{Node: "n\x1b"}, Keep: store.Keep{For: 3 * time.Hour},
		Now:  func() time.Time { return now },
		Kept: func(k store.Kept) { told = append(told, k) }})
	for h := range 6 {
		at := noon.Add(time.Duration(h-5) * time.Hour)
		if err := store.Write(dir, []demand.Row{
			{Schema: demand.SchemaVersion, Start: at, Began: at, Node: `n\x1b`, Container: "old", Cgroup: 9}}); err != nil {
			t.Fatal(err)
		}
	}
	s.Round(round(noon, 3))
	written, err := s.Close(nil)
	files, globErr := filepath.Glob(filepath.Join(dir, "*", "*", "*", "*"))
	if err != nil || globErr != nil || written != 3 || len(files) != 3 {
		t.Fatalf("%d rows, %v; %q", written, err, files)
	}
	if kept := s.Kept(); kept.Removed != 3 || !kept.From.Equal(noon.Add(-2*time.Hour)) || kept.Bytes == 0 ||
		len(told) != 1 || told[0] != kept {
		t.Errorf("%+v, told %+v", kept, told)
	}
}

// A container that ended in the slot has its remedy in its row as long as the journal has it in force.
func TestRemedyOfAContainerThatEnded(t *testing.T) {
	var rows []demand.Row
	s := New(Options{Dir: "x", write: func(_ string, of []demand.Row) error { rows = append(rows, of...); return nil },
		InForce: func() ([]txn.InForce, error) {
			return []txn.InForce{{Target: "/b", Remedy: "burst"}}, nil
		}})
	s.Round(round(noon, 3))
	for i := range 2 * 300 { // only the first one goes on
		s.Round(round(noon.Add(time.Duration(1+i)*time.Second), 1))
	}
	if _, err := s.Close(round(noon, 1)); err != nil || len(rows) != 5 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	for _, r := range rows {
		if (r.Remedy == "burst") != (r.Container == "/b") {
			t.Errorf("%s: %q", r.Container, r.Remedy)
		}
	}
}
