package observe

import (
	"context"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
)

// podTree is a pod with a quota of 200 ms and two containers. The pod and its own quota stop the first one; the second
// has no quota and sleeps. step is how many seconds have passed so.
func (f *fake) podTree(v cgroup.Version, step int) {
	n := time.Duration(step)
	if v == cgroup.V2 {
		f.set(cgroup.CPU, "/", "cpu.stat", "usage_usec 5")
		f.v2("/pod", "200000 100000", 10*step, 9*step, n*900*ms, n*900*ms, n*700*ms)
		f.v2("/pod/a", "100000 100000", 10*step, 2*step, n*100*ms, n*500*ms, n*500*ms)
		f.v2("/pod/b", "max 100000", 0, 0, 0, 0, 0)
		return
	}
	f.set(cgroup.CPU, "/", "cpu.stat", "nr_periods 0\nnr_throttled 0\nthrottled_time 0")
	f.v1("/pod", 200000, 10*step, 9*step, n*900*ms, n*900*ms, n*700*ms)
	f.v1("/pod/a", 100000, 10*step, 2*step, n*100*ms, n*500*ms, n*500*ms)
	f.v1("/pod/b", -1, 0, 0, 0, 0, 0)
}

func onBothVersions(t *testing.T, test func(t *testing.T, v cgroup.Version, f *fake)) {
	for _, v := range []cgroup.Version{cgroup.V1, cgroup.V2} {
		t.Run(v.String(), func(t *testing.T) { test(t, v, newFake(t, v, "/")) })
	}
}

func TestOneWindow(t *testing.T) {
	onBothVersions(t, func(t *testing.T, v cgroup.Version, f *fake) {
		f.podTree(v, 1)
		got := f.window(f.sampler(Options{}), named("/pod/a", "/pod/b"), func() { f.podTree(v, 2) })
		a, b := got[0], got[1]
		checks := []struct {
			what      string
			got, want any
		}{
			{"window", a.Window, time.Second},
			{"limit", *a.LimitCPUs, 1.0},
			{"limit at", a.LimitAt, "/pod/a"},
			{"used", *a.UsedCPUs, 0.5},
			{"periods", *a.Periods, uint64(10)},
			{"throttled periods", *a.ThrottledPeriods, uint64(2)},
			{"throttled before", *a.ThrottledBefore, 0.9},
			{"throttled seconds", *a.ThrottledSeconds, 0.5},
			{"own throttled seconds", *a.OwnThrottledSeconds, 0.1},
			{"low", *a.StoppedLow, 125 * ms},
			{"high", *a.StoppedHigh, 500 * ms},
			{"by", a.ThrottledBy, "/pod"},
			{"all", a.ThrottledByAll, []Share{{"/pod", 0.4}, {"/pod/a", 0.1}}},
			{"CPUs", a.CPUsAllowed.String(), "0-3"},
			{"levels", len(a.Levels), 3},
			{"notes", len(a.NotMeasured), 0},
			{"b's limit", *b.LimitCPUs, 2.0},
			{"b's limit at", b.LimitAt, "/pod"},
			{"b's high", *b.StoppedHigh, 0 * ms},
			{"b by", b.ThrottledBy, ""},
		}
		for _, c := range checks {
			if diff := cmp.Diff(c.want, c.got); diff != "" {
				t.Errorf("%s: -want +got\n%s", c.what, diff)
			}
		}
	})
}

