package simulate

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// Events per second of the simulator, and simulated CPU-seconds per second,
// beside a bare event heap's rate in the same run: BenchmarkBareHeap.
func BenchmarkService(b *testing.B) {
	for _, cpus := range []int{2, 64, 256} {
		b.Run(fmt.Sprintf("cpus=%d", cpus), func(b *testing.B) {
			s := parseText(b, fmt.Sprintf("version: 1\nduration: 2s\nhost: {cpus: %d}\ncgroups: {app: {quota: %dms}}\n"+
				"workloads: {web: {kind: service, cgroup: app, threads: %d, work: {exponential: 1ms}, arrivals: {per_second: %d}}}\n",
				cpus, 100*cpus, 2*cpus, 700*cpus))
			events, begin := uint64(0), time.Now()
			for i := range b.N {
				r, err := Run(s, Options{Seed: uint64(i)})
				if err != nil {
					b.Fatal(err)
				}
				events += r.Events
			}
			spent := time.Since(begin).Seconds()
			b.ReportMetric(float64(events)/spent/1e6, "Mevents/s")
			b.ReportMetric(2*float64(cpus)*float64(b.N)/spent, "cpu-s/s")
		})
	}
}

// The queue alone, with one event per CPU and thread of the service.
func BenchmarkBareHeap(b *testing.B) {
	for _, slots := range []int{6, 192, 768} {
		b.Run(fmt.Sprintf("slots=%d", slots), func(b *testing.B) {
			q, rng := newQueue(slots), rand.New(rand.NewPCG(1, 2))
			for s := range slots {
				q.set(s, time.Duration(rng.Int64N(1e6)))
			}
			gaps := make([]time.Duration, 1024)
			for i := range gaps {
				gaps[i] = time.Duration(rng.Int64N(1e6))
			}
			b.ResetTimer()
			for i := range b.N {
				slot, at := q.pop()
				q.set(slot, at+gaps[i&1023])
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds()/1e6, "Mevents/s")
		})
	}
}
