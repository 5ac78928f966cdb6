package budget

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestSizes(t *testing.T) {
	for _, c := range []struct {
		limit float64
		cpus  int
		paced bool
		want  sizes
	}{
		{0.5, 8, true, sizes{2, [...]int{4, 1, 1}}},
		{0.5, 8, false, sizes{1, [...]int{4, 1, 1}}},
		{1, 8, true, sizes{2, [...]int{4, 1, 1}}},
		{1.5, 8, true, sizes{3, [...]int{8, 2, 1}}},
		{1.5, 2, true, sizes{3, [...]int{8, 2, 1}}},
		{1.5, 8, false, sizes{1, [...]int{8, 1, 1}}},
		{4, 8, true, sizes{0, [...]int{16, 4, 2}}},
		{8, 8, true, sizes{}},
		{math.Inf(1), 8, true, sizes{}},
		{0, 8, true, sizes{}},
		{math.NaN(), 8, true, sizes{}},
		{1e-9, 8, true, sizes{2, [...]int{4, 1, 1}}},
	} {
		if got := sizesOf(c.limit, c.cpus, c.paced); got != c.want {
			t.Errorf("%v of %d CPUs, paced %v: %+v, want %+v", c.limit, c.cpus, c.paced, got, c.want)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// The kernel's counters are ints: wherever they turn over, the phase of the period is learnt, and its limit paced.
func TestCountersTurnOver(t *testing.T) {
	for _, before := range []int64{1<<31 - 5, -5, 1 << 31} {
		synctest.Test(t, func(t *testing.T) {
			h := newHost(70 * ms)
			h.periodsBefore = before
			b := h.start(t, Options{})
			for range 400 {
				must(t, b.Do(t.Context(), App, func() { h.burn(5 * ms) }))
			}
			want := uint64(uint32(before + int64(time.Since(h.begun)/h.period)))
			if s := b.Snapshot(); !s.Paced || s.Periods == nil || uint32(*s.Periods-want+5) > 10 {
				t.Errorf("from %d: %+v, want about %d periods", before, s, want)
			}
			if said := h.warned(); len(said) != 0 {
				t.Errorf("from %d: %q", before, said)
			}
		})
	}
}

// A class that is to be asked again earlier than was known before is asked earlier, and not later for what is asked after that.
func TestTheEarliestTimeToAskCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newHost(70*ms).start(t, Options{})
		q := &b.queues[App]
		q.mu.Lock()
		for _, after := range []time.Duration{time.Second, 10 * ms, 100 * ms} {
			b.ask(q, after)
		}
		q.mu.Unlock()
		time.Sleep(11 * ms)
		synctest.Wait()
		q.mu.Lock()
		defer q.mu.Unlock()
		if q.armed {
			t.Error("after 10 ms it was not asked")
		}
	})
}

func TestIONeverWaitsBehindApp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newHost(70*ms).start(t, Options{})
		for range 20 {
			go b.Do(t.Context(), App, func() { time.Sleep(time.Second) })
		}
		synctest.Wait()
		if s := b.Snapshot().Classes[App]; s.Running != 1 || s.Waiting != 19 {
			t.Fatalf("%+v", s)
		}
		before := time.Now()
		for range 100 {
			must(t, b.Do(t.Context(), IO, func() {}))
		}
		if took := time.Since(before); took != 0 {
			t.Errorf("IO waited %v", took)
		}
		time.Sleep(time.Minute) // the tasks end
	})
}

func TestFirstComeFirstServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newHost(70*ms).start(t, Options{NoPacing: true})
		first, err := b.Acquire(t.Context(), App)
		must(t, err)
		var order []int
		ctx, cancel := context.WithCancel(t.Context())
		for i := range 5 {
			go func() {
				c := t.Context()
				if i == 2 {
					c = ctx
				}
				err := b.Do(c, App, func() { order = append(order, i) })
				if want := i == 2; want != errors.Is(err, context.Canceled) {
					t.Errorf("task %d: %v", i, err)
				}
			}()
			synctest.Wait()
		}
		cancel()
		synctest.Wait()
		first.Release()
		first.Release() // of no effect
		synctest.Wait()
		if len(order) != 4 || order[0] != 0 || order[1] != 1 || order[2] != 3 || order[3] != 4 {
			t.Error(order)
		}
		if s := b.Snapshot().Classes[App]; s.Running != 0 || s.Waiting != 0 || s.Started != 5 || s.Finished != 5 {
			t.Errorf("%+v", s)
		}
		if err := b.Do(ctx, App, func() { t.Error("ran") }); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