func TestWithoutStatLocal(t *testing.T) {
	onBothVersions(t, func(t *testing.T, v cgroup.Version, f *fake) {
		old := func(step int) {
			f.podTree(v, step)
			for _, path := range []string{"/pod", "/pod/a", "/pod/b"} {
				f.drop(cgroup.CPU, path, cgroup.FileStatLocal)
			}
		}
		old(1)
		got := f.window(f.sampler(Options{}), named("/pod/a", "/pod/b"), func() { old(2) })
		for i, high := range []time.Duration{time.Second, 900 * ms} {
			o := got[i]
			if *o.StoppedLow != 0 || *o.StoppedHigh != high || o.ThrottledBy != "/pod" || o.ThrottledSeconds != nil {
				t.Errorf("%s: %v to %v by %q, throttled %v", o.Container.Name, *o.StoppedLow, *o.StoppedHigh,
					o.ThrottledBy, o.ThrottledSeconds)
			}
			if !slices.Equal(o.NotMeasured, []string{noLocal}) {
				t.Errorf("notes %q", o.NotMeasured)
			}
		}
	})
}

func TestNothingIsInventedWhereFilesAreMissing(t *testing.T) {
	f := newFake(t, cgroup.V1, "/")
	f.podTree(cgroup.V1, 1)
	f.drop(cgroup.CPUAcct, "/pod/a", "cpuacct.usage")
	f.drop(cgroup.CPUSet, "/pod/a", "cpuset.effective_cpus")
	f.drop(cgroup.CPUSet, "/pod", "cpuset.effective_cpus")
	f.set(cgroup.CPU, "/pod/a", cgroup.FileStatLocal, "throttled_time what")
	containers := named("/pod/a", "/pod/b")
	containers[1].Group.CPUAcctPath = "/pod"
	got := f.window(f.sampler(Options{}), containers, func() {})
	a, b := got[0], got[1]
	if a.UsedCPUs != nil || a.ThrottledSeconds != nil || a.CPUsAllowed.String() != "0-1" {
		t.Errorf("used %v, throttled %v, CPUs %v", a.UsedCPUs, a.ThrottledSeconds, a.CPUsAllowed)
	}
	for _, file := range []string{"cpuacct.usage: ", "cpu.stat.local: "} {
		if !slices.ContainsFunc(a.NotMeasured, func(n string) bool { return strings.HasPrefix(n, file) }) {
			t.Errorf("no word on %s in %q", file, a.NotMeasured)
		}
	}
	if b.UsedCPUs == nil || *b.UsedCPUs != 0 || !strings.Contains(strings.Join(b.NotMeasured, ""), "the sum of its threads") {
		t.Errorf("an ancestor's CPU time was taken for the container's: %v, %q", b.UsedCPUs, b.NotMeasured)
	}
}

func TestCPUTimeByThreads(t *testing.T) {
	f := newFake(t, cgroup.V1, "/")
	f.podTree(cgroup.V1, 1)
	proc := t.TempDir()
	ran := func(tid string, d time.Duration) {
		f.write(proc+"/"+tid+"/schedstat", strconv.FormatInt(d.Nanoseconds(), 10)+" 7 8\n")
	}
	containers := named("/pod/a")
	containers[0].Group.CPUAcctPath = "/pod"
	s := f.sampler(Options{Proc: proc})
	f.set(cgroup.CPU, "/pod/a", "tasks", "11\n12\n13")
	f.set(cgroup.CPU, "/pod/a/below", "tasks", "14")
	for _, tid := range []string{"11", "12", "14"} { // 13 ends before it is read
		ran(tid, 5*time.Second)
	}
	o := f.window(s, containers, func() {
		ran("11", 5100*ms)
		ran("14", 5200*ms)
		f.set(cgroup.CPU, "/pod/a", "tasks", "11\n15\n16\n12")
		ran("15", 150*ms)         // started within the window
		ran("16", 60*time.Second) // moved here
	})[0]
	if *o.UsedCPUs != 0.45 {
		t.Errorf("used %v CPUs, want 0.1 + 0.2 + 0.15", *o.UsedCPUs)
	}
	if o := f.window(s, containers, func() { ran("16", 60*time.Second+300*ms) })[0]; *o.UsedCPUs != 0.3 {
		t.Errorf("used %v CPUs in the next window, want 0.3", *o.UsedCPUs)
	}
	f.set(cgroup.CPU, "/pod/a", "tasks", "11\n0")
	if o := f.window(s, containers, func() {})[0]; o.UsedCPUs != nil ||
		!strings.Contains(strings.Join(o.NotMeasured, ""), "PID namespace") {
		t.Errorf("used %v although a thread cannot be seen, notes %q", o.UsedCPUs, o.NotMeasured)
	}
	f.set(cgroup.CPU, "/pod/a", "tasks", strings.Repeat("11\n", maxThreadsPerRound+1))
	if o := f.window(s, containers, func() {})[0]; o.UsedCPUs != nil {
		t.Errorf("used %v with more threads than are read", o.UsedCPUs)
	}
}

