package probe_test

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/load/cgrouptest"
	"github.com/unthrottle/unthrottle/internal/see/probe"
	"github.com/unthrottle/unthrottle/internal/see/recording"
)

// BenchmarkOverhead measures what the probe costs with a pair of threads that do nothing but wake each other. It
// reports the cost per run of each program, by the kernel's own statistics. It also reports what such a pair loses in
// CPU time per round trip: five runs with the probe between six without. `make bench-probe`.
func BenchmarkOverhead(b *testing.B) {
	const rounds, alternations = 100_000, 5
	for _, form := range []struct {
		name   string
		o      probe.Options
		record bool
	}{{"width", probe.Options{WidthOnly: true}, false}, {"all", probe.Options{}, false}, {"recording", probe.Options{}, true}} {
		b.Run(form.name, func(b *testing.B) {
			for b.Loop() {
				tr := cgrouptest.New(b)
				path := tr.Make("a")
				without := []time.Duration{}
				var ratios []float64
				costs := map[string][]float64{}
				without = append(without, cpuTime(b, tr, path, rounds))
				for range alternations {
					with := withProbe(b, tr, path, rounds, form.o, form.record, costs)
					without = append(without, cpuTime(b, tr, path, rounds))
					n := len(without)
					ratios = append(ratios, 2*float64(with)/float64(without[n-2]+without[n-1]))
				}
				slices.Sort(ratios)
				b.ReportMetric(ratios[len(ratios)/2], "times-the-CPU")
				perSwitch := 0.0
				for program, ns := range costs {
					slices.Sort(ns)
					median := ns[len(ns)/2]
					b.ReportMetric(median, "ns/"+program)
					if strings.HasPrefix(program, "sched_") { // a pair that wakes each other: as many runs as switches
						perSwitch += median
					}
				}
				b.ReportMetric(perSwitch*switchesPerSecond/1e9*100, "%-of-a-CPU-at-5000-switches/s")
				b.ReportMetric(0, "ns/op")
			}
		})
	}
	b.Run("cold", func(b *testing.B) {
		for b.Loop() {
			for program, ns := range coldCosts(b) {
				b.ReportMetric(ns, "ns/"+program)
			}
			b.ReportMetric(0, "ns/op")
		}
	})
	b.Run("reader", func(b *testing.B) {
		for b.Loop() {
			b.ReportMetric(readerCost(b), "CPU-ms/s")
			b.ReportMetric(0, "ns/op")
		}
	})
	b.Run("requests", func(b *testing.B) {
		for b.Loop() {
			for program, ns := range requestCosts(b) {
				b.ReportMetric(ns, "ns/"+program)
			}
			b.ReportMetric(0, "ns/op")
		}
	})
}

// coldCosts is what each program takes per run, on the mean, where threads of a watched container and of none sleep, and
// then use more memory than the cache holds. Two test binaries that run this at the same time see the same events.
func coldCosts(b *testing.B) map[string]float64 {
	const long = 5 * time.Second
	p, err := probe.Open(probe.Options{})
	must(b, err)
	defer p.Close()
	tr := cgrouptest.New(b)
	watched, other := tr.Make("a"), tr.Make("b")
	must(b, p.Watch(container(b, tr, watched)))
	start(b, tr, watched, "nap")
	start(b, tr, other, "nap")
	end, err := p.EnableCosts()
	must(b, err)
	defer end()
	time.Sleep(long)
	return meanCosts(p)
}

