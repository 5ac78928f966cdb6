package diagnose

import (
	"math"
	"slices"
	"time"
)

// ClosedLoop says that clients ask again only when they have their answer.
type ClosedLoop struct {
	// Pool is the pool that answers them.
	Pool string
	// Gap is the usual time from the end of a response to the next wake-up by a client.
	Gap time.Duration
}

// cycle is a response, in ns, and the time from its end to the next wake-up of the thread, by a client.
type cycle struct{ took, gap int64 }

const (
	// maxCycles is how many cycles of a pool are kept.
	maxCycles = 4096
	// leastCycles is how many of them tell how clients ask.
	leastCycles = 100
	// regularGap is by which factor the upper quarter of the gaps may begin above the end of the lower one. It is 4.8
	// for clients that ask at random times.
	regularGap = 1.6
	// farGap is by which factor gaps may be longer than responses. Beyond, a faster answer hardly brings more requests.
	farGap = 2.0
	// leastFollows is how much of a longer response must delay the next wake-up: 1 where clients wait for answers, 0
	// where they ask by a clock.
	leastFollows = 0.5
)

// closedLoop reports whether clients wait for answers, by the cycles of the pool that answers them, and the usual gap. The
// order of the cycles does not matter.
//
// The next request follows the end of a response: after a nearly constant gap, no longer than the response is, and later
// where the response took longer. Clients that ask at random times leave gaps of any length. Those that ask by a clock
// leave gaps that are as much shorter as the response is longer.
//
// Worked example: redis-benchmark with 10 connections, limit 0.5 CPUs. Half of redis' gaps are from 8 to 11 us, responses
// take 12 us. With an open-loop client of 2,500 requests a second gaps are of 1.1 ms, and of nginx' half from 41 to 159 ms.
func closedLoop(all []cycle) (gap time.Duration, closed bool) {
	if len(all) < leastCycles {
		return 0, false
	}
	sorted := func(pick func(cycle) int64) []int64 {
		var times []int64
		for _, c := range all {
			times = append(times, pick(c))
		}
		slices.Sort(times)
		return times
	}
	gaps, took := sorted(func(c cycle) int64 { return c.gap }), sorted(func(c cycle) int64 { return c.took })
	n := len(all)
	usual := gaps[n/2]
	if float64(gaps[n*3/4]) > regularGap*float64(max(1, gaps[n/4])) || float64(usual) > farGap*float64(took[n/2]) {
		return 0, false
	}
	return time.Duration(usual), follows(all, took[n/10], took[n*9/10]) > leastFollows
}

// follows is the slope of the time between wake-ups over the length of the response, less two standard errors, among
// responses within bounds: a stop makes one so long that it is all that counts.
func follows(all []cycle, low, high int64) float64 {
	var took, every, n float64
	for _, c := range all {
		if c.took >= low && c.took <= high {
			took, every, n = took+float64(c.took), every+float64(c.took+c.gap), n+1
		}
	}
	var xx, xy, yy float64
	for _, c := range all {
		if c.took >= low && c.took <= high {
			x, y := float64(c.took)-took/n, float64(c.took+c.gap)-every/n
			xx, xy, yy = xx+x*x, xy+x*y, yy+y*y
		}
	}
	if xx == 0 {
		return 0
	}
	slope := xy / xx
	return slope - 2*math.Sqrt(max(0, yy-slope*xy)/n/xx)
}

// cycles are those of a pool, evenly over the recording: every so many.
type cycles struct {
	kept        []cycle
	seen, every int
}

func (s *cycles) add(c cycle) {
	if s.seen++; s.every > 1 && s.seen%s.every != 0 {
		return
	}
	s.kept = append(s.kept, c)
	if len(s.kept) < maxCycles {
		return
	}
	for i := range maxCycles / 2 {
		s.kept[i] = s.kept[2*i]
	}
	s.kept, s.every = s.kept[:maxCycles/2], 2*max(1, s.every)
}

// asked notes a wake-up from outside, as the end of a cycle.
func (t *thread) asked(p *pool, now int64) {
	if t.slept > 0 && t.took > 0 {
		p.cycles.add(cycle{t.took, now - t.slept})
	}
}

// closedLoop returns the closed loop of the pool that answers most; nil: its clients do not wait. Where requests are seen, those of each
// connection tell it, as they tell a forecast; where none are, the pool's wake-ups from outside.
func (a *Analysis) closedLoop() *ClosedLoop {
	var most *pool
	for _, p := range a.pools.all {
		if most == nil || a.clients.ask(p) > a.clients.ask(most) {
			most = p
		}
	}
	if most == nil {
		return nil
	}
	gap, closed := closedLoop(most.cycles.kept)
	if a.clients.seen() {
		gap, closed = a.clients.closedLoop(most.number)
	}
	if !closed {
		return nil
	}
	return &ClosedLoop{most.key.name, gap}
}
