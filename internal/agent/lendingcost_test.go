package agent

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/cure/hoststate/gather"
	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/load/cgrouptest"
	"github.com/unthrottle/unthrottle/internal/load/workload"
	"github.com/unthrottle/unthrottle/internal/txn/apply"
	"github.com/unthrottle/unthrottle/test/lab/require"
)

// TestMain lets the test binary stand in for the program that children run.
func TestMain(m *testing.M) {
	cgrouptest.Child()
	os.Exit(m.Run())
}

// beside is an owner and another container that share one CPU on the real kernel.
type beside struct {
	*cgrouptest.Tree
	t            *testing.T
	owner, other string
	pid          int // of the other
	children     []*workload.Process

	mu      sync.Mutex
	records []workload.Record // of the owner
}

func newBeside(t *testing.T, burners int) *beside {
	require.CPUs(t, 2)
	b := &beside{Tree: cgrouptest.New(t), t: t}
	b.owner, b.other = b.Make("owner"), b.Make("batch/job")
	_, set, err := cgroup.CPUs(b.Host, b.Top)
	if err != nil {
		t.Fatal(err)
	}
	last := strconv.Itoa(set.List()[set.Size()-1])
	for _, path := range []string{b.owner, b.other} {
		if err := b.Host.Write(cgroup.CPUSet, path, cgroup.FileCPUs, last); err != nil {
			t.Fatal(err)
		}
	}
	p := b.child(b.owner, burners)
	go func() {
		for r := range p.Records() {
			b.mu.Lock()
			b.records = append(b.records, r)
			b.mu.Unlock()
		}
	}()
	other := b.child(b.other, 2)
	b.pid = other.Pid()
	go func() {
		for range other.Records() {
		}
	}()
	return b
}

func (b *beside) child(path string, burners int) *workload.Process {
	b.t.Helper()
	p, err := workload.Start(b.Exe, workload.Spec{Burners: burners, Sleep: 5 * time.Millisecond, Deadline: 90 * time.Second})
	if err != nil {
		b.t.Fatal(err)
	}
	b.children = append(b.children, p)
	b.t.Cleanup(func() { _ = p.Stop() })
	for _, c := range []cgroup.Controller{cgroup.CPU, cgroup.CPUSet} {
		if err := b.Host.Attach(c, path, p.Pid()); err != nil {
			b.t.Fatal(err)
		}
	}
	if err := p.Go(); err != nil {
		b.t.Fatal(err)
	}
	return p
}

// end ends both, so that the CPU is free for the next pair.
func (b *beside) end() {
	b.t.Helper()
	for _, p := range b.children {
		if err := p.Stop(); err != nil {
			b.t.Logf("ending a child: %v", err)
		}
	}
}

// secondary makes the other container one, by the remedy.
func (b *beside) secondary() {
	b.t.Helper()
	containers, err := container.List(b.Host, container.Options{})
	if err != nil {
		b.t.Fatal(err)
	}
	f, err := gather.Host(b.t.Context(), b.Host, containers, gather.Options{Root: os.DirFS("/"), Scope: b.Top, Named: b.Top})
	if err != nil {
		b.t.Fatal(err)
	}
	c, err := container.Resolve(b.Host, containers, b.other)
	if err != nil {
		b.t.Fatal(err)
	}
	plan, err := remedy.Make(f, c, remedy.Request{Kind: remedy.Secondary})
	if err != nil {
		b.t.Fatal(err)
	}
	env := apply.Env{FS: b.Host, StateDir: b.StateDir, BootID: "test", By: "test", Scope: b.Top}
	if _, err := apply.Apply(b.t.Context(), env, plan.Purpose(), plan.Changes); err != nil {
		b.t.Fatal(err)
	}
}

// stretch looks at the owner while the other runs or stands still: its rounds of
// work per second, and by how much its sleeper came late.
func (b *beside) stretch(runs bool) (rate float64, late []time.Duration) {
	b.t.Helper()
	signal := unix.SIGSTOP
	if runs {
		signal = unix.SIGCONT
	}
	if err := unix.Kill(b.pid, signal); err != nil {
		b.t.Fatal(err)
	}
	time.Sleep(50 * time.Millisecond) // the tick has seen it
	b.mu.Lock()
	from := len(b.records)
	b.mu.Unlock()
	time.Sleep(250 * time.Millisecond)
	b.mu.Lock()
	defer b.mu.Unlock()
	all := b.records[from:]
	if len(all) < 2 {
		return 0, nil
	}
	first, last := all[0], all[len(all)-1]
	for _, r := range all[1:] {
		late = append(late, r.Took-5*time.Millisecond)
	}
	return float64(last.Work-first.Work) / (last.End() - first.End()).Seconds(), late
}

// cost compares, by turns, so that what else the host does meets both alike: the
// median of work done beside the other / work done alone, pair by pair, and the
// sleeper's lateness on both sides.
func (b *beside) cost(pairs int) (kept float64, alone, with []time.Duration) {
	b.t.Helper()
	var ratios []float64
	for range pairs {
		before, a := b.stretch(false)
		during, w := b.stretch(true)
		if before > 0 && during > 0 {
			ratios = append(ratios, during/before)
		}
		alone, with = append(alone, a...), append(with, w...)
	}
	if len(ratios) == 0 {
		return 0, alone, with
	}
	slices.Sort(ratios)
	return ratios[len(ratios)/2], alone, with
}

func quantiles(all []time.Duration) string {
	if len(all) == 0 {
		return "nothing"
	}
	slices.Sort(all)
	at := func(q float64) time.Duration { return all[int(q*float64(len(all)-1))].Round(time.Microsecond) }
	return fmt.Sprintf("p50 %v, p99 %v of %d", at(0.5), at(0.99), len(all))
}

// leastKept is the part of its work that an owner must keep beside a secondary
// on its only CPU.
const leastKept = 0.97

// The owner of a lent CPU is unharmed on the real kernel: it does as much work,
// within a few percent, with two threads of a secondary on its only CPU as
// without. Of the same two threads at their own weight it notices a lot, so that
// the measure can fail.
func TestOwnerIsUnharmed(t *testing.T) {
	require.Alone(t, "what the owner uses with the lend and without")
	pairs := max(4, require.Rounds(t, 10))
	busy := newBeside(t, 1)
	harm, _, _ := busy.cost(pairs / 2)
	busy.secondary()
	kept, alone, with := busy.cost(pairs)
	for range 2 {
		if kept >= leastKept {
			break
		}
		kept, alone, with = busy.cost(pairs) // a time of other programs' work
	}
	t.Logf("a busy owner keeps %.3f of its work beside a secondary on its only CPU, %.3f beside the same at normal weight", kept, harm)
	t.Logf("its sleeper comes late by %s alone, %s beside the secondary", quantiles(alone), quantiles(with))
	if kept < leastKept {
		t.Errorf("the owner keeps %.3f of its work, want %.2f", kept, leastKept)
	}
	if harm > 0.8 {
		t.Errorf("the owner keeps %.3f beside two threads of normal weight: this measures nothing", harm)
	}
	busy.end()
	resting := newBeside(t, 0)
	resting.secondary()
	_, alone, with = resting.cost(pairs / 2)
	t.Logf("a resting owner wakes up late by %s alone, %s beside the secondary", quantiles(alone), quantiles(with))
}
