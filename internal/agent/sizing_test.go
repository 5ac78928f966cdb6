package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/demand"
	"github.com/unthrottle/unthrottle/internal/demand/store"
	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/objective"
	"github.com/unthrottle/unthrottle/internal/see/observe"
	"github.com/unthrottle/unthrottle/test/lab/require"
)

// using is a container under a limit that uses so many CPUs.
func using(id uint64, cpus float64) observe.Observation {
	name := fmt.Sprintf("c%d", id)
	return observe.Observation{CgroupID: id,
		Container: container.Container{Name: name, Group: cgroup.Group{Path: "/" + name}},
		Window:    10 * time.Second, UsedCPUs: &cpus, LimitCPUs: new(4.0)}
}

// sizedDay runs a sizer for a day over containers that are busiest at an hour of their own, each recording of which
// takes so long.
func sizedDay(s *sizer, containers int, took func(n int) time.Duration,
	each func(o observe.Observation)) (spent time.Duration) {
	began, n := time.Date(2026, 11, 28, 0, 0, 0, 0, time.UTC), 0
	for at := time.Duration(0); at < 24*time.Hour; at += 10 * time.Second {
		now := began.Add(at)
		round := make([]observe.Observation, containers)
		for i := range round {
			phase := 2 * math.Pi * (at.Hours() - float64(i%24)) / 24
			round[i] = using(uint64(i+1), 1+0.8*math.Cos(phase))
		}
		if d := s.round(round, now); d.id != 0 {
			s.begin(d.id, now)
			cost := took(n)
			s.end(cost)
			spent += cost
			n++
			each(round[d.id-1])
		}
	}
	return spent
}

// Whatever a recording takes, sizing a node of 200 containers takes half a percent of a CPU, and one recording more at
// most. None is recorded more than four times a day, and each about when it is busiest.
func TestSizingKeepsToItsShare(t *testing.T) {
	containers := require.Cases(t, 200, 50)
	for name, took := range map[string]func(n int) time.Duration{
		// 150 replays of 1 to 4 ms, and the recording: see BenchmarkPrice.
		"usual": func(n int) time.Duration { return 200*time.Millisecond + 150*time.Duration(1+n%4)*time.Millisecond },
		"large": func(int) time.Duration { return mostPricing },
	} {
		s, times, busy := sizer{}, map[uint64]int{}, 0
		all := 0
		spent := sizedDay(&s, containers, took, func(o observe.Observation) {
			all++
			times[o.CgroupID]++
			if *o.UsedCPUs > 1.2 {
				busy++
			}
		})
		if most := time.Duration(sizingShare * float64(24*time.Hour)); spent > most+mostPricing {
			t.Errorf("%s: %v of CPU time, %v at most", name, spent, most)
		}
		for id, n := range times {
			if n > 4 {
				t.Errorf("%s: %d was recorded %d times", name, id, n)
			}
		}
		t.Logf("%s: %d recordings of %d containers take %v", name, all, len(times), spent)
		if name == "usual" && len(times) < containers*9/10 {
			t.Errorf("%d of %d containers are sized", len(times), containers)
		}
		if all < 10 || all > 24*recordsPerHour {
			t.Errorf("%s: %d recordings", name, all)
		}
	}
}

// A container is recorded when it is about as busy as it was within a day, not before it is known for an hour, and not
// when it does nothing.
func TestBusiest(t *testing.T) {
	began := time.Date(2026, 11, 28, 0, 0, 0, 0, time.UTC)
	of := func(use func(at time.Duration) float64) (first time.Duration) {
		b := busiest{}
		for at := time.Duration(0); at < 48*time.Hour; at += 10 * time.Second {
			b.add(use(at), 10*time.Second, began.Add(at))
			if at > 24*time.Hour && b.busy(began.Add(at)) { // the second day
				return at - 24*time.Hour
			}
		}
		return -1
	}
	peak := func(at time.Duration) float64 {
		if at %= 24 * time.Hour; at > 14*time.Hour && at < 15*time.Hour {
			return 3
		}
		return 1
	}
	if at := of(peak); at < 14*time.Hour || at > 14*time.Hour+10*time.Minute {
		t.Errorf("a peak from 14 to 15 is recorded at %v", at)
	}
	if at := of(func(time.Duration) float64 { return 0.01 }); at != -1 {
		t.Errorf("an idle one at %v", at)
	}
	// The peak of the day before yesterday is forgotten.
	once := func(at time.Duration) float64 {
		if at < time.Hour {
			return 3
		}
		return 1
	}
	if at := of(once); at < 0 || at > 90*time.Minute {
		t.Errorf("after a peak that does not come again at %v", at)
	}
	b := busiest{}
	b.add(1, time.Second, began)
	if b.busy(began.Add(knownFor - time.Second)) {
		t.Error("one that is not known yet")
	}
	// A clock that was set back by a year, or on by one, is no harm.
	for _, off := range []time.Duration{-365 * 24 * time.Hour, 365 * 24 * time.Hour} {
		b.add(1, time.Second, began.Add(off))
	}
}

