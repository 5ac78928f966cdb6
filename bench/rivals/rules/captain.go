package rules

import (
	"math"
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/bandwidth"
	"github.com/unthrottle/unthrottle/internal/stats"
)

// Captain is Autothrottle's controller of one service. It holds the share of throttled periods at a target: it raises the limit
// by how far the share is beyond three times the target, lowers it towards the most that was used lately and a margin, and
// takes back a lowering that turned out too far.
//
// Source: Wang et al., "Autothrottle: A Practical Bi-Level Approach to Resource Management for SLO-Targeted Microservices",
// NSDI 2024; the rule and its constants by the authors' program, github.com/microsoft/autothrottle at d237d7f,
// worker-daemon.py, class CaptainScaler.
type Captain struct {
	// Target is the share of throttled periods, 0 to 1. In Autothrottle another program, Tower, learns it from the latency of
	// the whole application and sets it anew each minute.
	Target float64

	limitCPUs, lastCPUs float64
	margin              float64 // in standard deviations of the use
	lowered             bool    // by the last decision, which was not taken back yet
	throttled           [captainSamples]int64
	used                [captainUses]float64
	begun               bool
	decided             time.Duration
}

// Constants of worker-daemon.py.
const (
	captainSample     = 100 * time.Millisecond
	captainDecision   = time.Second
	captainEarly      = 100 * time.Microsecond // a decision may be
	captainSamples    = 10                     // samples of throttled periods that count, those of one decision
	captainUses       = 50                     // samples of use that count
	captainMargin     = 3                      // at the start
	captainTolerance  = 3                      // times the target
	captainWorthwhile = 0.9                    // of the limit: a lower one is worth a change
	captainMostDown   = 0.5                    // of the limit: no decision goes lower
	captainLeastCPUs  = 0.01
)

// NewCaptain begins with a limit.
func NewCaptain(target, limitCPUs float64) Captain {
	return Captain{Target: target, limitCPUs: limitCPUs, lastCPUs: limitCPUs, margin: captainMargin}
}

// Cadence is that of the samples, a period of the kernel; every tenth brings a decision.
func (c Captain) Cadence() time.Duration { return captainSample }

// Next takes a sample, and decides after a second. A lowering may be taken back after any sample.
func (c Captain) Next(o Observed) (Setting, Rule) {
	if c.begun {
		c.sample(o)
	} else {
		c.begun, c.decided = true, o.At
	}
	s := o.Now
	s.Limit.Period = bandwidth.DefaultPeriod
	us := math.RoundToEven(max(c.limitCPUs, captainLeastCPUs) * float64(s.Limit.Period/bandwidth.Unit))
	s.Limit.Quota = time.Duration(us) * bandwidth.Unit
	return s, c
}

// sample adds what was observed, and takes back or decides where it is time to.
func (c *Captain) sample(o Observed) {
	shift(c.throttled[:], o.Throttled)
	shift(c.used[:], o.cpus())
	if rate := c.rate(); c.lowered && rate > captainTolerance*c.Target {
		c.limitCPUs = 2*c.lastCPUs - c.limitCPUs
		c.margin += rate - c.Target
		c.throttled = [captainSamples]int64{}
		c.lowered = false
	}
	if o.At < c.decided+captainDecision-captainEarly {
		return
	}
	c.decide()
	c.throttled = [captainSamples]int64{}
	c.limitCPUs = max(captainLeastCPUs, c.limitCPUs)
	c.decided = o.At
}

// decide raises or lowers the limit, or leaves it.
func (c *Captain) decide() {
	rate := c.rate()
	c.margin = max(0, c.margin+rate-c.Target)
	c.lastCPUs, c.lowered = c.limitCPUs, false
	if beyond := rate - captainTolerance*c.Target; beyond > 0 {
		c.limitCPUs *= 1 + beyond
		return
	}
	_, deviation := stats.MeanDeviation(c.used[:])
	enough := slices.Max(c.used[:]) + deviation*c.margin
	if enough <= captainWorthwhile*c.limitCPUs {
		c.limitCPUs = max(captainMostDown*c.limitCPUs, enough)
		c.lowered = true
	}
}

// rate is the share of throttled periods since the last decision; periods still to come count as not throttled.
func (c *Captain) rate() float64 {
	sum := int64(0)
	for _, n := range c.throttled {
		sum += n
	}
	return float64(sum) / captainSamples
}

// shift drops the oldest value and adds one.
func shift[T any](values []T, newest T) {
	copy(values, values[1:])
	values[len(values)-1] = newest
}