func TestUnreadableCounters(t *testing.T) {
	f := newFake(t, cgroup.V2, "/")
	f.podTree(cgroup.V2, 1)
	f.drop(cgroup.CPU, "/pod/a", cgroup.FileStat)
	f.set(cgroup.CPU, "/pod/a/"+cgroup.FileStat, "x", "") // a directory at this path: EISDIR, even for root
	o := f.window(f.sampler(Options{}), named("/pod/a"), func() {
		f.set(cgroup.CPU, "/pod/a", cgroup.FileStatLocal, "throttled_usec 800000")
	})[0]
	if o.Periods != nil || o.OwnThrottledSeconds != nil || o.UsedCPUs != nil {
		t.Errorf("figures from a file that cannot be read: %+v", o)
	}
	if *o.StoppedHigh != 300*ms || o.ThrottledBy != ByUnknown || *o.LimitCPUs != 1 {
		t.Errorf("high %v by %q limit %v", *o.StoppedHigh, o.ThrottledBy, *o.LimitCPUs)
	}
	if notes := strings.Join(o.NotMeasured, "\n"); !strings.Contains(notes, "cpu.stat of /pod/a: is a directory") {
		t.Errorf("notes %q", o.NotMeasured)
	}
}

func TestLevelsAboveTheMountAreUnknown(t *testing.T) {
	f := newFake(t, cgroup.V1, "/outer")
	f.v1("/c", -1, 0, 0, 0, 0, 0)
	got := f.window(f.sampler(Options{}), named("/outer/c"), func() { f.v1("/c", -1, 0, 0, 0, 400*ms, 0) })
	if o := got[0]; o.ThrottledBy != ByUnknown || *o.StoppedHigh != 400*ms {
		t.Errorf("by %q, high %v", o.ThrottledBy, *o.StoppedHigh)
	}
	f.drop(cgroup.CPU, "/c", cgroup.FileStatLocal)
	got = f.window(f.sampler(Options{}), named("/outer/c"), func() {})
	if o := got[0]; o.StoppedHigh != nil || o.ThrottledBy != "" || *o.Periods != 0 {
		t.Errorf("measured without a way to: high %v by %q", o.StoppedHigh, o.ThrottledBy)
	}
}

func TestCgroupsWithoutTheCPUController(t *testing.T) {
	f := newFake(t, cgroup.V2, "/")
	f.set(cgroup.CPU, "/", "cpuset.cpus.effective", "0-7")
	f.set(cgroup.CPU, "/plain", cgroup.FileStat, "usage_usec 1000000\nuser_usec 0\nsystem_usec 0")
	got := f.window(f.sampler(Options{}), named("/plain"), func() {
		f.set(cgroup.CPU, "/plain", cgroup.FileStat, "usage_usec 1250000\nuser_usec 0\nsystem_usec 0")
	})
	o := got[0]
	if *o.UsedCPUs != 0.25 || o.Periods != nil || o.LimitCPUs != nil || *o.StoppedHigh != 0 || o.CPUsAllowed.Size() != 8 {
		t.Errorf("used %v periods %v limit %v high %v CPUs %v", *o.UsedCPUs, o.Periods, o.LimitCPUs, *o.StoppedHigh, o.CPUsAllowed)
	}
	if !slices.Contains(o.NotMeasured, noBandwidth) {
		t.Errorf("no word on the periods: %q", o.NotMeasured)
	}
}