// What a recording tells goes into the rows, and the recording goes. The search ends when its time is up.
func TestSizesABusyContainer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := flightAgent(t, func(_ context.Context, _ container.Container, w io.Writer) error {
			_, err := io.WriteString(w, "events")
			return err
		})
		goal := objective.Objective{Quantile: 0.99, Bound: 20 * time.Millisecond}
		a.Rules.Rules = []policy.Rule{{Match: policy.Match{Cgroup: "/none/**"}}, {Objective: goal}}
		a.chooser, a.Host = &chooser{}, &cgroup.Host{}
		a.Rules.Export.Dir, a.Rules.Export.Node = t.TempDir(), "n1"
		if err := a.export(); err != nil {
			t.Fatal(err)
		}
		used, replays := time.Duration(0), 0
		a.recorder.threadCPU = func() time.Duration { return used }
		var files []string
		a.Flight.Price = func(
			_ context.Context, file string, of objective.Objective, each func(int, func(int) error) error,
		) (demand.Pricing, error) {
			if files = append(files, file); of != goal {
				t.Errorf("priced for %s", of)
			}
			if _, err := os.Stat(file); err != nil {
				t.Error(err)
			}
			err := each(1000, func(int) error {
				used += 100 * time.Millisecond
				replays++
				return nil
			})
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the search ends with %v", err)
			}
			return demand.Pricing{Of: "requests", Prices: []demand.Price{{Remedy: "burst", MilliCPUs: new(int32(1500))}}}, nil
		}
		a.Flight.Explain = func(_ context.Context, file string) (diagnose.Explanation, error) {
			_, err := os.Stat(file)
			return diagnose.Explanation{Pools: []diagnose.PoolUse{{Name: "nioEventLoopGro", Key: "netty-nio", Size: 8, Widest: 3,
				Runnable: 2, RunnableP99: 1, DefaultCPUs: new(4)}}, IdlePools: []diagnose.PoolUse{{Name: "bus-*", Size: 100}}}, err
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 2)
		go func() { done <- a.recorder.record(ctx) }()
		go func() { done <- a.recorder.price(ctx) }()
		o := using(7, 2)
		o.Start = time.Now()
		a.sink.Round([]observe.Observation{o})
		for range 400 { // of 10 s each
			a.recorder.round(observe.Snapshot{Observations: []observe.Observation{o}})
			time.Sleep(10 * time.Second)
			synctest.Wait()
		}
		if len(files) != 1 || replays != int(mostPricing/(100*time.Millisecond)) {
			t.Errorf("%d recordings, %d replays", len(files), replays)
		}
		if left, _ := filepath.Glob(filepath.Join(SizingDir(a.Flight.Dir), "*")); len(left) > 0 {
			t.Errorf("%q stay", left)
		}
		if a.recorder.sizer.underWay {
			t.Error("it is under way still")
		}
		cancel()
		for range 2 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if _, err := a.sink.Close([]observe.Observation{o}); err != nil {
			t.Fatal(err)
		}
		began := o.Start.UTC()
		rows, err := store.Read(filepath.Join(a.Rules.Export.Dir, "cluster=unknown", "date="+began.Format(time.DateOnly),
			"hour="+began.Format("15"), "n1.parquet"))
		if err != nil || len(rows) != 1 || rows[0].PricedAt == nil || len(rows[0].Prices) != 1 ||
			*rows[0].Prices[0].MilliCPUs != 1500 || rows[0].PricedOf != "requests" || rows[0].ObjectiveMicroseconds == nil ||
			*rows[0].ObjectiveMicroseconds != 20_000 || *rows[0].ObjectiveQuantile != 0.99 {
			t.Errorf("%v: %+v", err, rows)
		}
		if want := []demand.Pool{{Name: "bus-*", Threads: 100}, {Pool: "netty-nio", Threads: 8, Runnable: 2, RunnableP99: 1,
			Running: 2, DefaultCPUs: new(int32(4))}}; !reflect.DeepEqual(rows[0].Pools, want) {
			t.Errorf("%+v", rows[0].Pools)
		}
	})
}
