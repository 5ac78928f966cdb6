package periodmodel

import (
	"math"
	"math/bits"
	"time"

	"github.com/unthrottle/unthrottle/internal/sim/simulate/coarse"
)

// Candidate limits are PerDoubling to each doubling, from CPUs(Lowest) on.
const (
	PerDoubling = 4
	Lowest      = -4 * PerDoubling // 1/16 of a CPU
	Highest     = 9 * PerDoubling  // 512 CPUs
)

// LongestStretch is how many throttled periods in a row still tell what came when.
const LongestStretch = 20

// leastNexts is after how many stretches it is known how much comes in the period that ends one.
const leastNexts = 8

// tooLongQueue is the backlog in quotas from which on a limit counts as less than what is needed; tooMuchStopped the
// share of the time.
const (
	tooLongQueue   = 32
	tooMuchStopped = 0.5
	maxWidth       = 1 << 13
	// tick is after how long a CPU notices that a quota is spent: 1/HZ of most distributions' kernels.
	tick = int64(4 * time.Millisecond)
)

// CPUs is the limit of a step.
func CPUs(step int) float64 { return math.Exp2(float64(step) / PerDoubling) }

// Period is one period of a container's quota.
type Period struct {
	// Length is the time since the end of the period before: longer than a period after idle time.
	Length time.Duration
	// Used is CPU time, Width the most CPUs in use at once.
	Used  time.Duration
	Width int
	// Stopped is wall time in which the quota held a thread back; Throttled: it did so at the end.
	Stopped   time.Duration
	Throttled bool
}

// Candidate is what would have become of a container under one limit, and under that limit with a burst of one quota.
type Candidate struct {
	// Step of CPUs.
	Step int
	// Stopped is wall time in which the quota would have stopped it, Throttled how many periods.
	Stopped   time.Duration
	Throttled int
	// Delay is the 99th percentile, over CPU time, of how much later work would have been done.
	Delay                    time.Duration
	BurstStopped, BurstDelay time.Duration
}

// Burst is what would have become of a container under one limit, in a longer period and with a burst of one quota of it.
type Burst struct {
	// Step of CPUs.
	Step int
	// Stopped and Delay are those of Candidate.
	Stopped, Delay time.Duration
}

// Long is what bursts in one longer period would have done.
type Long struct {
	Period time.Duration
	// Known is for how much of the time it is known.
	Known time.Duration
	// From is the least step that serves the demand, as of Outcome: at most as large as that, and often smaller.
	From int
	// Bursts are the steps from From, which is always there, up to the last one that would have stopped it.
	Bursts []Burst
}

// Outcome is what a stretch of time tells.
type Outcome struct {
	// Known is for how much of the time it is known what came.
	Known time.Duration
	// From is the least step that serves the demand at all: below it work would have piled up, or waited for more than
	// half of the time.
	From int
	// Candidates are the steps from From up to the last one that would have stopped it. Those above would not have.
	Candidates []Candidate
	// Long are the longer periods that New was asked for; none where the quota held it back for longer than LongestStretch: it wants
	// its limit for seconds then, which is what a longer period is no remedy for, and how much it wants is not known.
	Long []Long
}

// Model steps one container through its periods under each candidate limit. It is not safe for concurrent use.
type Model struct {
	period int64
	steps  []step
	// long are longer periods, in periods; now is how many of these were stepped, so that it is known when one begins.
	long  []int64
	now   int64
	width int32 // of the last period with work
	// unknown is time of which it is not known what came, since the last Take.
	unknown time.Duration
	// held: a stretch was longer than LongestStretch, since the last Take.
	held    bool
	stretch stretch
	// lasts are the periods that ended stretches, nexts those right after one: justEnded, the period before ended one.
	lasts, nexts mean
	justEnded    bool
}

// mean is of CPU time by the period.
type mean struct{ used, periods float64 }

func (m *mean) add(used time.Duration) { m.used, m.periods = m.used+float64(used), m.periods+1 }

// forget has what was count half as much as what comes.
func (m *mean) forget() { m.used, m.periods = m.used/2, m.periods/2 }