func TestWindowsThatAreNone(t *testing.T) {
	tests := []struct {
		name   string
		change func(f *fake)
	}{
		{"periods go backwards", func(f *fake) { f.v1("/pod/a", 100000, 5, 2, 500*ms, 500*ms, 500*ms) }},
		{"throttled time goes backwards", func(f *fake) { f.v1("/pod/a", 100000, 20, 4, 10*ms, 700*ms, 900*ms) }},
		{"usage goes backwards", func(f *fake) { f.v1("/pod/a", 100000, 20, 4, 500*ms, 700*ms, 0) }},
		{"an ancestor's counter goes backwards", func(f *fake) { f.v1("/pod", 200000, 20, 1, 0, 0, 0) }},
		{"made anew", func(f *fake) {
			f.podTree(cgroup.V1, 2)
			f.drop(cgroup.CPU, "/pod/a", "")
			f.v1("/pod/a", 100000, 20, 9, 700*ms, 900*ms, 2*time.Second)
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFake(t, cgroup.V1, "/")
			f.podTree(cgroup.V1, 1)
			containers := named("/pod/a")
			// Handles are not kept, because the plain files of a fake tree stay readable after their removal.
			s := f.sampler(Options{FileLimitShare: 1e-9})
			o := f.window(s, containers, func() { tt.change(f) })[0]
			if o.Window != 0 || o.UsedCPUs != nil || o.Periods != nil || o.StoppedHigh != nil || len(o.NotMeasured) == 0 {
				t.Fatalf("a window: %+v", o)
			}
			if o.LimitCPUs == nil {
				t.Errorf("the limit is not known, although it is no counter")
			}
			if o := f.window(s, containers, func() {})[0]; o.Window != time.Second || *o.Periods != 0 {
				t.Errorf("the next window is none either: %+v", o)
			}
		})
	}
}

func TestAGoneContainer(t *testing.T) {
	f := newFake(t, cgroup.V2, "/")
	f.podTree(cgroup.V2, 1)
	s := f.sampler(Options{FileLimitShare: 1e-9})
	got := f.window(s, named("/pod/a", "/nowhere", "/../etc"), func() { f.drop(cgroup.CPU, "/pod/a", "") })
	for _, o := range got {
		if o.Window != 0 || !strings.Contains(o.NotMeasured[len(o.NotMeasured)-1], "not there") {
			t.Errorf("%s: %+v", o.Container.Name, o)
		}
	}
}

func TestLimitsThatChange(t *testing.T) {
	onBothVersions(t, func(t *testing.T, v cgroup.Version, f *fake) {
		limit := func(us int) {
			if v == cgroup.V2 {
				f.set(cgroup.CPU, "/pod", "cpu.max", map[bool]string{true: "max 100000", false: "50000 100000"}[us < 0])
			} else {
				f.set(cgroup.CPU, "/pod", "cpu.cfs_quota_us", map[bool]string{true: "-1", false: "50000"}[us < 0])
			}
		}
		f.podTree(v, 1)
		s := f.sampler(Options{})
		got := f.window(s, named("/pod/b"), func() { limit(50000) })[0]
		if *got.LimitCPUs != 0.5 {
			t.Errorf("limit %v after it fell to 0.5", *got.LimitCPUs)
		}
		if c := got.LimitChanges; len(c) != 1 || c[0].Before.Path != "/pod" || c[0].Before.QuotaNS == nil || *c[0].After.QuotaNS != 50e6 {
			t.Errorf("changes %+v", c)
		}
		if got = f.window(s, named("/pod/b"), func() {})[0]; len(got.LimitChanges) != 0 {
			t.Errorf("changes %+v in a window without any", got.LimitChanges)
		}
		got = f.window(s, named("/pod/b"), func() { limit(-1) })[0]
		if got.LimitCPUs != nil || got.StoppedHigh == nil {
			t.Errorf("limit %v after it was lifted, stopped %v", got.LimitCPUs, got.StoppedHigh)
		}
		// The quota returns, and with it counters that were not read without one.
		got = f.window(s, named("/pod/b"), func() { limit(50000) })[0]
		if *got.LimitCPUs != 0.5 || got.Window == 0 {
			t.Errorf("limit %v after it came back: %+v", got.LimitCPUs, got)
		}
	})
}