// readerCost is the CPU time that this process takes to read a recording of threads that mostly sleep, in ms per second.
func readerCost(b *testing.B) float64 {
	const long = 5 * time.Second
	p, err := probe.Open(probe.Options{RingBytes: 1 << 20})
	must(b, err)
	defer p.Close()
	tr := cgrouptest.New(b)
	path := tr.Make("a")
	start(b, tr, path, "nap")
	used := func() time.Duration {
		var u syscall.Rusage
		must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	before := used()
	record(b, p, tr, container(b, tr, path), long)
	return (used() - before).Seconds() * 1000 / long.Seconds()
}

// meanCosts is what each program that runs often has taken per run, in ns.
func meanCosts(p *probe.Probe) map[string]float64 {
	costs := map[string]float64{}
	for _, c := range p.Costs() {
		if c.Runs >= enoughRuns {
			costs[c.Program] = float64(c.Total) / float64(c.Runs)
		}
	}
	return costs
}

// requestCosts is what each program takes per run, on the mean, while a server is recorded that clients outside ask all
// the time.
func requestCosts(b *testing.B) map[string]float64 {
	const long, clients = 3 * time.Second, 8 // several, because each answer takes 2 ms
	p, err := probe.Open(probe.Options{})
	must(b, err)
	defer p.Close()
	tr := cgrouptest.New(b)
	path := tr.Make("a")
	server := start(b, tr, path, "serve", "unix", filepath.Join(b.TempDir(), "socket"))
	at, err := server.out.ReadString('\n')
	must(b, err)
	end, err := p.EnableCosts()
	must(b, err)
	defer end()
	stop, asked := make(chan struct{}), make(chan struct{})
	for range clients {
		go func() { _, _ = ask("unix", strings.TrimSpace(at), 0, stop); asked <- struct{}{} }()
	}
	record(b, p, tr, container(b, tr, path), long)
	costs := meanCosts(p)
	close(stop)
	for range clients {
		<-asked
	}
	return costs
}

const (
	// switchesPerSecond is the rate for which the share of a CPU is reported.
	switchesPerSecond = 5000
	// Costs are measured in windows, and the median counts: a host that takes the CPU away within a run spoils one
	// window.
	costWindow = 50 * time.Millisecond
	// enoughRuns in a window make its mean count. Programs that run less often, such as those of timers, are left out.
	enoughRuns = 1000
)

// withProbe is cpuTime with the probe attached; costs gets what its programs took per run, window by window. The costs
// have a run of their own, because measuring them costs time itself.
func withProbe(b *testing.B, tr *cgrouptest.Tree, path string, rounds int, o probe.Options, record bool,
	costs map[string][]float64) time.Duration {
	p, err := probe.Open(o)
	must(b, err)
	defer p.Close()
	c := container(b, tr, path)
	must(b, p.Watch(c))
	if record {
		done := make(chan error)
		stop := make(chan struct{})
		go func() {
			_, err := p.Record(b.Context(), probe.RecordOptions{Target: c, For: childLife}, func(*recording.Event) error {
				select {
				case <-stop:
					return errBroken
				default:
					return nil
				}
			})
			done <- err
		}()
		defer func() { close(stop); <-done }()
	}
	took := cpuTime(b, tr, path, rounds)
	end, err := p.EnableCosts()
	must(b, err)
	over, sampled := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(sampled)
		costsByWindow(p, over, costs)
	}()
	cpuTime(b, tr, path, rounds)
	close(over)
	<-sampled
	end()
	return took
}

// costsByWindow adds what each program took per run in each window until over.
func costsByWindow(p *probe.Probe, over <-chan struct{}, costs map[string][]float64) {
	was := map[string]probe.Cost{}
	for {
		select {
		case <-over:
			return
		case <-time.After(costWindow):
		}
		for _, now := range p.Costs() {
			before := was[now.Program]
			if runs := now.Runs - before.Runs; runs >= enoughRuns {
				costs[now.Program] = append(costs[now.Program], float64(now.Total-before.Total)/float64(runs))
			}
			was[now.Program] = now
		}
	}
}

// cpuTime is the CPU time of a ping-pong of so many rounds on one CPU: other load on the host does not count.
func cpuTime(b *testing.B, tr *cgrouptest.Tree, path string, rounds int) time.Duration {
	b.Helper()
	r := start(b, tr, path, "pingpong", strconv.Itoa(rounds), "one CPU")
	_, err := r.out.ReadString('\n')
	must(b, err)
	must(b, r.in.Close())
	must(b, r.Wait())
	u := r.ProcessState.SysUsage().(*syscall.Rusage)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
