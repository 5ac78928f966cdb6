package forecast

import (
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/explain/threadpool"
	"github.com/unthrottle/unthrottle/internal/sim/simulate"
)

const (
	// fallen is the moment, as a share of the recording, before which the compiler's work lies on average where it falls. Steady
	// work has a half, work that falls to nothing in a straight line a third.
	fallen = 0.4
	// lately is the last part of a recording, as a share of it.
	lately = 0.25
)

// warmedUp is the load as it will be once the program's own compiler is through, where its share of the CPU time fell during the
// recording: its threads use as much as they did lately. nil: the load stays as it is. now and then are the compiler's
// shares, recorded and then.
//
// Worked example: of 6 s the compiler runs for 0.8 s in the first two and for 0.05 s in the last one and a half. On
// average its work is at 1.1 s
// of 6. Lately it used 0.05 s in a quarter, so that each of its runs is 0.25 times as long.
func (l *Load) warmedUp() (warm *Load, now, then float64) {
	var compilers []int // threads
	for _, p := range l.Pools {
		if !threadpool.Compiles(p.Name) {
			continue
		}
		for _, w := range p.workloads {
			first, n := l.threadsOf(w)
			for i := range n {
				compilers = append(compilers, first+i)
			}
		}
	}
	var used, late, moments float64 // seconds, seconds, seconds squared
	from := time.Duration((1 - lately) * float64(l.window))
	for _, i := range compilers {
		at := time.Duration(0)
		for _, s := range l.replay.Threads[i].Steps {
			switch s.Kind {
			case simulate.StepUntil, simulate.StepAwait:
				at = max(at, s.For)
			case simulate.StepSleep:
				at += s.For
			case simulate.StepRun:
				ran := min(s.For, l.window-min(at, l.window)) // a run may be endless
				used, moments = used+ran.Seconds(), moments+ran.Seconds()*(at+ran/2).Seconds()
				at += ran
				late += min(ran, max(0, at-from)).Seconds()
			}
		}
	}
	all := l.recorded.cpu.Seconds()
	if all <= 0 || used < diagnose.WarmingUpShare*all || moments >= fallen*l.window.Seconds()*used {
		return nil, 0, 0
	}
	scale := min(1, late/lately/used)
	warm = new(*l)
	warm.replay.Threads = slices.Clone(l.replay.Threads)
	for _, i := range compilers {
		t := &warm.replay.Threads[i]
		t.Steps = slices.Clone(t.Steps)
		for k := range t.Steps {
			if s := &t.Steps[k]; s.Kind == simulate.StepRun {
				s.For = max(1, time.Duration(float64(s.For)*scale))
			}
		}
	}
	rest := all - used
	return warm, used / all, scale * used / (rest + scale*used)
}