func TestEachFileIsReadOnceHoweverManyShareIt(t *testing.T) {
	f := newFake(t, cgroup.V1, "/")
	f.podTree(cgroup.V1, 1)
	containers := named("/pod/a", "/pod/b")
	containers[0].Group.CPUSetPath, containers[1].Group.CPUSetPath = "/pod", "/pod"
	s := f.sampler(Options{})
	f.window(s, containers, func() {})
	before := s.Reads()
	f.window(s, containers, func() {})
	// a and b: cpu.stat, cpu.stat.local, quota, period, burst, usage; the pod: three limit files, cpu.stat, cpuset.
	// The root has no limit files here.
	if got := (s.Reads() - before) / 2; got != 2*6+3+1+1 {
		t.Errorf("%d reads per sample", got)
	}
}

func TestASteadyStateMakesNoGarbage(t *testing.T) {
	onBothVersions(t, func(t *testing.T, v cgroup.Version, f *fake) {
		f.podTree(v, 1)
		f.drop(cgroup.CPU, "/pod/b", cgroup.FileStatLocal)
		s := f.sampler(Options{})
		containers := named("/pod/a", "/pod/b")
		var samples []Sample
		read := func() {
			var err error
			s.begin() // as a Watcher does; a Sample looks for quotas inside, too
			if samples, err = s.sample(context.Background(), containers, samples); err != nil {
				t.Fatal(err)
			}
			s.Poll()
		}
		read()
		f.podTree(v, 2)
		read()
		if s.Hot() == 0 {
			t.Fatal("nothing is hot: Poll would not be tried")
		}
		// The Sampler looks for a missing file every absentRounds. That opens a file and so allocates a little.
		if n := testing.AllocsPerRun(8*absentRounds, read); n > 2 {
			t.Errorf("%v allocations per sample", n)
		}
	})
}

func TestAboveItsShareOfTheFileLimitNoHandleIsKept(t *testing.T) {
	onBothVersions(t, func(t *testing.T, v cgroup.Version, f *fake) {
		kept, unkept := f.sampler(Options{}), f.sampler(Options{FileLimitShare: 1e-9})
		containers := named("/pod/a", "/pod/b")
		f.podTree(v, 1)
		want := f.window(kept, containers, func() { f.podTree(v, 2) })
		f.podTree(v, 1)
		before := openFiles(t)
		got := f.window(unkept, containers, func() { f.podTree(v, 2) })
		if after := openFiles(t); unkept.Handles() != 0 || after != before {
			t.Errorf("%d handles kept, %d files open, %d before", unkept.Handles(), after, before)
		}
		if kept.Handles() == 0 {
			t.Error("no handles kept below the share")
		}
		for i := range got {
			want[i].Start, got[i].Start = time.Time{}, time.Time{}
			if diff := cmp.Diff(want[i], got[i], cmp.AllowUnexported(cpuset.CPUSet{})); diff != "" {
				t.Errorf("other figures without handles: -kept +not kept\n%s", diff)
			}
		}
	})
}

func TestHandlesOfContainersNoLongerAskedForAreClosed(t *testing.T) {
	f := newFake(t, cgroup.V1, "/")
	f.podTree(cgroup.V1, 1)
	before := openFiles(t)
	s := f.sampler(Options{})
	f.window(s, named("/pod/a", "/pod/b"), func() {})
	both := s.Handles()
	f.window(s, named("/pod/b"), func() {})
	if one := s.Handles(); one >= both || one == 0 {
		t.Errorf("%d handles for one, %d for two", one, both)
	}
	s.Close()
	if after := openFiles(t); s.Handles() != 0 || after != before {
		t.Errorf("%d handles after Close, %d files open, %d before", s.Handles(), after, before)
	}
}

