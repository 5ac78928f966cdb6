package main

import (
	"math"
	"slices"
	"strings"
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
	// Forecast and Came are p99 as a factor of leaving it.
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
	// Close: p99 is within closeShare of the forecast. Within: it lies in the forecast's interval, which the rounds'
	// spread may touch.
	Close, Within bool
	// FactorClose: p99 as a factor of leaving it is within closeShare of the forecast one.
	FactorClose bool
}

const (
	// closeShare is how far from the forecast p99 may be.
	closeShare = 0.25
	// fairRequests is how many requests a p99 needs.
	fairRequests = 500
	// alertShare is the share of throttled periods above which the kubernetes-mixin alerts.
	alertShare = 0.25
)

// scoreOf compares a case with what was kept of it. The tool must have looked at it.
func scoreOf(c testCase, k kept) score {
	l := k.Look
	s := score{Alert: l.Periods > 0 && float64(l.Throttled) > alertShare*float64(l.Periods)}
	if c.healthy {
		s.Cause = l.Cause == "" || l.Cause == "none"
		s.FalseAlarm = !s.Cause || len(l.Advice) > 0 || l.Recommended != ""
		s.Guilty, s.Suffers, s.Judges = s.Cause, s.Cause, true
		return s
	}
	s.Cause = slices.Contains(c.causes, l.Cause)
	s.Guilty = s.Cause && named(l.Guilty, c.guilty)
	s.Suffers = s.Cause && (l.Suffers == "" || waits(l.Suffers, c.suffers))
	s.Judges = l.Judged == "" || waits(l.Judged, c.suffers)
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
func effectsOf(k kept) []effect {
	rows := k.Look.Rows
	none, leave := rowOf(rows, leaveIt), k.figures(leaveIt)
	if none == nil || none.Judged == nil || *none.Judged <= 0 || leave.Rounds == 0 {
		return nil
	}
	var all []effect
	for _, v := range k.Variants {
		r, came := rowOf(rows, v.Name), k.figures(v.Name)
		if r == nil || r.Judged == nil || came.Rounds == 0 {
			continue
		}
		e := effect{
			Variant: v.Name, ForecastMs: *r.Judged, CameMs: came.Median,
			Forecast: *r.Judged / *none.Judged, Came: came.Median / leave.Median,
			Low: *r.Judged, High: *r.Judged,
			Real: less(came, leave, false) || less(leave, came, false),
			Fair: k.fair(v.Name),
		}
		if r.Range != nil {
			e.Low, e.High = r.Range.Low, r.Range.High
		}
		e.Sign = e.Forecast < 1 == (e.Came < 1) && e.Forecast != 1
		e.Close = math.Abs(e.ForecastMs/e.CameMs-1) <= closeShare
		e.FactorClose = math.Abs(e.Forecast/e.Came-1) <= closeShare
		e.Within = came.High >= e.Low && came.Low <= e.High
		all = append(all, e)
	}
	return all
}

// fair tells whether a variant's p99 can be compared with a forecast.
func (k *kept) fair(variant string) bool {
	requests := uint64(0)
	for _, r := range k.runsOf(variant) {
		if r.clientLate() || r.Errors > 0 {
			return false
		}
		requests += r.Requests
	}
	return requests >= fairRequests
}
