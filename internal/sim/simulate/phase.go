package simulate

import (
	"time"

	"github.com/unthrottle/unthrottle/internal/scenario"
)

// steady is a constant load.
var steady = []scenario.Phase{{For: scenario.MaxDuration, Factor: 1}}

// pace is a clock that runs as fast as a workload's load, phase by phase.
type pace struct {
	phases  []scenario.Phase
	i       int
	at, end time.Duration // now, and the end of the phase
}

func newPace(phases []scenario.Phase, start time.Duration) pace {
	if len(phases) == 0 {
		phases = steady
	}
	return pace{phases: phases, at: start, end: start + phases[0].For}
}

// spend moves the clock on by that much of a load of factor 1, and returns the time; never: no load comes any
// more. The last phase does not end.
func (p *pace) spend(load time.Duration) time.Duration {
	for {
		factor, last := p.phases[p.i].Factor, p.i == len(p.phases)-1
		room := float64(p.end-p.at) * factor
		if last || factor > 0 && float64(load) <= room {
			need := float64(load) / factor
			if !(need <= float64(2*scenario.MaxDuration)) {
				return never // also for 0/0
			}
			p.at += time.Duration(need)
			return p.at
		}
		load -= time.Duration(room)
		p.at = p.end
		p.i++
		p.end += p.phases[p.i].For
	}
}

// fall returns the time at which the load last falls, from the workload's start; never: it does not.
func fall(phases []scenario.Phase) time.Duration {
	last, at := never, time.Duration(0)
	for i, p := range phases {
		if i > 0 && p.Factor < phases[i-1].Factor {
			last = at
		}
		at += p.For
	}
	return last
}
