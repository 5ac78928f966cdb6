package observe

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
)

// watched is a Watcher on a fake tree; the test moves its clock.
type watched struct {
	*Watcher
	f          *fake
	snapshots  []Snapshot
	came, gone []string
	log        bytes.Buffer
}

func (f *fake) watch(o WatchOptions) *watched {
	w := &watched{f: f}
	o.Sampler = f.options(o.Sampler)
	o.Changed = func(came, gone []container.Container) {
		for _, c := range came {
			w.came = append(w.came, c.Group.Path)
		}
		for _, c := range gone {
			w.gone = append(w.gone, c.Group.Path)
		}
	}
	o.Log = slog.New(slog.NewTextHandler(&w.log, nil))
	if o.List == nil {
		o.List = container.NewLister(f.host, container.Options{}).List
	}
	w.Watcher = NewWatcher(f.host, o)
	w.start()
	f.t.Cleanup(w.stop)
	return w
}

// run lets d pass, as Run would.
func (w *watched) run(d time.Duration) {
	again := 0
	for end := w.f.now.Add(d); w.f.now.Before(end); {
		if s, ok := w.step(); ok {
			w.snapshots = append(w.snapshots, s)
		}
		next := w.next()
		if again++; next.After(w.f.now) {
			w.f.now, again = next, 0
		} else if again > 2 {
			w.f.t.Fatalf("step at %v wants to be called at once again and again", w.f.now)
		}
	}
}

func TestWatcherGivesOneSnapshotPerInterval(t *testing.T) {
	f := newFake(t, cgroup.V1, "/")
	f.podTree(cgroup.V1, 1)
	w := f.watch(WatchOptions{})
	w.run(5 * time.Second)
	if len(w.snapshots) != 5 || len(w.snapshots[0].Observations) != 0 {
		t.Fatalf("%d snapshots in 5 s, %d observations in the first", len(w.snapshots), len(w.snapshots[0].Observations))
	}
	for i, s := range w.snapshots[1:] {
		if len(s.Observations) != 2 || s.Observations[0].Window != time.Second || s.Containers != 2 {
			t.Errorf("snapshot %d: %+v", i+1, s)
		}
	}
	if !slices.Equal(w.came, []string{"/pod/a", "/pod/b"}) || w.gone != nil {
		t.Errorf("came %q, gone %q", w.came, w.gone)
	}
}

func TestWatcherReadsWhatIsStoppedTenTimesASecond(t *testing.T) {
	f := newFake(t, cgroup.V1, "/")
	f.podTree(cgroup.V1, 1)
	w := f.watch(WatchOptions{})
	w.run(2 * time.Second)
	f.podTree(cgroup.V1, 2)
	w.run(2 * time.Second)
	last := w.snapshots[len(w.snapshots)-1]
	if last.Hot != 2 || len(last.Observations[0].Cells) != 10 {
		t.Errorf("%d hot, %d cells", last.Hot, len(last.Observations[0].Cells))
	}
	w.notifier.whole = false // each sample reads all files
	idle := w.f.watch(WatchOptions{})
	idle.run(time.Second)
	perSample := idle.sampler.Reads()
	before := w.sampler.Reads()
	w.run(4 * time.Second)
	if got, want := w.sampler.Reads()-before, 4*(perSample+2*9); got != want {
		t.Errorf("%d reads in 4 s, want those of %d samples and 9 polls each of 2 files: %d", got, 4, want)
	}
	w.run(20 * time.Second)
	if last := w.snapshots[len(w.snapshots)-1]; last.Hot != 0 || last.Observations[0].Cells != nil {
		t.Errorf("%d hot long after, %d cells", last.Hot, len(last.Observations[0].Cells))
	}
}

func TestNewcomersAreSeenWithinASecond(t *testing.T) {
	f := newFake(t, cgroup.V1, "/")
	f.podTree(cgroup.V1, 1)
	w := f.watch(WatchOptions{})
	w.run(3 * time.Second)
	f.v1("/pod/new", -1, 0, 0, 0, 0, 0)
	w.run(time.Second)
	if !slices.Contains(w.came, "/pod/new") {
		t.Errorf("came %q after a second", w.came)
	}
	f.v1("/pod/new/below", -1, 0, 0, 0, 0, 0) // the new cgroup is watched, too
	w.run(time.Second)
	if !slices.Contains(w.came, "/pod/new/below") {
		t.Errorf("came %q after a second", w.came)
	}
}

func TestWithoutInotifyTheRescanFinds(t *testing.T) {
	f := newFake(t, cgroup.V1, "/")
	f.podTree(cgroup.V1, 1)
	w := f.watch(WatchOptions{})
	w.notifier.close()
	w.run(3 * time.Second)
	f.v1("/pod/new", -1, 0, 0, 0, 0, 0)
	f.drop(cgroup.CPU, "/pod/b", "")
	w.run(10 * time.Second)
	if !slices.Contains(w.came, "/pod/new") || !slices.Equal(w.gone, []string{"/pod/b"}) {
		t.Errorf("came %q, gone %q", w.came, w.gone)
	}
	if got := len(w.byPath); got != 2 {
		t.Errorf("%d containers kept", got)
	}
}

func TestWatchesAreBounded(t *testing.T) {
	f := newFake(t, cgroup.V1, "/")
	f.podTree(cgroup.V1, 1)
	w := f.watch(WatchOptions{})
	w.notifier.max = 2
	if err := w.notifier.watch(f.host, ""); !errors.Is(err, errWatchesFull) || w.notifier.watches != 2 {
		t.Errorf("%d watches, error %v", w.notifier.watches, err)
	}
}

