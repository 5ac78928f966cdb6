package fix

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/unthrottle/unthrottle/internal/cure/curetest"
	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/cure/verdict"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup/cgroupmodel"
	"github.com/unthrottle/unthrottle/internal/see/recording/recordingtest"
	"github.com/unthrottle/unthrottle/internal/txn/apply"
	"github.com/unthrottle/unthrottle/test/lab/require"
)

// world is a modelled host on which fixes, restores, kills, refusals of the kernel and the container's owner take turns.
// What the container does under each setting comes from a model of the scheduler, so that a forecast can be right.
type world struct {
	*bench
	t     *rapid.T
	work  string
	proc  *processes
	owner string // the quota that the owner wrote last
}

// worldRecordings are recordings by work and setting: the same setting gives the same one.
var worldRecordings = map[string]Learned{}

func newWorld(tt *testing.T, t *rapid.T) *world {
	w := &world{bench: newBench(tt), t: t, work: "bursts", proc: &processes{}, owner: "100000"}
	w.length = 2 * time.Second
	w.env.Apply.Proc = w.proc
	w.learns(func(s *recordingtest.Schedule, length time.Duration) { curetest.Works[w.work](s, length) })
	w.recordsOnce(worldRecordings, func() string { return w.work + fmt.Sprint(w.settings()) })
	return w
}

func (w *world) settings() cgroupmodel.Snapshot { return w.kernel.Snapshot().Settings() }

// p99 is that of the container's responses under the setting in force, in ms; 0: it has none.
func (w *world) p99() float64 {
	learned, err := w.env.Learn(context.Background(), busy, time.Second)
	if err != nil {
		w.t.Fatal(err)
	}
	s, ok := verdict.Quantile(runsOf(learned.Runs, "").ResponseMs, 0.99)
	if !ok {
		return 0
	}
	return s.Value
}

// disturb lets the n-th change of the kernel from now on be the last of this process, or be refused; 0: neither.
func (w *world) disturb(kill bool, n int) {
	count := 0
	w.kernel.Before = func(op cgroupmodel.Op) error {
		if !op.Changes() {
			return nil
		}
		if count++; count != n {
			return nil
		}
		if kill {
			panic(errKilled)
		}
		return &cgroup.Error{Op: op.Kind, Path: op.Path, File: op.File, Value: op.Value, Errno: unix.EINVAL}
	}
}

// alive runs do, and reports whether its process survived it.
func (w *world) alive(do func()) (was bool) {
	defer func() {
		w.kernel.Before = nil
		if p := recover(); p != nil {
			if p != errKilled { //nolint:errorlint // the value that was thrown
				panic(p)
			}
			was = false
		}
	}()
	do()
	return true
}

func (w *world) fix() {
	t := w.t
	o := w.options
	o.Tries = rapid.IntRange(1, 3).Draw(t, "tries")
	o.Yes = rapid.Bool().Draw(t, "yes")
	o.Ask = func(string) (bool, error) { return rapid.Bool().Draw(t, "answer"), nil }
	if rapid.Bool().Draw(t, "may") {
		o.Wish.May = []remedy.Kind{remedy.Raise, remedy.Pin}
	}
	if rapid.IntRange(0, 3).Draw(t, "asked") == 0 {
		o.Wish = policy.Wish{Request: remedy.Request{
			Kind: rapid.SampledFrom([]remedy.Kind{remedy.Pin, remedy.Burst, remedy.Raise, remedy.Narrow}).Draw(t, "kind")}}
	}
	before, was, had, unfinished := w.settings(), w.p99(), w.held(), w.unfinished()
	kill, n := rapid.Bool().Draw(t, "kill"), rapid.IntRange(0, 12).Draw(t, "at")
	w.disturb(kill, n)
	var got Result
	var err error
	survived := w.alive(func() { got, err = Run(context.Background(), w.env, o) })
	if !survived {
		w.proc.ended = true
		if _, err := apply.Recover(context.Background(), w.env.Apply); err != nil {
			t.Fatalf("recovering: %v", err)
		}
		w.proc.ended = false
	}
	refused := errors.As(err, new(*apply.NotRestored))
	diff := before.Diff(w.settings())
	switch {
	case survived && got.Kept || refused:
	case !survived && w.held() > had:
		// Killed after the verdict was on disk.
	case unfinished > 0 && w.held() <= had-unfinished:
		// What the kernel refused to let an earlier fix or restore put back was put back first.
	case len(diff) > 0:
		t.Fatalf("nothing is kept (%s, %v), and this is left: %q", got.Verdict, err, diff)
	}
	if refused || w.held() == had {
		return
	}
	// Never worse: what stays was judged better, or a person kept it who was told that nothing is known.
	is := w.p99()
	unknown := survived && got.Verdict == verdict.Unverified
	if was > 0 && is > was*1.1 && !unknown {
		t.Fatalf("%s of %s: p99 from %.3g to %.3g ms, and it stays: %s", got.Remedy, w.work, was, is, got.Verdict)
	}
}

