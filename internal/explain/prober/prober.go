package prober

import (
	"slices"
	"time"
)

// Handlers of a probe, as a pod's spec names them.
const (
	HTTPGet   = "httpGet"
	GRPC      = "grpc"
	Exec      = "exec"
	TCPSocket = "tcpSocket"
)

// Answers are the running times of an answer for which a probe has figures: a prompt one, and a tenth of the timeout.
// nil: stops make no probe of this kind miss.
func Answers(handler string, timeout time.Duration) []time.Duration {
	prompt := time.Millisecond
	switch handler {
	case Exec:
		prompt = 10 * time.Millisecond
	case HTTPGet, GRPC:
	default:
		return nil
	}
	return []time.Duration{prompt, max(prompt, timeout/10)}
}

// Timing of a probe: timeoutSeconds, periodSeconds and failureThreshold.
type Timing struct {
	Timeout, Period time.Duration
	Threshold       int
}

// Figures of one answer since the begin, as the number of probes that one kubelet makes.
type Figures struct {
	// Misses of the timeout, the least and the most. Failures are times that Threshold misses came in a row.
	MissesLow, MissesHigh, FailuresLow, FailuresHigh float64
}

// Watch counts what one probe misses while time goes by. It depends on its calls alone: it has no clock and no lock.
type Watch struct {
	timing  Timing
	answers []time.Duration
	// least has the stops where they hurt least, most where they hurt most.
	least, most sweep
	pending     span
	head        time.Duration // the end of what was added
	begun       bool
}

// span is a piece of time in which the container was stopped for some time.
type span struct{ length, stopped time.Duration }

// New begins with nothing observed. Timing must be above zero.
func New(t Timing, answers []time.Duration) *Watch {
	w := &Watch{timing: t, answers: answers}
	for _, s := range []*sweep{&w.least, &w.most} {
		s.timing, s.misses = t, make([]misses, len(answers))
		for i, a := range answers {
			s.misses[i].answer = a
		}
		s.lowest = t.Timeout
	}
	return w
}

// Add takes in that in the length before end the container was stopped for some time. Times are since any fixed moment.
// What lies between two calls was free of stops, and what was added before is not added again.
func (w *Watch) Add(end, length, stopped time.Duration) {
	if !w.begun {
		w.begun, w.head = true, end-length
	}
	if gap := end - length - w.head; gap > 0 {
		w.join(span{length: gap})
	} else if gap < 0 {
		length, stopped = length+gap, stopped+gap
	}
	if length <= 0 {
		return
	}
	w.head = end
	w.join(span{length, min(max(stopped, 0), length)})
}

// Cut says that what follows is not known to follow what came: time went by unseen, or the container is another one.
func (w *Watch) Cut() {
	w.flush()
	w.begun = false
	w.least.cut()
	w.most.cut()
}

// join keeps spans back that are too short to be kept one by one.
func (w *Watch) join(s span) {
	grain := max(w.timing.Timeout/64, w.timing.Period/128)
	if s.length >= grain {
		w.flush()
	}
	w.pending.length += s.length
	w.pending.stopped += s.stopped
	if w.pending.length >= grain {
		w.flush()
	}
}

func (w *Watch) flush() {
	s := w.pending
	w.pending = span{}
	first, then := segment{s.length - s.stopped, true}, segment{s.stopped, false}
	// Most could run where the span at the end of the wait runs first, and the one at its begin runs last.
	w.least.add([2]segment{first, then}, [2]segment{then, first})
	w.most.add([2]segment{then, first}, [2]segment{first, then})
}

// Observed is how long the moments were at which a probe could begin and its timeout was seen to the end.
func (w *Watch) Observed() time.Duration { return w.least.observed }

// Figures are those of each answer.
func (w *Watch) Figures() []Figures {
	out := make([]Figures, len(w.answers))
	per := func(d time.Duration) float64 { return d.Seconds() / w.timing.Period.Seconds() }
	for i := range out {
		low, high := w.least.misses[i], w.most.misses[i]
		out[i] = Figures{per(low.missed), per(high.missed), per(low.failed), per(high.failed)}
	}
	return out
}