func TestOneMadeAnewIsGoneAndNew(t *testing.T) {
	f := newFake(t, cgroup.V1, "/")
	f.podTree(cgroup.V1, 1)
	w := f.watch(WatchOptions{Sampler: Options{FileLimitShare: 1e-9}})
	w.run(3 * time.Second)
	w.came = nil
	f.drop(cgroup.CPU, "/pod/a", "")
	f.v1("/pod/a", 100000, 0, 0, 0, 0, 0)
	w.run(time.Second)
	if !slices.Contains(w.came, "/pod/a") || !slices.Contains(w.gone, "/pod/a") {
		t.Errorf("came %q, gone %q", w.came, w.gone)
	}
	for _, s := range w.snapshots {
		for _, o := range s.Observations {
			if o.UsedCPUs != nil && *o.UsedCPUs < 0 {
				t.Errorf("%s used %v CPUs", o.Container.Name, *o.UsedCPUs)
			}
		}
	}
}

func TestAnotherCpusetIsNoticed(t *testing.T) {
	f := newFake(t, cgroup.V1, "/")
	f.podTree(cgroup.V1, 1)
	f.drop(cgroup.CPUSet, "/pod/a", "")
	w := f.watch(WatchOptions{})
	w.run(3 * time.Second)
	f.set(cgroup.CPUSet, "/pod/a", "cpuset.effective_cpus", "2-3")
	w.run(12 * time.Second)
	if got := w.snapshots[len(w.snapshots)-1].Observations[0].CPUsAllowed.String(); got != "2-3" {
		t.Errorf("CPUs %s, a cpuset of its own has 2-3", got)
	}
}

func TestALostCpusetIsFoundAgain(t *testing.T) {
	f := newFake(t, cgroup.V1, "/")
	f.podTree(cgroup.V1, 1)
	f.set(cgroup.CPUSet, "/pod", "cpuset.effective_cpus", "0-5")
	w := f.watch(WatchOptions{Sampler: Options{FileLimitShare: 1e-9}})
	w.run(3 * time.Second)
	f.drop(cgroup.CPUSet, "/pod/a", "")
	w.run(3 * time.Second)
	o := w.snapshots[len(w.snapshots)-1].Observations[0]
	if o.CPUsAllowed.String() != "0-5" || o.Container.Group.CPUSetPath != "/pod" {
		t.Errorf("CPUs %s of %s, the pod's has 0-5", o.CPUsAllowed, o.Container.Group.CPUSetPath)
	}
	scans := w.sampler.Opens()
	w.run(3 * time.Second)
	if w.dirty {
		t.Errorf("still looking for it, %d opens", w.sampler.Opens()-scans)
	}
}

func TestTooManyContainersAreCounted(t *testing.T) {
	f := newFake(t, cgroup.V1, "/")
	f.podTree(cgroup.V1, 1)
	w := f.watch(WatchOptions{MaxContainers: 1})
	w.run(2 * time.Second)
	if s := w.snapshots[1]; s.Containers != 1 || s.Left != 1 {
		t.Errorf("%d watched, %d left", s.Containers, s.Left)
	}
}

func TestAFailedListKeepsWhatIsKnown(t *testing.T) {
	f := newFake(t, cgroup.V1, "/")
	f.podTree(cgroup.V1, 1)
	var fail error
	w := f.watch(WatchOptions{List: func() ([]container.Container, error) { return named("/pod/a", "/pod/a", "/pod/b"), fail }})
	w.run(2 * time.Second)
	fail = errors.New("no way in")
	w.run(35 * time.Second)
	if s := w.snapshots[len(w.snapshots)-1]; s.Containers != 2 || len(s.Observations) != 2 {
		t.Errorf("%d containers after the list failed", s.Containers)
	}
	if n := strings.Count(w.log.String(), "no way in"); n != 1 {
		t.Errorf("said %d times:\n%s", n, w.log.String())
	}
}

func TestLookingIsBoundedWhateverIsMade(t *testing.T) {
	f := newFake(t, cgroup.V1, "/")
	f.podTree(cgroup.V1, 1)
	scans := 0
	w := f.watch(WatchOptions{List: func() ([]container.Container, error) {
		scans++
		f.now = f.now.Add(20 * ms) // the cost of the scan
		return named("/pod/a", "/pod/b"), nil
	}})
	w.run(time.Second)
	scans = 0
	for end := f.now.Add(10 * time.Second); f.now.Before(end); {
		w.dirty = true
		w.run(ms)
	}
	if scans > 50 || scans < 20 {
		t.Errorf("%d scans in 10 s", scans)
	}
}

func TestRunEndsWithItsContextAndLeavesNothing(t *testing.T) {
	f := newFake(t, cgroup.V1, "/")
	f.podTree(cgroup.V1, 1)
	files, goroutines := openFiles(t), runtime.NumGoroutine()
	ctx, cancel := context.WithCancel(t.Context())
	snapshots := 0
	err := NewWatcher(f.host, WatchOptions{Interval: MinWindow}).Run(ctx, func(s Snapshot) {
		if snapshots++; snapshots == 3 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) || snapshots < 3 {
		t.Errorf("error %v after %d snapshots", err, snapshots)
	}
	if now := runtime.NumGoroutine(); now > goroutines {
		t.Errorf("%d goroutines, %d before", now, goroutines)
	}
	if now := openFiles(t); now != files {
		t.Errorf("%d open files, %d before", now, files)
	}
}