// held is how many changes are in force.
func (w *world) held() int {
	inForce, err := apply.Status(w.env.Apply)
	if err != nil {
		w.t.Fatal(err)
	}
	return len(inForce)
}

// unfinished is how many of those changes the next writer undoes before it does anything else.
func (w *world) unfinished() int {
	inForce, err := apply.Status(w.env.Apply)
	if err != nil {
		w.t.Fatal(err)
	}
	n := 0
	for _, f := range inForce {
		if f.Unfinished || f.Trial.Lost() {
			n++
		}
	}
	return n
}

func (w *world) restore() {
	kill, n := rapid.Bool().Draw(w.t, "kill"), rapid.IntRange(0, 6).Draw(w.t, "at")
	w.disturb(kill, n)
	w.alive(func() { _, _ = apply.Restore(context.Background(), w.env.Apply, apply.Selector{}) })
}

// TestWorld: whatever happens, and in whatever order, no task is without a CPU, what is in force at rest is no worse than
// before, and at the end everything can be put back but for what the owner wrote.
func TestWorld(tt *testing.T) {
	require.Unraced(tt, "TestAskedForIsJudged has the same looks, each beside its recording")
	most := 3
	if testing.Short() {
		most = 2
	}
	rapid.Check(tt, func(t *rapid.T) {
		w := newWorld(tt, t)
		for range rapid.IntRange(1, most).Draw(t, "steps") {
			switch rapid.IntRange(0, 5).Draw(t, "step") {
			case 0, 1, 2:
				w.fix()
			case 3:
				w.restore()
			case 4:
				w.work = rapid.SampledFrom([]string{"bursts", "burners", "calm", "burners beside a sleeper"}).Draw(t, "work")
			case 5:
				w.owner = rapid.SampledFrom([]string{"50000", "100000", "200000"}).Draw(t, "quota")
				if w.held() == 0 { // a burst above the quota would be refused, as by the kernel
					if err := w.kernel.Write(cgroup.CPU, "/busy", "cpu.cfs_quota_us", w.owner); err != nil {
						t.Fatal(err)
					}
				}
			}
			if bad := w.kernel.Check(); len(bad) > 0 {
				t.Fatalf("tasks without a CPU: %q", bad)
			}
		}
		for range 2 { // what an earlier restore could not do, a later one does
			if _, err := apply.Restore(context.Background(), w.env.Apply, apply.Selector{}); err != nil {
				t.Fatalf("at the end: %v", err)
			}
		}
		if n := w.held(); n > 0 {
			t.Fatalf("%d changes are in force after all was restored", n)
		}
		got, err := w.kernel.Read(cgroup.CPU, "/busy", "cpu.cfs_quota_us")
		if err != nil || strings.TrimSpace(got) == "-1" {
			t.Fatalf("the quota is gone: %q, %v", got, err)
		}
		for path, want := range map[string]string{"/busy": "0-3", "/calm": "0-3"} {
			if got, err := w.kernel.Read(cgroup.CPUSet, path, "cpuset.cpus"); err != nil || strings.TrimSpace(got) != want {
				t.Fatalf("%s: CPUs %q, %v", path, got, err)
			}
		}
	})
}
