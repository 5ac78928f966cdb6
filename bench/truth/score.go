package main

import (
	"slices"
	"strings"

	"github.com/unthrottle/unthrottle/bench/services"
	"github.com/unthrottle/unthrottle/internal/sim/forecast"
	"github.com/unthrottle/unthrottle/internal/stats"
)

// score is what explain and forecast said of a case against its truth.
type score struct {
	// Cause and Guilty: the first cause is one that the truth accepts, and names a guilty part.
	Cause, Guilty bool
	// Suffers: the part that it names as stopped is the one that waits. A cause that names none means all of the
	// container.
	Suffers bool
	// Judges: the forecast judges the part that waits.
	Judges bool
	// FalseAlarm: the service is healthy, and explain names a cause, gives advice or forecast recommends a change.
	FalseAlarm bool
	// Alert: the alert of the kubernetes-mixin would fire (CPUThrottlingHigh: more than a quarter of the periods).
	Alert bool
	// Effects has each remedy that was applied for real and forecast.
	Effects []effect
}

// effect is what a remedy was forecast to do to p99, and what it did.
type effect struct {
	Variant string
	// Forecast and Came are p99 as a factor of leaving it. The variants of a round get the same requests, so Came is the
	// median of the rounds' factors.
	Forecast, Came float64
	// ForecastMs and CameMs are p99 itself; Range is the interval of the forecast.
	ForecastMs, CameMs float64
	Low, High          float64
	// Real: the rounds differ from leaving it beyond the noise, in either direction. Leaving it never does.
	Real bool
	// Sign: the forecast has the same direction.
	Sign bool
	// Fair: enough requests, and a client that was in time, so that p99 itself may be compared.
	Fair bool
	// Close: p99 is within a quarter of the forecast. Within: the forecast's interval contains it.
	Close, Within bool
	// Steady: every round is within a quarter of the rounds' median, so that one forecast can be right for all.
	Steady bool
	// Agree of Rounds are within a quarter of the median of the other rounds: what another measurement reaches as a
	// forecast.
	Agree, Rounds int
	// Mixed: the client's p99 is of one of several kinds of requests, and the forecast is of all together.
	Mixed bool
}

const (
	// fairRequests is how many requests a p99 needs.
	fairRequests = 500
	// alertShare is the share of throttled periods above which the kubernetes-mixin alerts.
	alertShare = 0.25
)

// scoreOf compares a case with what was kept of it. The tool must have looked at it.
func scoreOf(c services.Case, k caseRun) score {
	l := k.Look
	s := score{Alert: l.Periods > 0 && float64(l.Throttled) > alertShare*float64(l.Periods)}
	if c.Healthy {
		s.Cause = l.Cause == "" || l.Cause == "none"
		s.FalseAlarm = !s.Cause || len(l.Advice) > 0 || l.Recommended != ""
		s.Guilty, s.Suffers, s.Judges = s.Cause, s.Cause, true
		return s
	}
	s.Cause = slices.Contains(c.Causes, l.Cause)
	s.Guilty = s.Cause && named(l.Guilty, c.Guilty)
	s.Suffers = s.Cause && (l.Suffers == "" || waits(l.Suffers, c.Suffers))
	s.Judges = l.Judged == "" || waits(l.Judged, c.Suffers)
	if !k.work() {
		s.Effects = effectsOf(k)
	}
	return s
}

// named tells whether one of the names has one of the parts. No parts: any name will do.
func named(names, parts []string) bool {
	if len(parts) == 0 {
		return true
	}
	return slices.ContainsFunc(names, func(name string) bool {
		return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(strings.ToLower(name), strings.ToLower(part)) })
	})
}

// waits is named for the part that waits: the name of one role of a program, such as "node (workers)", is not that of
// the program.
func waits(name string, parts []string) bool {
	const role = "(:"
	if strings.ContainsAny(name, role) {
		parts = slices.DeleteFunc(slices.Clone(parts), func(part string) bool { return !strings.ContainsAny(part, role) })
		return len(parts) > 0 && named([]string{name}, parts)
	}
	return named([]string{name}, parts)
}

