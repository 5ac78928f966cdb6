package budget

import (
	"context"
	"testing"
	"time"
)

// sink keeps the bare task from being left out.
var sink int

//go:noinline
func task() { sink++ }

// BenchmarkTask is what a task costs beside the same task without the library, in the same run: "ns/task" is the difference,
// "x-bare" the ratio. At 200,000 tasks a second 200 ns a task are 4 % of a CPU.
func BenchmarkTask(b *testing.B) {
	for _, c := range []struct {
		name  string
		class Class
	}{{"io", IO}, {"app", App}, {"background", Background}} {
		b.Run(c.name, func(b *testing.B) {
			h := newHost(7900 * ms) // of 79 CPUs: in force and paced, and never used up
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			budget := start(ctx, Options{}, world{h, processCPUTime, func(int) {}, 80, file{}})
			const n = 5_000_000
			begun := time.Now()
			for range n {
				task()
			}
			alone := float64(time.Since(begun).Nanoseconds()) / n
			b.ReportAllocs()
			b.ResetTimer()
			for b.Loop() {
				if err := budget.Do(ctx, c.class, task); err != nil {
					b.Fatal(err)
				}
			}
			with := float64(b.Elapsed().Nanoseconds()) / float64(b.N)
			b.ReportMetric(with-alone, "ns/task")
			b.ReportMetric(with/alone, "x-bare")
		})
	}
}

// BenchmarkContended is the same from all CPUs at once.
func BenchmarkContended(b *testing.B) {
	h := newHost(7900 * ms)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	budget := start(ctx, Options{}, world{h, processCPUTime, func(int) {}, 80, file{}})
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			_ = budget.Do(ctx, App, func() {})
		}
	})
}