func (m *mean) of() float64 { return m.used / max(1, m.periods) }

// stretch is one of throttled periods that has not ended.
type stretch struct {
	periods []Period
	width   int32 // the most of any
	length  time.Duration
	// unknown: it is longer than LongestStretch, or rows are missing.
	unknown bool
}

// step is one candidate limit.
type step struct {
	quota        int64
	plain, burst track
	long         []track // by Model.long
}

// track is a limit with its sums since the last Take.
type track struct {
	state     coarse.State
	stopped   int64
	throttled int
	delays    delays
	// over: the limit is less than what is needed.
	over bool
}

// New begins with an idle container. period is that of its quota, above 0. Of long those are stepped too that are a multiple of it:
// what a longer period gets is the sum of what its periods get.
func New(period time.Duration, long ...time.Duration) *Model {
	m := &Model{period: int64(period)}
	for _, l := range long {
		if l > period && l%period == 0 {
			m.long = append(m.long, int64(l/period))
		}
	}
	return m
}

// Period is the period of the quota.
func (m *Model) Period() time.Duration { return time.Duration(m.period) }

// Add takes the next period.
func (m *Model) Add(p Period) {
	s := &m.stretch
	p.Width, p.Used = min(max(p.Width, 1), maxWidth), max(p.Used, 0)
	periods := max(1, int((int64(p.Length)+m.period/2)/m.period))
	if periods > 1 && len(s.periods) == 0 {
		m.idle(periods - 1)
	}
	if m.justEnded {
		if m.justEnded = false; periods > 1 {
			m.nexts.add(0)
		} else {
			m.nexts.add(p.Used)
		}
	}
	// More than one period has room for: rows before this one are missing.
	s.unknown = s.unknown || periods > 1 && int64(p.Used) > int64(p.Width)*m.period*11/10
	if len(s.periods) == LongestStretch {
		s.unknown, m.held = true, true
	}
	s.width, s.length = max(s.width, int32(p.Width)), s.length+p.Length
	if !s.unknown {
		s.periods = append(s.periods, p)
	}
	if p.Throttled {
		return
	}
	if s.unknown {
		m.unknown += s.length
		m.forget()
	} else {
		if m.justEnded = len(s.periods) > 1; m.justEnded {
			m.lasts.add(p.Used)
		}
		m.arrive()
	}
	*s = stretch{periods: s.periods[:0]}
}

// arrive steps the stretch that has ended by what came in each of its periods: of what ran in a period, the part that
// waited at its beginning came in the period before.
func (m *Model) arrive() {
	periods := m.stretch.periods
	waited := int64(0) // of what ran in the period after
	var came [LongestStretch]int64
	for i := len(periods) - 1; i >= 0; i-- {
		used := int64(periods[i].Used)
		came[i], waited = used+waited, 0
		if i > 0 {
			waited = int64(float64(used) * m.waiting(&periods[i]))
			came[i] -= waited
		}
	}
	for _, work := range came[:len(periods)] {
		m.step(work, m.stretch.width)
	}
}

// waiting is which part of what ran in a period waited at its beginning, if the quota held threads back at the end of
// the period before. Where the period ends the stretch, as much came in it as comes in the period after it, on average: nothing,
// where all came at once. Else, if all waited, the threads ran side by side until the quota was spent, and the rest of the period is
// stopped time: the shorter that is, the more came meanwhile.
func (m *Model) waiting(p *Period) float64 {
	if !p.Throttled {
		if m.nexts.periods < leastNexts {
			return 1
		}
		return max(0, 1-m.nexts.of()/max(1, m.lasts.of()))
	}
	return min(1, max(0, float64(p.Stopped)/max(1, float64(m.period-int64(p.Used)/int64(p.Width)))))
}

// forget ends all backlogs: what came before is not known.
func (m *Model) forget() {
	for i := range m.steps {
		m.steps[i].restart(m.long)
	}
}

// restart has it begin with nothing waiting and nothing saved. A longer period is then one that has just begun.
func (s *step) restart(long []int64) {
	s.plain.state, s.burst.state = coarse.State{}, coarse.State{}
	for i := range s.long {
		s.long[i].state = coarse.State{SavedNS: long[i] * s.quota}
	}
}