func TestAPanicReleases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newHost(70*ms).start(t, Options{NoPacing: true})
		func() {
			defer func() { _ = recover() }()
			_ = b.Do(t.Context(), App, func() { panic("of the task") })
		}()
		must(t, b.Do(t.Context(), App, func() {}))
	})
}

// 10,000 pools of a program share the budget: no more than its permits run, each task has its turn, and there is no goroutine
// of the library for each.
func TestTenThousandPools(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(150 * ms)
		b := h.start(t, Options{NoPacing: true, KeepGOMAXPROCS: true})
		var running, most, done atomic.Int64
		var pools sync.WaitGroup
		for pool := range 10_000 {
			class := Classes[pool%classes]
			pools.Go(func() {
				for range 3 {
					must(t, b.Do(t.Context(), class, func() {
						if n := running.Add(1); n > most.Load() {
							most.Store(n)
						}
						time.Sleep(time.Microsecond)
						running.Add(-1)
						done.Add(1)
					}))
				}
			})
		}
		pools.Wait()
		if done.Load() != 30_000 || most.Load() > 8+1+1 {
			t.Errorf("%d done, %d at once", done.Load(), most.Load())
		}
	})
}

// periods collects the CPU time used in each period of the host.
func (h *host) periods(n int) (all []time.Duration) {
	now := time.Since(h.begun)
	time.Sleep(h.period - (now-h.phase)%h.period)
	before, _ := h.cpu()
	for range n {
		time.Sleep(h.period)
		after, _ := h.cpu()
		all = append(all, after-before)
		before = after
	}
	return all
}

// load keeps a class busy with tasks until the context ends.
func load(ctx context.Context, h *host, b *Budget, class Class, workers int, task time.Duration) {
	for range workers {
		go func() {
			for b.Do(ctx, class, func() { h.burn(task) }) == nil {
			}
		}()
	}
}

func TestPacingKeepsTheQuotaAndUsesIt(t *testing.T) {
	for _, quota := range []time.Duration{50 * ms, 70 * ms, 150 * ms} {
		for _, task := range []time.Duration{ms, 7 * ms, 20 * ms, 60 * ms} {
			synctest.Test(t, func(t *testing.T) {
				h := newHost(quota)
				b := h.start(t, Options{})
				ctx, cancel := context.WithCancel(t.Context())
				defer time.Sleep(time.Second) // the tasks end
				defer cancel()
				load(ctx, h, b, App, 6, task)
				time.Sleep(3 * time.Second)
				if s := b.Snapshot(); !s.Paced || s.LimitCPUs == nil {
					t.Fatalf("after 3 s: %+v", s)
				}
				var all time.Duration
				// a slack that shrinks until a stop costs one period in 20, by a part of the quota
				const periods, mostOver, mostOf = 200, 16, 6
				over := 0
				for i, used := range h.periods(periods) {
					if used > quota {
						over++
					}
					if used > quota+quota/mostOf {
						t.Errorf("quota %v, tasks of %v: %v used in period %d", quota, task, used, i)
					}
					all += used
				}
				if over > mostOver {
					t.Errorf("quota %v, tasks of %v: %d of %d periods are over", quota, task, over, periods)
				}
				t.Logf("quota %v, tasks of %v: %d of %d periods are over, %.3f of the quota is used", quota, task, over,
					periods, float64(all)/float64(periods*quota))
				if all < periods*quota*75/100 {
					t.Errorf("quota %v, tasks of %v: only %v of %v used", quota, task, all, periods*quota)
				}
				if b.Snapshot().Classes[App].Held == 0 {
					t.Error("nothing was held back")
				}
			})
		}
	}
}

func TestPacingLeavesWhatTheRestOfTheContainerUses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(100 * ms)
		h.others = 400 * ms
		b := h.start(t, Options{})
		ctx, cancel := context.WithCancel(t.Context())
		defer time.Sleep(time.Second) // the tasks end
		defer cancel()
		load(ctx, h, b, App, 6, 5*ms)
		time.Sleep(10 * time.Second)
		for i, used := range h.periods(20) {
			if used > 60*ms {
				t.Errorf("%v used in period %d, beside 40 ms of the rest of the container", used, i)
			}
		}
	})
}

func TestACheckpointHoldsALongTaskBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(70 * ms)
		b := h.start(t, Options{})
		ctx, cancel := context.WithCancel(t.Context())
		defer time.Sleep(time.Second) // the task ends
		defer cancel()
		go func() {
			p, err := b.Acquire(ctx, Background)
			must(t, err)
			defer p.Release()
			for p.Checkpoint(ctx) == nil {
				h.burn(ms)
			}
		}()
		time.Sleep(20 * time.Second)
		var all time.Duration
		for i, used := range h.periods(50) {
			all += used
			if used > 70*ms {
				t.Errorf("%v used in period %d", used, i)
			}
		}
		if s := b.Snapshot().Classes[Background]; s.Held == 0 || s.Overdue != 0 || all < 50*70*ms/2 {
			t.Errorf("%v used: %+v", all, s)
		}
	})
}

func TestBackgroundYieldsToApp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(70 * ms)
		b := h.start(t, Options{})
		ctx, cancel := context.WithCancel(t.Context())
		defer time.Sleep(time.Second) // the tasks end
		defer cancel()
		load(ctx, h, b, Background, 3, 5*ms)
		load(ctx, h, b, App, 3, 5*ms)
		time.Sleep(10 * time.Second)
		s := b.Snapshot()
		if app, background := s.Classes[App].Finished, s.Classes[Background].Finished; background == 0 || background*4 > app {
			t.Errorf("%d of App, %d of Background", app, background)
		}
	})
}

func TestTheBudgetFollowsTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(150 * ms)
		b := h.start(t, Options{})
		app := func() (float64, int) {
			s := b.Snapshot()
			if s.LimitCPUs == nil {
				return 0, s.Classes[App].Permits
			}
			return *s.LimitCPUs, s.Classes[App].Permits
		}
		if cpus, permits := app(); cpus != 1.5 || permits != 2 {
			t.Errorf("%v CPUs, %d permits", cpus, permits)
		}
		release := make(chan struct{})
		for range 3 {
			go b.Do(t.Context(), App, func() { <-release })
		}
		synctest.Wait()
		h.set(func() { h.quota = 400 * ms })
		time.Sleep(2 * time.Second)
		if cpus, permits := app(); cpus != 4 || permits != 4 {
			t.Errorf("%v CPUs, %d permits", cpus, permits)
		}
		if running := b.Snapshot().Classes[App].Running; running != 3 {
			t.Errorf("%d run after the limit grew", running)
		}
		close(release)
		h.set(func() { h.quota = 50 * ms })
		time.Sleep(2 * time.Second)
		if cpus, permits := app(); cpus != 0.5 || permits != 1 {
			t.Errorf("%v CPUs, %d permits", cpus, permits)
		}
		h.set(func() { h.quota = 0 })
		time.Sleep(2 * time.Second)
		if cpus, permits := app(); cpus != 0 || permits != 0 {
			t.Errorf("without a limit: %v CPUs, %d permits", cpus, permits)
		}
		if len(h.procs) != 4 || h.procs[0] != 3 || h.procs[1] != 0 || h.procs[2] != 2 || h.procs[3] != 0 {
			t.Errorf("GOMAXPROCS was set to %v", h.procs)
		}
		if w := h.warned(); len(w) != 1 || !strings.Contains(w[0], "the CPU limit is gone") {
			t.Errorf("warnings: %q", w)
		}
	})
}

// unbounded fails unless more tasks run at once than any limit allows.
func unbounded(t *testing.T, b *Budget) {
	t.Helper()
	release := make(chan struct{})
	for range 500 {
		go b.Do(t.Context(), Background, func() { <-release })
	}
	synctest.Wait()
	if s := b.Snapshot().Classes[Background]; s.Running < 500 {
		t.Errorf("%+v: the program does not run as without the library", s)
	}
	close(release)
	synctest.Wait()
}

func TestFilesThatCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(70 * ms)
		b := h.start(t, Options{})
		h.set(func() { h.broken = errGone })
		time.Sleep(pollEvery + ms)
		h.set(func() { h.broken = nil })
		time.Sleep(time.Second)
		if s := b.Snapshot(); s.LimitCPUs == nil || len(h.warned()) != 0 {
			t.Fatalf("after one reading that failed: %+v, %q", s, h.warned())
		}
		h.set(func() { h.broken = errGone })
		time.Sleep(10 * time.Second)
		unbounded(t, b)
		if w := h.warned(); len(w) != 1 || !strings.Contains(w[0], "the program runs on as without a limit") {
			t.Errorf("warnings: %q", w)
		}
		h.set(func() { h.broken = nil })
		time.Sleep(2 * time.Second)
		if s := b.Snapshot(); s.LimitCPUs == nil || *s.LimitCPUs != 0.7 {
			t.Errorf("once they can be read again: %+v", s)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		h := newHost(70 * ms)
		h.broken = errGone
		b := h.start(t, Options{})
		unbounded(t, b)
		if len(h.warned()) != 1 {
			t.Errorf("warnings: %q", h.warned())
		}
	})
}

