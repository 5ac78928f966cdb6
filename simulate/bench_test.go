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
			heap := heapRate(3 * cpus)
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