// Lowest is for how long the container could run at least within a timeout: between low and high. It is the timeout if
// nothing was observed.
func (w *Watch) Lowest() (low, high time.Duration) { return w.most.lowest, w.least.lowest }

// segment is a time in which the container could run, or was stopped.
type segment struct {
	length time.Duration
	runs   bool
}

// slope is the running time per time.
func (s segment) slope() time.Duration {
	if s.runs {
		return 1
	}
	return 0
}

// sweep moves the wait of a probe over the time that is added: its end over the front's segments, its begin over the
// back's.
type sweep struct {
	timing   Timing
	back     []segment // from the begin of the wait to the end of what was added
	waited   time.Duration
	runs     time.Duration // within the wait
	at       time.Duration // the begin of the wait, of all that was observed
	observed time.Duration
	lowest   time.Duration
	misses   []misses
}

func (s *sweep) cut() {
	s.back, s.waited, s.runs = nil, 0, 0
	for i := range s.misses {
		s.misses[i].rows = nil
	}
}

// add takes in one span, as the front and as the back of the wait see it.
func (s *sweep) add(front, back [2]segment) {
	for _, b := range back {
		if n := len(s.back); b.length > 0 && n > 0 && s.back[n-1].runs == b.runs {
			s.back[n-1].length += b.length
		} else if b.length > 0 {
			s.back = append(s.back, b)
		}
	}
	for _, f := range front {
		if first := min(f.length, s.timing.Timeout-s.waited); first > 0 {
			s.waited += first
			s.runs += first * f.slope()
			f.length -= first
		}
		for f.length > 0 {
			b := &s.back[0]
			by := min(f.length, b.length)
			s.step(by, f.slope()-b.slope())
			f.length -= by
			if b.length -= by; b.length == 0 {
				s.back = slices.Delete(s.back, 0, 1)
			}
		}
	}
}

// step moves the wait; its running time changes with the slope.
func (s *sweep) step(by, slope time.Duration) {
	end := s.runs + by*slope
	s.lowest = min(s.lowest, s.runs, end)
	for i := range s.misses {
		m := &s.misses[i]
		from, to := time.Duration(0), by
		switch short := m.answer - s.runs; {
		case slope > 0:
			to = min(by, short)
		case slope < 0:
			from = max(0, -short)
		case short <= 0:
			to = 0
		}
		m.add(s.timing, s.at+from, s.at+to)
	}
	s.runs = end
	s.at += by
	s.observed += by
}

// misses of one answer.
type misses struct {
	answer         time.Duration
	missed, failed time.Duration
	// rows of misses that reach into the last period, in order.
	rows []row
}

// row is a piece of time at which a probe misses as the n-th in a row; after the threshold's comes the first again.
type row struct {
	from, to time.Duration
	n        int
}

// add takes in that a probe misses that begins between two moments.
func (m *misses) add(t Timing, from, to time.Duration) {
	if from >= to {
		return
	}
	m.missed += to - from
	for from < to {
		before, until, n := from-t.Period, min(to, from+t.Period), 1
		gone := 0
		for gone < len(m.rows) && m.rows[gone].to <= before {
			gone++
		}
		m.rows = slices.Delete(m.rows, 0, gone)
		if len(m.rows) > 0 {
			if last := m.rows[0]; last.from <= before {
				n, until = last.n%t.Threshold+1, min(until, last.to+t.Period)
			} else {
				until = min(until, last.from+t.Period)
			}
		}
		if n == t.Threshold {
			m.failed += until - from
		}
		if last := len(m.rows) - 1; last >= 0 && m.rows[last].to == from && m.rows[last].n == n {
			m.rows[last].to = until
		} else {
			m.rows = append(m.rows, row{from, until, n})
		}
		from = until
	}
}