// idle takes periods in which nothing came.
func (m *Model) idle(periods int) {
	for i := range m.steps {
		s := &m.steps[i]
		for n := 0; n < periods && !s.rests(m.long); n++ {
			s.run(m, m.now+int64(n), 0, m.width)
		}
	}
	m.now += int64(periods)
}

// rests reports whether idle periods change nothing.
func (s *step) rests(long []int64) bool {
	for i, n := range long {
		if !s.long[i].rests(2 * n * s.quota) {
			return false
		}
	}
	return s.plain.rests(0) && (s.plain.over || s.burst.rests(s.quota))
}

// rests reports whether nothing waits, and all is saved that can be.
func (t *track) rests(most int64) bool {
	return t.over || t.state.BacklogNS <= 0 && t.state.SavedNS >= most
}

// step takes one period of demand.
func (m *Model) step(work int64, width int32) {
	m.width = width
	// A limit of as many CPUs as are ever in use stops nothing.
	for len(m.steps) <= Highest-Lowest && CPUs(Lowest+len(m.steps)) < float64(width) {
		quota := int64(CPUs(Lowest+len(m.steps)) * float64(m.period))
		s := step{quota: quota, burst: track{state: coarse.State{SavedNS: quota}}}
		for _, n := range m.long {
			s.long = append(s.long, track{state: coarse.State{SavedNS: 2 * n * quota}})
		}
		m.steps = append(m.steps, s)
	}
	for i := range m.steps {
		m.steps[i].run(m, m.now, work, width)
	}
	m.now++
}

// run steps one candidate through a period, now of them after the first. In a longer period the quota comes with the first of its
// periods, on top of at most one that was saved; what the others get is what is left of both.
func (s *step) run(m *Model, now, work int64, width int32) {
	if limit := (coarse.Limit{QuotaNS: s.quota, PeriodNS: m.period, TickNS: tick}); !s.plain.over {
		s.plain.run(&limit, 1, 0, work, width)
		s.plain.over = s.plain.state.BacklogNS > tooLongQueue*s.quota
		limit.BurstNS = s.quota
		s.burst.run(&limit, 1, 0, work, width)
	}
	for i, n := range m.long {
		if t, quota := &s.long[i], n*s.quota; !t.over {
			t.run(&coarse.Limit{QuotaNS: quota, PeriodNS: n * m.period, BurstNS: quota, TickNS: tick}, n, now%n, work, width)
			t.over = t.state.BacklogNS > tooLongQueue*s.quota
		}
	}
}

// run takes one of the parts of a limit's period.
func (t *track) run(l *coarse.Limit, parts, at, work int64, width int32) {
	fresh := t.state.BacklogNS == 0
	p, length := t.state.StepPart(l, parts, at, work, width), l.PeriodNS/parts
	if !p.Throttled {
		if work > 0 {
			t.delays.add(0, length, work)
		}
		return
	}
	first := p.StoppedNS
	if fresh {
		// coarse has all work come with its period, the longest stop. Midway between work that comes at once, at any moment
		// from which on it fits into its period, and work that comes evenly over it.
		once := first - max(0, length-work/int64(width))/2
		evenly := int64(float64(length) * (1 - float64(p.UsedNS)/float64(work)))
		first = max(1, (once+evenly)/2)
	}
	t.throttled++
	t.stopped += first
	// First come, first served: each later refill does a quota of what is left, and lasts as long as its quota does not.
	left, stop := t.state.BacklogNS, max(0, l.PeriodNS-l.QuotaNS/int64(width))
	late := min(work, left)
	t.delays.add(0, length, work-late)
	first += (parts - 1 - at) * length // until the next refill
	for from := left - late; from < left; {
		n := from / l.QuotaNS
		part := min((n+1)*l.QuotaNS, left) - from
		t.delays.add(first+n*stop, length, part)
		from += part
	}
}