// Without the counters of periods the phase cannot be learnt: sizes hold, and nothing is held back.
func TestWithoutCountersThereIsNoPacing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(150 * ms)
		h.noCounters = true
		b := h.start(t, Options{})
		ctx, cancel := context.WithCancel(t.Context())
		defer time.Sleep(time.Second) // the tasks end
		defer cancel()
		load(ctx, h, b, App, 6, 5*ms)
		time.Sleep(10 * time.Second)
		s := b.Snapshot()
		if app := s.Classes[App]; s.Paced || app.Permits != 1 || app.Held != 0 || app.Finished < 1900 || s.Periods != nil {
			t.Errorf("%+v", s)
		}
		if w := h.warned(); len(w) != 1 || !strings.Contains(w[0], "cpu.stat: no nr_periods; nothing is held back") {
			t.Errorf("warnings: %q", w)
		}
	})
}

func TestATaskThatNeverReturnsLosesItsPermit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(70 * ms)
		b := h.start(t, Options{})
		release := make(chan struct{})
		for range 3 {
			go b.Do(t.Context(), App, func() { <-release })
		}
		ran := make(chan struct{})
		synctest.Wait()
		go b.Do(t.Context(), App, func() { close(ran) })
		time.Sleep(5 * time.Second)
		select {
		case <-ran:
			t.Error("the permit was given away after 5 s")
		default:
		}
		<-ran // synctest says so if it never comes
		time.Sleep(time.Minute)
		s := b.Snapshot().Classes[App]
		if s.Overdue != 3 || s.Running != 3 {
			t.Errorf("%+v", s)
		}
		if w := h.warned(); len(w) != 1 || !strings.Contains(w[0], "app") {
			t.Errorf("warnings: %q", w)
		}
		close(release)
		synctest.Wait()
		if s := b.Snapshot().Classes[App]; s.Overdue != 0 || s.Running != 0 {
			t.Errorf("after they returned: %+v", s)
		}
	})
}

// A task of two seconds that burns for half of its time teaches so while it runs, and when it ends.
func TestALongTaskTeaches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(150 * ms)
		b := h.start(t, Options{})
		check := func(when string) {
			b.pacer.mu.Lock()
			defer b.pacer.mu.Unlock()
			if cost := b.pacer.busy.Cost(time.Second); cost < 400*ms || cost > 600*ms {
				t.Errorf("%s: a second of a task costs %v of CPU time", when, cost)
			}
		}
		must(t, b.Do(t.Context(), App, func() {
			for range 100 {
				h.burn(10 * ms)
				time.Sleep(10 * ms)
			}
			check("while it runs")
			for range 50 {
				h.burn(10 * ms)
				time.Sleep(10 * ms)
			}
		}))
		time.Sleep(time.Second)
		check("after it")
	})
}

func TestClockJumps(t *testing.T) {
	used := time.Duration(0)
	p := pacer{cpu: func() (time.Duration, error) { return used, nil }, quota: 70 * ms, period: 100 * ms}
	p.busy.Restart()
	p.on.Store(true)
	p.phase.Restart(100 * ms)
	learn := time.Hour
	for range 100 {
		next := p.phase.Next(learn)
		p.phase.Add(sampleOf(next, 100*ms))
		learn = next
	}
	if !p.phase.Known() {
		t.Fatal("the phase is not known")
	}
	for _, now := range []time.Duration{learn, learn + 1000*time.Hour, 0, -time.Hour, learn, 1 << 62} {
		used += 10 * ms
		if ok, wait := p.decide(now, App, ms, 0); !ok && (wait <= 0 || wait > 100*ms) {
			t.Errorf("at %v: waits %v", now, wait)
		}
	}
	used = -time.Hour // as after a restored checkpoint of the process
	if ok, wait := p.decide(learn, App, ms, 0); !ok && wait > 100*ms {
		t.Errorf("CPU time went back: waits %v", wait)
	}
}

