package main

import (
	"context"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/kernel/schedpolicy/behind"
	"github.com/unthrottle/unthrottle/internal/sim/parallel"
	view "github.com/unthrottle/unthrottle/internal/ui/report/fix"
)

// loadingPatience and replayPatience are how long loading the probe, which is half a second of work, and replaying give way to work that
// fills the CPUs, before they go on at the ordinary weight: a user waits for them.
const loadingPatience, replayPatience = 2 * time.Second, 10 * time.Second

// liveForecast is how long the forecast of a container may take that was just recorded: a user waits for it. One of a
// file has no bound, so that its result does not depend on the host.
const liveForecast = 30 * time.Second

// looking has the costly steps of a look give way to the service that is looked at, and measures what they take.
type looking struct {
	loading, replaying, until time.Duration
	ordinary                  bool // a step did not give way until its end
}

// load runs the loading of the probe.
func (l *looking) load(load func()) { l.loading += l.givingWay(loadingPatience, load) }

// replays gives a forecast of a container its time, from now on, and the look ends with it.
func (l *looking) replays(ctx context.Context) func(n int, do func(i int) error) error {
	run := within(ctx)
	return func(n int, do func(i int) error) (err error) {
		l.replaying += l.givingWay(replayPatience, func() { err = run(n, do) })
		l.until = cpuUsed()
		return err
	}
}

// within gives a forecast of a container its time on few CPUs: the service that it is of runs beside it.
func within(ctx context.Context) func(n int, do func(i int) error) error {
	return parallel.Within(ctx, liveForecast, behind.CPUs(runtime.NumCPU()))
}

// replays is how a forecast is made: of a container that was just recorded as in a look, of a file on all cores.
func replays(ctx context.Context, live bool) func(n int, do func(i int) error) error {
	if live {
		return new(looking).replays(ctx)
	}
	return parallel.OnAllCores(ctx)
}

// cost is what was measured; nil: nothing was replayed.
func (l *looking) cost() *view.Looking {
	if l.until == 0 {
		return nil
	}
	return &view.Looking{CPUSeconds: l.until.Seconds(), LoadingSeconds: l.loading.Seconds(), ForecastingSeconds: l.replaying.Seconds(),
		CPUs: behind.CPUs(runtime.NumCPU()), GaveWay: !l.ordinary}
}

// givingWay runs a step behind the host's other work, and returns the CPU time that it took.
func (l *looking) givingWay(patience time.Duration, do func()) time.Duration {
	before := cpuUsed()
	end := behind.Others(patience)
	do()
	l.ordinary = !end() || l.ordinary
	return cpuUsed() - before
}

// cpuUsed is the CPU time of this process so far.
func cpuUsed() time.Duration {
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil { // the kernel refuses no process its own
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
