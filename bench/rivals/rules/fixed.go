package rules

import (
	"time"

	"github.com/unthrottle/unthrottle/bandwidth"
)

// Fixed is a setting that follows from the spec alone and stays.
type Fixed func(Resources) Setting

// Cadence is 0.
func (f Fixed) Cadence() time.Duration { return 0 }

// Next is the setting.
func (f Fixed) Next(o Observed) (Setting, Rule) { return f(o.Spec), f }

// NoLimit takes the limit away. The request stays.
func NoLimit() Fixed {
	return func(r Resources) Setting { return Setting{RequestCPUs: r.RequestCPUs, Limit: limitOf(0)} }
}

// Raised is the limit times a factor, in periods of 100 ms; times 1 it is what Kubernetes sets by itself.
func Raised(factor float64) Fixed {
	return func(r Resources) Setting {
		return Setting{RequestCPUs: r.RequestCPUs, Limit: limitOf(milli(r.LimitCPUs * factor))}
	}
}

// In is the limit in another period, with a burst of so many times the quota of that period, which the kernel takes up to 1.
func In(period time.Duration, burst float64) Fixed {
	return func(r Resources) Setting {
		s := Raised(1)(r)
		s.Limit = s.Limit.In(period)
		if s.Limit.Limited() {
			s.Limit.Burst = time.Duration(burst * float64(s.Limit.Quota)).Truncate(bandwidth.Unit)
		}
		return s
	}
}
