package budget

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// within runs a task with a permit in its context, as the handlers of shed and grpcshed are run.
func within(t *testing.T, ctx context.Context, b *Budget, class Class, task func(ctx context.Context, p *Permit)) {
	t.Helper()
	p, err := b.Acquire(ctx, class)
	must(t, err)
	defer p.Release()
	task(WithPermit(ctx, &p), &p)
}

// idle fails where a task is counted as running or waiting.
func idle(t *testing.T, b *Budget) {
	t.Helper()
	synctest.Wait()
	for _, class := range Classes {
		if s := b.Snapshot().Classes[class]; s.Running != 0 || s.Waiting != 0 || s.Started != s.Finished {
			t.Errorf("%v at the end: %+v", class, s)
		}
	}
}

// A task within a task of App or Background has its permit already, and one of IO within any task; other work within IO has not.
func TestATaskWithinATaskHasItsPermit(t *testing.T) {
	for _, outer := range Classes {
		for _, inner := range Classes {
			synctest.Test(t, func(t *testing.T) {
				b := newHost(70*ms).start(t, Options{NoPacing: true})
				counted := uint64(1)
				if outer == IO && inner != IO {
					counted = 2
				}
				begun := time.Now()
				within(t, t.Context(), b, outer, func(ctx context.Context, _ *Permit) {
					ran := false
					must(t, b.Do(ctx, inner, func() { ran = true }))
					p, err := b.Acquire(ctx, inner)
					must(t, err)
					deep := WithPermit(ctx, &p)
					must(t, b.Do(deep, inner, func() {}))
					p.Release()
					must(t, b.Do(deep, inner, func() {})) // by the outer permit
					p, err = b.AcquireWithin(ctx, inner, 1)
					must(t, err)
					p.Release()
					if !ran {
						t.Errorf("%v within %v did not run", inner, outer)
					}
				})
				if took := time.Since(begun); took != 0 {
					t.Errorf("%v within %v waited %v", inner, outer, took)
				}
				all := uint64(0)
				for _, class := range Classes {
					all += b.Snapshot().Classes[class].Started
				}
				if nested := counted == 1; nested != (all == 1) {
					t.Errorf("%v within %v: %d permits", inner, outer, all)
				}
				idle(t, b)
			})
		}
	}
}

// As many requests as there are permits come at once, and each asks the budget again.
func TestAllPermitsAskAgainAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newHost(400*ms).start(t, Options{NoPacing: true})
		begun := time.Now()
		var requests sync.WaitGroup
		for range 4 {
			requests.Go(func() {
				within(t, t.Context(), b, App, func(ctx context.Context, _ *Permit) {
					time.Sleep(ms) // all have theirs
					must(t, b.Do(ctx, App, func() {}))
				})
			})
		}
		requests.Wait()
		if took := time.Since(begun); took != ms {
			t.Errorf("they took %v", took)
		}
		idle(t, b)
	})
}

// Goroutines of a request inherit its context, and its permit as long as it has it.
func TestGoroutinesOfARequestInheritItsPermit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newHost(70*ms).start(t, Options{NoPacing: true})
		begun := time.Now()
		var after context.Context
		within(t, t.Context(), b, App, func(ctx context.Context, p *Permit) {
			after = ctx
			var parts sync.WaitGroup
			for range 20 {
				parts.Go(func() {
					must(t, b.Do(ctx, App, func() { time.Sleep(ms) }))
					must(t, Checkpoint(ctx))
					must(t, Wait(ctx, func() { time.Sleep(ms) }))
					must(t, b.Do(ctx, Background, func() {}))
					must(t, Checkpoint(ctx))
				})
			}
			parts.Wait()
			if s := b.Snapshot().Classes[App]; s.Running != 1 {
				t.Errorf("after the parts of a request: %+v", s)
			}
		})
		if took := time.Since(begun); took != 2*ms {
			t.Errorf("took %v", took)
		}
		idle(t, b)
		// The permit has been released: another has it now, and what goes on with the context waits for its own.
		other, err := b.Acquire(t.Context(), App)
		must(t, err)
		ctx, cancel := context.WithCancel(after)
		ran := false
		go func() {
			if err := b.Do(ctx, App, func() { ran = true }); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}()
		synctest.Wait()
		if s := b.Snapshot().Classes[App]; ran || s.Waiting != 1 {
			t.Errorf("after its request: ran %v, %+v", ran, s)
		}
		cancel()
		synctest.Wait()
		must(t, Wait(after, func() {}))
		other.Release()
		idle(t, b)
	})
}