// Take returns what became of the time since the last Take. Backlogs go on.
func (m *Model) Take(elapsed time.Duration) Outcome {
	if s := &m.stretch; s.unknown { // one that has not ended
		m.unknown, s.length = m.unknown+s.length, 0
	}
	o := Outcome{Known: max(0, elapsed-m.unknown), From: Lowest}
	last := -1
	for i := range m.steps {
		s := &m.steps[i]
		if !s.plain.serves(elapsed) {
			o.From, last = Lowest+i+1, -1
			continue
		}
		if s.plain.stopped > 0 {
			last = i
		}
	}
	for i := o.From - Lowest; i <= last; i++ {
		s := &m.steps[i]
		o.Candidates = append(o.Candidates, Candidate{Step: Lowest + i, Stopped: rounded(s.plain.stopped),
			Throttled: s.plain.throttled,
			Delay:     s.plain.delays.p99(m.period), BurstStopped: rounded(s.burst.stopped),
			BurstDelay: s.burst.delays.p99(m.period)})
	}
	for i, n := range m.long {
		if m.held {
			break
		}
		o.Long = append(o.Long, m.takeLong(i, time.Duration(n*m.period), elapsed, o.Known))
	}
	for i := range m.steps {
		s := &m.steps[i]
		if s.plain.over {
			s.burst.state = coarse.State{}
		}
		s.plain.again(coarse.State{})
		s.burst.again(coarse.State{})
		for i, n := range m.long {
			s.long[i].again(coarse.State{SavedNS: n * s.quota})
		}
	}
	m.unknown, m.held = 0, false
	m.lasts.forget()
	m.nexts.forget()
	return o
}

// serves reports whether work neither piled up nor waited for most of the time.
func (t *track) serves(elapsed time.Duration) bool {
	return !t.over && float64(t.stopped) <= tooMuchStopped*float64(elapsed)
}

// again begins new sums. The state goes on, but for that of a limit under which work piled up.
func (t *track) again(restarted coarse.State) {
	if t.over {
		t.state = restarted
	}
	*t = track{state: t.state}
}

// takeLong is what bursts in the longer period of an index would have done.
func (m *Model) takeLong(index int, period, elapsed, known time.Duration) Long {
	l := Long{Period: period, Known: known, From: Lowest}
	last := -1
	for i := range m.steps {
		t := &m.steps[i].long[index]
		if !t.serves(elapsed) {
			l.From = Lowest + i + 1
		}
		if t.stopped > 0 {
			last = i
		}
	}
	l.Bursts = []Burst{{Step: l.From}} // where no limit that serves it would have stopped it
	for i := l.From - Lowest; i <= last; i++ {
		t := &m.steps[i].long[index]
		l.Bursts = append(l.Bursts[:i-(l.From-Lowest)], Burst{Lowest + i, rounded(t.stopped), t.delays.p99(m.period)})
	}
	return l
}

// rounded cuts a time to microseconds and four binary digits: few different values pack well.
func rounded(ns int64) time.Duration {
	us := uint64(max(0, ns) / 1000)
	if drop := bits.Len64(us) - 4; drop > 0 {
		us = (us + 1<<(drop-1)) >> drop << drop
	}
	if us == 0 && ns > 0 {
		us = 1
	}
	return time.Duration(us) * time.Microsecond
}

// delays is a histogram of delay, weighted by CPU time: none, then two classes per doubling from a 32nd of a period to
// 32 periods.
type delays [1 + 2*10]float32

func (d *delays) add(delay, period, work int64) {
	class := 0
	if delay > 0 {
		class = min(max(1, 1+int(2*(math.Log2(float64(delay)/float64(period))+5))), len(d)-1)
	}
	d[class] += float32(work)
}

// p99 is the middle of the class that holds the 99th percentile.
func (d *delays) p99(period int64) time.Duration {
	total := 0.0
	for _, w := range d {
		total += float64(w)
	}
	sum := 0.0
	for i, w := range d {
		if sum += float64(w); sum >= 0.99*total {
			if i == 0 {
				return 0
			}
			return rounded(int64(float64(period) * math.Exp2((float64(i)-0.5)/2-5)))
		}
	}
	return 0
}
