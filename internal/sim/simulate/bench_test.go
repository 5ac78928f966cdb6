package simulate

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// Events per second of the simulator, and simulated CPU-seconds per second,
// beside the rate of a bare queue with one event per CPU and thread, taken
// just before: others use the machine too.
func BenchmarkService(b *testing.B) {
	for _, cpus := range []int{2, 64, 256} {
		b.Run(fmt.Sprintf("cpus=%d", cpus), func(b *testing.B) {
			s := parseText(b, fmt.Sprintf("version: 1\nduration: 2s\nhost: {cpus: %d}\ncgroups: {app: {quota: %dms}}\n"+
				"workloads: {web: {kind: service, cgroup: app, threads: %d, work: {exponential: 1ms}, arrivals: {per_second: %d}}}\n",
				cpus, 100*cpus, 2*cpus, 700*cpus))
			heap, typical := heapRate(3*cpus), heapRate(64)
			b.ReportAllocs()
			b.ResetTimer()
			events, begin := uint64(0), time.Now()
			for i := range b.N {
				r, err := Run(s, Options{Seed: uint64(i)})
				if err != nil {
					b.Fatal(err)
				}
				events += r.Events
			}
			spent := time.Since(begin).Seconds()
			rate := float64(events) / spent
			b.ReportMetric(rate/1e6, "Mevents/s")
			b.ReportMetric(heap/1e6, "heap-Mevents/s")
			b.ReportMetric(heap/rate, "x-heap")
			b.ReportMetric(typical/rate, "x-heap64") // beside a bare queue of 64 events, on any host
			b.ReportMetric(2*float64(cpus)*float64(b.N)/spent, "cpu-s/s")
		})
	}
}

// heapRate is the events per second of the queue alone, with as many slots.
func heapRate(slots int) float64 {
	const events = 1 << 20
	q, rng := newQueue(slots), rand.New(rand.NewPCG(1, 2))
	for s := range slots {
		q.set(s, time.Duration(rng.Int64N(1e6)))
	}
	gaps := make([]time.Duration, 1024)
	for i := range gaps {
		gaps[i] = time.Duration(rng.Int64N(1e6))
	}
	begin := time.Now()
	for i := range events {
		slot, at := q.pop()
		q.set(slot, at+gaps[i&1023])
	}
	return events / time.Since(begin).Seconds()
}

// What a run allocates it allocates at its beginning: four times the events take
// hardly more, for queues that grow once.
func TestEventsAllocateNothing(t *testing.T) {
	allocations := func(duration string) (n float64, events uint64) {
		s := parseText(t, "version: 1\nduration: "+duration+"\nhost: {cpus: 8}\ncgroups: {app: {quota: 400ms}}\n"+
			"workloads: {web: {kind: service, cgroup: app, threads: 16, work: {exponential: 1ms}, timeout: 1s, "+
			"arrivals: {per_second: 3000}}}\n")
		n = testing.AllocsPerRun(1, func() {
			r, err := Run(s, Options{Seed: 1})
			if err != nil {
				t.Fatal(err)
			}
			events = r.Events
		})
		return n, events
	}
	short, fewer := allocations("2s")
	long, more := allocations("8s")
	if more < 3*fewer || long-short > float64(more-fewer)/1000 {
		t.Errorf("%v allocations for %d events, %v for %d", short, fewer, long, more)
	}
}
