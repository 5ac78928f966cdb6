package fix

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/cure/slo"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/see/observe"
	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/internal/txn/apply"
	"github.com/unthrottle/unthrottle/internal/txn/journal"
	"github.com/unthrottle/unthrottle/test/lab/require"
)

// processes are those of the modelled host: one that judges, which may end.
type processes struct{ ended bool }

func (*processes) Allowed(int) (cpuset.CPUSet, error) { return cpuset.CPUSet{}, os.ErrNotExist }
func (*processes) KernelThread(int) (bool, error)     { return false, nil }
func (*processes) AllProcesses() (bool, error)        { return true, nil }
func (*processes) Threads(pid int) ([]int, error)     { return []int{pid}, nil }
func (*processes) Self() (journal.Process, error) {
	return journal.Process{PID: 4711, Started: 1}, nil
}
func (p *processes) Runs(journal.Process) (bool, error) { return !p.ended, nil }

var errKilled = errors.New("killed")

// killed runs a fix that is killed at its n-th look at the world, and reports
// whether it got there.
func (b *bench) killed(n int) (was bool) {
	count := func() {
		if n--; n == 0 {
			panic(errKilled)
		}
	}
	look, wait, source, ask := b.env.Observe, b.env.Wait, b.env.Latencies, b.options.Ask
	b.env.Observe = func(ctx context.Context, containers []container.Container, window time.Duration) ([]observe.Observation, error) {
		count()
		return look(ctx, containers, window)
	}
	b.env.Wait = func(ctx context.Context, d time.Duration) error { count(); return wait(ctx, d) }
	if source != nil {
		b.env.Latencies = func(ctx context.Context, since time.Time) (slo.Answer, error) { count(); return source(ctx, since) }
	}
	b.options.Ask = func(question string) (bool, error) { count(); return ask(question) }
	defer func() {
		if p := recover(); p != nil {
			if p != errKilled {
				panic(p)
			}
			was = true
		}
	}()
	_, _ = b.do(b.t.Context(), b.env, b.options)
	return false
}

// A fix that is killed anywhere between the first look and the verdict leaves
// nothing in force: the next writer rolls it back, byte for byte.
func TestKilledBetweenWriteAndVerdict(t *testing.T) {
	require.Unraced(t, "TestAskedForIsJudged has the same looks, each beside its recording")
	for name, set := range map[string]func(*bench){
		"with a source": func(b *bench) { b.latencies = [][]float64{same(97), same(13), same(12)} },
		"without":       func(*bench) {},
		"undone":        func(b *bench) { b.stoppedAfter = 0.9 },
		"other work":    func(b *bench) { b.asked(40, 28) },
	} {
		t.Run(name, func(t *testing.T) {
			onTrial := 0
			for n := 1; ; n++ {
				b := newBench(t)
				set(b)
				b.source()
				p := &processes{}
				b.env.Apply.Proc = p
				b.options.Ask = func(string) (bool, error) { return true, nil }
				before := b.kernel.Snapshot()
				was := b.killed(n)
				p.ended = true
				held, err := apply.Status(b.env.Apply)
				if err != nil {
					t.Fatal(err)
				}
				if was {
					for _, f := range held {
						if onTrial++; f.Trial == nil || f.Trial.State != txn.TrialAbandoned || f.Trial.PID != 4711 {
							t.Errorf("killed at %d: %+v", n, f)
						}
					}
				}
				if _, err := apply.Recover(t.Context(), b.env.Apply); err != nil {
					t.Fatal(err)
				}
				left := before.Settings().Diff(b.kernel.Snapshot().Settings())
				if was && len(left) > 0 {
					t.Errorf("killed at %d, left in force: %q", n, left)
				}
				if !was {
					if kept := name != "undone"; (len(left) > 0) != kept || (len(held) == 1) != kept {
						t.Errorf("to its end: left %q, held %+v", left, held)
					}
					break
				}
			}
			if onTrial < 2 {
				t.Errorf("killed on trial %d times", onTrial)
			}
		})
	}
}

// What was asked for by apply is on trial only where it may be undone.
func TestAppliedIsNotOnTrial(t *testing.T) {
	for _, kind := range []remedy.Kind{remedy.Pin, remedy.Burst} {
		b := newBench(t)
		b.do, b.options.Wish = Apply, policy.Wish{Request: remedy.Request{Kind: kind}}
		p := &processes{}
		b.env.Apply.Proc = p
		if !b.killed(2) {
			t.Fatal("not killed")
		}
		p.ended = true
		held, err := apply.Status(b.env.Apply)
		if err != nil || len(held) != 1 || held[0].Trial != nil {
			t.Errorf("%s: %+v, %v", kind, held, err)
		}
	}
}

// A trial that another command ends is not kept, and no success.
func TestRestoredMeanwhile(t *testing.T) {
	b := newBench(t)
	b.options.Ask = func(question string) (bool, error) {
		if question != QuestionApply {
			if _, err := apply.Restore(t.Context(), b.env.Apply, apply.Selector{}); err != nil {
				t.Fatal(err)
			}
		}
		return true, nil
	}
	got, err := b.run()
	if !errors.As(err, new(*apply.NotOnTrial)) || got.Kept || !got.StoppedAbove {
		t.Errorf("kept %v, above %v, %v", got.Kept, got.StoppedAbove, err)
	}
	if quota, err := b.kernel.Read(cgroup.CPU, "/busy", "cpu.cfs_quota_us"); err != nil || quota != "100000" {
		t.Errorf("quota %q, %v", quota, err)
	}
}