func TestPollMakesCells(t *testing.T) {
	f := newFake(t, cgroup.V1, "/")
	f.podTree(cgroup.V1, 1)
	s := f.sampler(Options{})
	containers := named("/pod/a", "/pod/b")
	if o := f.window(s, containers, func() { f.podTree(cgroup.V1, 2) }); len(o[0].Cells) > 1 || s.Hot() != 2 {
		t.Fatalf("%d cells before it was known to be stopped; %d hot", len(o[0].Cells), s.Hot())
	}
	before := s.Reads()
	o := f.window(s, containers, func() {
		f.now = f.now.Add(100 * ms)
		s.Poll()
		f.podTree(cgroup.V1, 3)
		f.now = f.now.Add(100 * ms)
		s.Poll()
	})
	want := []Cell{{100 * ms, 0}, {200 * ms, time.Second}, {1200 * ms, 0}}
	if diff := cmp.Diff(want, o[0].Cells); diff != "" {
		t.Errorf("cells: -want +got\n%s", diff)
	}
	if perSample := uint64(2*6 + 1 + 1 + 3 + 1 + 1); s.Reads()-before > 2*perSample+2*2 {
		t.Errorf("%d reads for two samples and two polls", s.Reads()-before)
	}
	f.now = f.now.Add(time.Minute)
	f.window(s, containers, func() {})
	if s.Hot() != 0 {
		t.Errorf("%d hot a minute after", s.Hot())
	}
}

func TestSampleEndsWithItsContext(t *testing.T) {
	f := newFake(t, cgroup.V1, "/")
	f.podTree(cgroup.V1, 1)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := f.sampler(Options{}).Sample(ctx, named("/pod/a"), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if _, err := Once(ctx, f.host, named("/pod/a"), time.Minute); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	for _, window := range []time.Duration{-1, 0, MinWindow - 1, MaxWindow + 1} {
		if _, err := Once(t.Context(), f.host, nil, window); err == nil || !strings.Contains(err.Error(), window.String()) {
			t.Errorf("window %v: error %v", window, err)
		}
	}
}

// openFiles counts this process's descriptors.
func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// CPUs that go offline and come back are seen in the next sample, for containers without a cpuset too, and at the cost of one read.
func TestCPUsGoOffline(t *testing.T) {
	f := newFake(t, cgroup.V2, "/")
	f.v2("/a", "50000 100000", 0, 0, 0, 0, 0)
	f.v2("/b", "50000 100000", 0, 0, 0, 0, 0)
	containers := named("/a", "/b")
	for i := range containers {
		containers[i].Group.CPUSetPath = ""
	}
	dir := t.TempDir()
	s := f.sampler(Options{onlineDir: dir})
	given := f.sampler(Options{Online: cpuset.New(0)})
	var samples, others []Sample
	for _, want := range []string{"0-3", "0-1,3", "0-3"} {
		f.write(dir+"/online", want+"\n")
		before, givenBefore := s.Reads(), given.Reads()
		var err error
		if samples, err = s.Sample(t.Context(), containers, samples); err != nil {
			t.Fatal(err)
		}
		if others, err = given.Sample(t.Context(), containers, others); err != nil {
			t.Fatal(err)
		}
		for i := range samples {
			if got := samples[i].CPUs; got.String() != want || samples[i].online != got.Size() {
				t.Errorf("%s: CPUs %s, %d online", want, got, samples[i].online)
			}
		}
		if reads, rest := s.Reads()-before, given.Reads()-givenBefore; reads != rest+1 {
			t.Errorf("%d reads, without the list %d", reads, rest)
		}
	}
	s.Close()
	if n := s.Handles(); n != 0 {
		t.Errorf("%d handles after Close", n)
	}
}