// effectsOf compares every remedy that was forecast and measured.
func effectsOf(k caseRun) []effect {
	rows := k.Look.Rows
	none, leave := rowOf(rows, leaveIt), k.figures(leaveIt)
	if none == nil || leave.Rounds == 0 {
		return nil
	}
	now, _ := none.client()
	if now == nil || *now <= 0 {
		return nil
	}
	var effects []effect
	for _, v := range k.Variants {
		r, came := rowOf(rows, v.Name), k.figures(v.Name)
		if r == nil || came.Rounds == 0 {
			continue
		}
		p99, in := r.client()
		if p99 == nil {
			continue
		}
		e := effect{
			Variant: v.Name, ForecastMs: *p99, CameMs: came.Median,
			Forecast: *p99 / *now, Came: k.factor(v.Name),
			Low: *p99, High: *p99,
			Real: less(came, leave, false) || less(leave, came, false),
			Fair: k.fair(v.Name), Steady: near(came.Low, came.Median) && near(came.High, came.Median), Mixed: k.mixed(),
		}
		if in != nil {
			e.Low, e.High = in.Low, in.High
		}
		e.Sign = e.Forecast < 1 == (e.Came < 1) && e.Forecast != 1
		e.Close = near(e.ForecastMs, e.CameMs)
		e.Agree, e.Rounds = k.agree(v.Name)
		e.Within = came.Median >= e.Low && came.Median <= e.High
		effects = append(effects, e)
	}
	return effects
}

// near tells whether a value is as close to what came as the program calls close.
func near(value, came float64) bool { return forecast.Close(value, came) }

// comparable tells whether p99 itself can be judged: one forecast can be right for all rounds, and the client measured the
// requests that it is of.
func (e *effect) comparable() bool { return e.Fair && e.Steady && !e.Mixed }

// factor is the median of the rounds' p99 as a factor of leaving it in the same round.
func (k *caseRun) factor(variant string) float64 {
	var all []float64
	for _, r := range k.runsOf(variant) {
		for _, left := range k.runsOf(leaveIt) {
			if left.Round == r.Round && r.P99 != nil && left.P99 != nil && *left.P99 > 0 {
				all = append(all, *r.P99 / *left.P99)
			}
		}
	}
	if len(all) == 0 { // no round has both
		return k.figures(variant).Median / k.figures(leaveIt).Median
	}
	return stats.Median(all)
}

// agree counts the rounds of a variant within a quarter of the median of the others.
func (k *caseRun) agree(variant string) (within, rounds int) {
	var all []float64
	for _, r := range k.runsOf(variant) {
		if r.P99 != nil {
			all = append(all, *r.P99)
		}
	}
	if len(all) < 2 {
		return 0, 0
	}
	for i, one := range all {
		within += count(near(one, stats.Median(slices.Delete(slices.Clone(all), i, i+1))))
	}
	return within, len(all)
}

// mixed tells whether the case has kinds of requests beside the one that is judged.
func (k *caseRun) mixed() bool {
	return slices.ContainsFunc(k.Runs, func(r oneRun) bool { return len(r.Beside) > 0 })
}

// fair tells whether a variant's p99 can be compared with a forecast.
func (k *caseRun) fair(variant string) bool {
	requests := uint64(0)
	for _, r := range k.runsOf(variant) {
		if r.clientLate() || r.Errors > 0 {
			return false
		}
		requests += r.Requests
	}
	return requests >= fairRequests
}

// mostLate is the share of a p99 that the client's own lateness may have.
const mostLate = 0.2

// clientLate tells whether the client lacked CPU itself, so that the figure is too high.
func (r *oneRun) clientLate() bool {
	return r.LateP99 != nil && r.P99 != nil && *r.LateP99 > mostLate**r.P99
}
