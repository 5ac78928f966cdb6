package loadgen

import (
	"math/rand/v2"
	"time"
)

// arrival is one request's intended time.
type arrival struct {
	at     time.Duration // from the plan's start
	stream int
	phase  int
	number uint64 // unique in the plan
}

// schedule draws a plan's arrivals one after the other, in order of time. The
// same plan gives the same arrivals, and a plan at twice the rate the same ones
// in half the time.
type schedule struct {
	plan  Plan
	ends  []time.Duration // of the phases
	lines []streamLine
	count uint64
}

// streamLine is where one stream has got to.
type streamLine struct {
	chance *rand.Rand
	at     time.Duration // of the next arrival; never: no more
	phase  int
	left   int // of the burst at that time
	index  int // into At
}

// never is later than any plan.
const never = time.Duration(1<<63 - 1)

func newSchedule(p Plan) *schedule {
	s := &schedule{plan: p, lines: make([]streamLine, len(p.Streams))}
	end := time.Duration(0)
	for _, phase := range p.Phases {
		end += phase.For
		s.ends = append(s.ends, end)
	}
	for i := range s.lines {
		s.lines[i].chance = rand.New(rand.NewPCG(p.Seed, uint64(i)))
		s.advance(i)
	}
	return s
}

// peek is the next arrival's time, never if there is none.
func (s *schedule) peek() time.Duration { return s.lines[s.earliest()].at }

func (s *schedule) earliest() int {
	first := 0
	for i := range s.lines {
		if s.lines[i].at < s.lines[first].at {
			first = i
		}
	}
	return first
}

// next gives the next arrival; false: there is none.
func (s *schedule) next() (arrival, bool) {
	i := s.earliest()
	line := &s.lines[i]
	if line.at == never {
		return arrival{}, false
	}
	s.count++
	a := arrival{at: line.at, stream: i, phase: line.phase, number: s.count}
	if line.left--; line.left <= 0 {
		s.advance(i)
	}
	return a, true
}

// advance moves a stream to its next moment.
func (s *schedule) advance(i int) {
	line, stream := &s.lines[i], &s.plan.Streams[i]
	line.left = max(1, stream.Burst)
	if len(stream.At) > 0 {
		line.left = 1
		line.at = never
		if line.index < len(stream.At) {
			at := stream.At[line.index]
			line.index++
			for line.phase < len(s.ends) && at >= s.ends[line.phase] {
				line.phase++
			}
			if line.phase < len(s.ends) {
				line.at = at
			}
		}
		return
	}
	// A gap of so many expected moments is spent phase by phase at its rate.
	gap := 1.0
	if !stream.Regular {
		gap = line.chance.ExpFloat64()
	}
	at := line.at
	for ; line.phase < len(s.ends); line.phase++ {
		perSecond := stream.PerSecond * s.plan.Phases[line.phase].Factor / float64(line.left)
		room := (s.ends[line.phase] - at).Seconds() * perSecond
		if gap < room {
			line.at = at + time.Duration(gap/perSecond*float64(time.Second))
			return
		}
		gap -= room
		at = s.ends[line.phase]
	}
	line.at = never
}