// A process that starts while its cpuset is as narrow as its limit has a limit that binds once the cpuset is wide again.
func TestTheCPUSetMayBecomeWider(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(200 * ms)
		h.allowed = "0-1"
		b := h.start(t, Options{})
		if n := b.Snapshot().Classes[App].Permits; n != 0 {
			t.Errorf("2 CPUs, and a limit of 2: %d permits", n)
		}
		h.set(func() { h.allowed = "0-3,8,60-63" })
		time.Sleep(time.Second)
		if n := b.Snapshot().Classes[App].Permits; n != 2 {
			t.Errorf("9 CPUs, and a limit of 2: %d permits", n)
		}
		h.set(func() { h.allowed = "x" })
		time.Sleep(time.Second)
		if n := b.Snapshot().Classes[App].Permits; n != 2 {
			t.Errorf("a list that cannot be read: %d permits", n)
		}
	})
}

func TestTheUsersGOMAXPROCSWins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(70 * ms)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		var said []string
		b := start(ctx, Options{Warn: func(err error) { said = append(said, err.Error()) }}, world{h, h.cpu, nil, 8, file{}})
		if len(said) != 1 || !strings.Contains(said[0], "GOMAXPROCS is set in the environment and stays; 2 fits the limit of 0.7 CPUs") {
			t.Errorf("%q", said)
		}
		if s := b.Snapshot(); s.GOMAXPROCS != 0 {
			t.Errorf("%+v", s)
		}
	})
}

func TestWhatComesTooLateIsRejectedAndThenNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newHost(100*ms).start(t, Options{NoPacing: true})
		// A burst of three times what one permit carries, of tasks of 10 ms, for three seconds.
		burst := func(every time.Duration, n int) (late int64, slowest time.Duration) {
			var rejected, longest atomic.Int64
			var tasks sync.WaitGroup
			for range n {
				begun := time.Now()
				tasks.Go(func() {
					p, err := b.AcquireWithin(t.Context(), App, 100*ms)
					if errors.Is(err, ErrLate) {
						rejected.Add(1)
						return
					}
					must(t, err)
					longest.Store(max(longest.Load(), int64(time.Since(begun))))
					time.Sleep(10 * ms)
					p.Release()
				})
				time.Sleep(every)
			}
			tasks.Wait()
			return rejected.Load(), time.Duration(longest.Load())
		}
		late, slowest := burst(10*ms/3, 900)
		if late < 500 || late > 700 || slowest > 100*ms {
			t.Errorf("overloaded threefold: %d of 900 rejected, the slowest started after %v", late, slowest)
		}
		if late, _ := burst(12*ms, 200); late != 0 {
			t.Errorf("after the burst: %d of 200 rejected", late)
		}
	})
}

func TestNothingIsAllocatedForATask(t *testing.T) {
	h := newHost(700 * ms)
	b := h.start(t, Options{KeepGOMAXPROCS: true})
	n := 0
	for _, class := range Classes {
		if got := testing.AllocsPerRun(1000, func() { _ = b.Do(context.Background(), class, func() { n++ }) }); got >= 1 {
			t.Errorf("class %v: %v allocations a task", class, got)
		}
	}
}

func TestTheBudgetOfTheProcess(t *testing.T) {
	b := Process()
	if b != Process() {
		t.Error("two budgets")
	}
	if err := Setup(Options{}); err == nil {
		t.Error("set up twice")
	}
	must(t, b.Do(context.Background(), App, func() {}))
	if s := b.Snapshot(); s.Classes[App].Finished == 0 {
		t.Errorf("%+v", s)
	}
}

func TestWhoWaitsForADatabaseLendsItsPermitAndIsNextAfterIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newHost(70*ms).start(t, Options{NoPacing: true})
		var order []string
		go func() {
			p, err := b.Acquire(t.Context(), App)
			must(t, err)
			defer p.Release()
			ctx := WithPermit(t.Context(), &p)
			must(t, Checkpoint(ctx))
			must(t, Wait(ctx, func() { time.Sleep(15 * ms) }))
			order = append(order, "after the query")
		}()
		synctest.Wait()
		for range 3 {
			go b.Do(t.Context(), App, func() {
				time.Sleep(10 * ms)
				order = append(order, "another")
			})
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if want := "another another after the query another"; strings.Join(order, " ") != want {
			t.Errorf("%q, want %q", order, want)
		}
		if s := b.Snapshot().Classes[App]; s.Running != 0 || s.Waiting != 0 {
			t.Errorf("%+v", s)
		}
		ctx, cancel := context.WithCancel(t.Context())
		p, err := b.Acquire(ctx, App)
		must(t, err)
		if err := p.Wait(ctx, cancel); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		p.Release() // of no effect: it has none any more
		ran := false
		must(t, Wait(t.Context(), func() { ran = true }))
		if s := b.Snapshot().Classes[App]; !ran || s.Running != 0 {
			t.Errorf("ran %v, %+v", ran, s)
		}
	})
}
