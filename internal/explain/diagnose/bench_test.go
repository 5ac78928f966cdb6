package diagnose_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/see/recording"
)

// busy is a container that switches 100,000 times a second on 16 CPUs: 400 threads in 8 pools, a third of
// which wait at any time. Each fourth switch gives the CPU to another owner, and every 100 ms it is
// throttled.
func busy(switches int) (recording.Header, []recording.Event) {
	const cpus, threads = 16, 400
	rng := rand.New(rand.NewPCG(1, 2))
	all := make([]int, cpus)
	for i := range all {
		all[i] = i
	}
	h := recording.Header{
		Host: recording.Host{CPUs: cpuset.New(all...)}, CPUsAllowed: cpuset.New(all...), Target: recording.Target{ID: 5, Name: "x"},
		Levels:   []recording.Level{{ID: 5, QuotaNS: new(int64(800_000_000)), PeriodNS: 100_000_000}},
		Features: recording.Features{Mark: recording.MarkTask, Periods: true},
	}
	var asleep, waiting []uint32
	for i := range uint32(threads) {
		h.Threads = append(h.Threads, recording.Thread{TID: 1000 + i, TGID: 1000, Comm: fmt.Sprintf("pool-%c-%d", 'a'+i%8, i)})
		asleep = append(asleep, 1000+i)
	}
	on := make([]uint32, cpus)
	owner := make([]uint32, cpus)
	var events []recording.Event
	at, period := int64(0), int64(100_000_000)
	for n := 0; n < switches; {
		at += 5000 + rng.Int64N(10_000)
		if at > period {
			events = append(events, recording.Event{AtNS: period, Kind: recording.Period, Cgroup: 5,
				Period: recording.PeriodState{QuotaNS: 800_000_000, StoppedCPUs: uint32(rng.IntN(2))}})
			period += 100_000_000
		}
		cpu := rng.IntN(cpus)
		if len(waiting) < threads/3 {
			i := rng.IntN(len(asleep))
			tid := asleep[i]
			asleep[i] = asleep[len(asleep)-1]
			asleep = asleep[:len(asleep)-1]
			waiting = append(waiting, tid)
			events = append(events, recording.Event{AtNS: at, Kind: recording.Wakeup, CPU: int32(cpu), Thread: tid})
			continue
		}
		n++
		e := recording.Event{AtNS: at, Kind: recording.Switch, CPU: int32(cpu), Thread: on[cpu], Owner: owner[cpu]}
		if prev := on[cpu]; prev != 0 {
			if rng.IntN(2) == 0 {
				e.Flags = recording.PrevRunnable
				if rng.IntN(50) == 0 {
					e.Flags |= recording.Throttled
				}
				waiting = append(waiting, prev)
			} else {
				asleep = append(asleep, prev)
			}
		}
		on[cpu], owner[cpu] = 0, recording.Idle
		if rng.IntN(4) > 0 {
			i := rng.IntN(len(waiting))
			e.NextThread = waiting[i]
			waiting[i] = waiting[len(waiting)-1]
			waiting = waiting[:len(waiting)-1]
			on[cpu] = e.NextThread
		} else {
			e.NextOwner = uint32(rng.IntN(6))
			owner[cpu] = e.NextOwner
		}
		events = append(events, e)
	}
	return h, events
}

// BenchmarkAnalysis is one second of a recording at 100,000 switches a second.
func BenchmarkAnalysis(b *testing.B) {
	h, events := busy(100_000)
	b.ReportAllocs()
	for b.Loop() {
		a := diagnose.New(h, diagnose.Options{})
		for i := range events {
			a.Add(&events[i])
		}
		e := a.Finish(recording.Footer{EndNS: events[len(events)-1].AtNS})
		if *e.MeanWidth < 1 {
			b.Fatal(*e.MeanWidth)
		}
	}
	b.ReportMetric(float64(len(events))*float64(b.N)/b.Elapsed().Seconds(), "events/s")
	b.ReportMetric(float64(len(events)), "events")
}

// Memory is bounded: what an event allocates lives only as long as its thread.
func TestBusyAllocatesLittle(t *testing.T) {
	h, events := busy(20_000)
	a := diagnose.New(h, diagnose.Options{})
	for i := range events[:len(events)/2] {
		a.Add(&events[i])
	}
	rest := events[len(events)/2:]
	i := 0
	perEvent := testing.AllocsPerRun(len(rest)-2, func() {
		a.Add(&rest[i])
		i++
	})
	if perEvent > 0.1 {
		t.Errorf("%v allocations per event", perEvent)
	}
}

// A container that always renames and replaces its threads does not make the analysis grow.
func TestThreadsThatComeAndGo(t *testing.T) {
	a := diagnose.New(recording.Header{Host: recording.Host{CPUs: cpuset.New(0)}}, diagnose.Options{})
	at := int64(0)
	for i := range uint32(100_000) {
		at += 1000
		tid := i + 1
		for _, e := range []recording.Event{
			{AtNS: at, Kind: recording.Name, Thread: tid, TGID: tid, Text: fmt.Sprintf("%c%c%c", 'a'+i%26, 'a'+i/26%26, 'a'+i/676%26)},
			{AtNS: at, Kind: recording.Wakeup, Thread: tid},
			{AtNS: at, Kind: recording.Switch, NextThread: tid},
			{AtNS: at + 500, Kind: recording.Switch, Thread: tid},
			{AtNS: at + 500, Kind: recording.Exit, Thread: tid},
		} {
			a.Add(&e)
		}
	}
	e := a.Finish(recording.Footer{EndNS: at})
	sound(t, e)
	if len(e.Pools) > 256 {
		t.Errorf("%d pools", len(e.Pools))
	}
	threads := 0
	for _, p := range e.Pools {
		threads += p.Threads
	}
	if threads != 100_000 {
		t.Errorf("%d threads ran", threads)
	}
}
