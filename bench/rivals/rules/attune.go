package rules

import (
	"math"
	"time"
)

// Attune is the operator of that name with the defaults of its policy: a percentile, headroom, more for bursts and for a short
// history, bounds, and no more than half up or down at a time. It takes back what left the container throttled in more than
// half of the periods.
//
// By default only the request changes, and the limit stays. Its samples are 5 minutes apart; a history of a week is enough to
// trust it, and one of a day brings 73 % on top.
//
// Its page on the algorithm has another factor for the history, (1 + 1/confidence)^2, which ends the page's example at 750m.
// The program of the same release, whose factor this is, ends there at 250m.
//
// Source: attune-io/attune v0.1.23: docs/architecture/{algorithm,safety}.md, internal/recommendation/chain.go,
// internal/metrics/profile.go, internal/safety/monitor.go, internal/controller/savings.go (limits); defaults in
// api/v1alpha1/defaults.go.
type Attune struct {
	Limits bool // controlledValues RequestsAndLimits: the limit stays as many times the request as it is

	resized time.Duration
	begun   bool
	before  Setting
	watched bool // before is in force again if the container is throttled
}

// Defaults of api/v1alpha1/defaults.go, and constants of chain.go, profile.go and monitor.go.
const (
	attunePercentile  = 0.95
	attuneOverhead    = 1.2
	attuneBurst       = 3   // times the percentile: from here on the longest sample is a burst
	attuneSensitivity = 0.1 // to a burst, for each doubling
	attuneWeek        = 7
	attuneLeastMilli  = 1
	attuneMostMilli   = 4000
	attuneLeastChange = 10 // percent
	attuneMostChange  = 50
	attuneCooldown    = time.Hour
	attuneWatch       = 5 * time.Minute
	attuneThrottled   = 0.5
	attunePoints      = 48
	attuneADay        = 24 // points of a day that would be enough
)

// profile is what Attune finds in a history.
type profile struct {
	cpus       float64 // the highest percentile of an hour of the day, and of all
	burst      float64 // the highest sample over the percentile of all, where that is a burst; else 0
	confidence float64 // 0 to 1
}

// profileOf sorts samples by the hour of the day.
func profileOf(history []Sample) profile {
	var hours [24][]Sample
	for _, s := range history {
		hour := int(s.At/time.Hour) % len(hours)
		hours[hour] = append(hours[hour], s)
	}
	all := sorted(history)
	p95 := quantile(all, attunePercentile)
	p := profile{cpus: p95}
	for _, samples := range hours {
		p.cpus = max(p.cpus, quantile(sorted(samples), attunePercentile))
	}
	if p95 > 0 {
		if ratio := all[len(all)-1] / p95; ratio > attuneBurst {
			p.burst = ratio
		}
	}
	days := (history[len(history)-1].At - history[0].At).Hours() / 24
	p.confidence = max(0, min(1, min(days, math.Sqrt(float64(len(history))/attuneADay))/attuneWeek))
	return p
}

// milliOf is the request in thousandths for a profile, before bounds and the filter of changes. A container that used nothing
// counts as one that used its request.
func (p profile) milliOf(now int64) int64 {
	used := now
	if p.cpus > 0 {
		used = int64(math.Ceil(p.cpus * 1000))
	}
	return scaledUp(scaledUp(scaledUp(used, attuneOverhead), p.burstFactor()), 1+math.Pow(1-p.confidence, 2))
}

// burstFactor is 1 where there is no burst.
func (p profile) burstFactor() float64 {
	if p.burst <= 1 {
		return 1
	}
	return 1 + attuneSensitivity*math.Log2(p.burst)
}

// scaledUp is an amount times a factor, rounded up.
func scaledUp(milli int64, factor float64) int64 { return int64(math.Ceil(float64(milli) * factor)) }

// attuneStep is how far a request goes at a time towards what is wanted, within the bounds.
func attuneStep(now, wanted int64) int64 {
	wanted = max(attuneLeastMilli, min(wanted, attuneMostMilli))
	if now == 0 {
		return wanted
	}
	percent := math.Abs(float64(wanted-now)) / float64(now) * 100
	most := float64(now) * attuneMostChange / 100
	switch {
	case percent < attuneLeastChange:
		return now
	case percent > attuneMostChange && wanted > now:
		return int64(math.Ceil(float64(now) + most))
	case percent > attuneMostChange:
		return int64(math.Ceil(float64(now) - most))
	}
	return wanted
}

// Cadence is how long a resize is watched; it resizes once an hour.
func (a Attune) Cadence() time.Duration { return attuneWatch }

// Next takes back a resize, resizes, or waits. It never asks for a request above the limit.
func (a Attune) Next(o Observed) (Setting, Rule) {
	s := o.Now
	if a.watched && o.At-a.resized >= attuneWatch {
		a.watched = false
		if o.Periods > 0 && float64(o.Throttled)/float64(o.Periods) > attuneThrottled {
			return a.before, a
		}
	}
	if len(o.History) < attunePoints || a.begun && o.At-a.resized < attuneCooldown {
		return s, a
	}
	now := milli(s.RequestCPUs)
	request := attuneStep(now, profileOf(o.History).milliOf(now))
	if !s.Limit.Limited() {
		// nothing bounds the request
	} else if limit := milli(s.Limit.CPUs()); a.Limits && now > 0 {
		s.Limit = limitOf(int64(float64(request) * (float64(limit) / float64(now))))
	} else {
		request = min(request, limit)
	}
	if request == now {
		return o.Now, a
	}
	a.before, a.resized, a.begun, a.watched = o.Now, o.At, true, true
	s.RequestCPUs = cpusOf(request)
	return s, a
}