// While a task waits for something else, others have its permit; what it runs meanwhile takes one again, for the whole task.
func TestWhatRunsWhileThePermitIsLentTakesItAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newHost(70*ms).start(t, Options{NoPacing: true})
		running := func(when string, want int) {
			t.Helper()
			if s := b.Snapshot().Classes[App]; s.Running != want {
				t.Errorf("%s: %+v", when, s)
			}
		}
		within(t, t.Context(), b, App, func(ctx context.Context, _ *Permit) {
			must(t, Wait(ctx, func() {
				running("while it waits", 0)
				other, err := b.Acquire(t.Context(), App)
				must(t, err)
				if _, err := b.AcquireWithin(ctx, App, ms); !errors.Is(err, ErrLate) {
					t.Errorf("another has the permit: %v", err)
				}
				var parts sync.WaitGroup
				for range 3 {
					parts.Go(func() { must(t, b.Do(ctx, App, func() { running("a part", 1) })) })
					parts.Go(func() {
						if _, err := b.AcquireWithin(ctx, App, ms); !errors.Is(err, ErrLate) {
							t.Errorf("a part that must not be late: %v", err)
						}
					})
				}
				time.Sleep(10 * ms)
				other.Release()
				parts.Wait()
			}))
			running("after it", 1)
			// A task within lends the permit of the one around it.
			p, err := b.Acquire(ctx, App)
			must(t, err)
			defer p.Release()
			must(t, p.Wait(ctx, func() { running("a task within waits", 0) }))
			must(t, p.Checkpoint(ctx))
		})
		idle(t, b)
	})
}

// A request that ends while a goroutine of it waits for something else has released its permit for good.
func TestARequestEndsWhileAPartOfItWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newHost(70*ms).start(t, Options{NoPacing: true})
		within(t, t.Context(), b, App, func(ctx context.Context, _ *Permit) {
			go func() {
				if err := Wait(ctx, func() { time.Sleep(10 * ms) }); err != nil {
					t.Error(err)
				}
			}()
			synctest.Wait()
		})
		time.Sleep(20 * ms)
		idle(t, b)
	})
}

// The permit of one budget is none of another, and does not hide the one around it.
func TestThePermitOfAnotherBudgetIsNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, other := newHost(70*ms).start(t, Options{NoPacing: true}), newHost(70*ms).start(t, Options{NoPacing: true})
		within(t, t.Context(), b, App, func(ctx context.Context, _ *Permit) {
			within(t, ctx, other, App, func(ctx context.Context, _ *Permit) {
				must(t, b.Do(ctx, App, func() {}))
				must(t, other.Do(ctx, App, func() {}))
			})
		})
		for _, budget := range []*Budget{b, other} {
			if s := budget.Snapshot().Classes[App]; s.Started != 1 {
				t.Errorf("%+v", s)
			}
			idle(t, budget)
		}
	})
}

// An ended context ends a task within a task as well.
func TestAnEndedContextEndsATaskWithinATask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newHost(70*ms).start(t, Options{NoPacing: true})
		within(t, t.Context(), b, App, func(ctx context.Context, _ *Permit) {
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			if err := b.Do(ctx, App, func() { t.Error("ran") }); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
		idle(t, b)
	})
}

// However much the rest of the container uses, a task starts: the kernel shares the quota among all of it.
func TestTasksStartBesideARestThatUsesAllOfTheQuota(t *testing.T) {
	for _, others := range []time.Duration{900 * ms, time.Second, 30 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			h := newHost(100 * ms)
			h.others = others
			b := h.start(t, Options{})
			ctx, cancel := context.WithCancel(t.Context())
			defer time.Sleep(time.Second) // the tasks end
			defer cancel()
			load(ctx, h, b, App, 2, 5*ms)
			load(ctx, h, b, Background, 2, 5*ms)
			time.Sleep(10 * time.Second)
			before := b.Snapshot()
			if !before.Paced {
				t.Fatalf("%+v", before)
			}
			time.Sleep(10 * time.Second)
			for _, class := range []Class{App, Background} {
				if n := b.Snapshot().Classes[class].Finished - before.Classes[class].Finished; n < 5 {
					t.Errorf("beside %v a second: %d tasks of %v in 10 s", others, n, class)
				}
			}
		})
	}
}
