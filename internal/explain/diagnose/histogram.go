package diagnose

import (
	"math"

	"github.com/unthrottle/unthrottle/internal/stats"
)

// timeHistogram is a number that changes, with the time at each value.
type timeHistogram struct {
	n    int
	time []int64
}

func (c *timeHistogram) add(d int64) {
	if d <= 0 {
		return
	}
	i := min(max(0, c.n), maxCount)
	for len(c.time) <= i {
		c.time = append(c.time, 0)
	}
	c.time[i] += d
}

// bars returns the values with any time.
func (c *timeHistogram) bars() []Bar {
	var bars []Bar
	for i, d := range c.time {
		if d > 0 {
			bars = append(bars, Bar{CPUs: i, Time: span(d)})
		}
	}
	return bars
}

// integral is the sum of value x time.
func integral(time []int64) float64 {
	sum := 0.0
	for i, d := range time {
		sum += float64(i) * float64(d)
	}
	return sum
}

func total(time []int64) float64 {
	sum := 0.0
	for _, d := range time {
		sum += float64(d)
	}
	return sum
}

// mean is the time-weighted mean, or 0 without any time.
func (c *timeHistogram) mean() float64 {
	if t := total(c.time); t > 0 {
		return integral(c.time) / t
	}
	return 0
}

// most is the largest value with any time.
func (c *timeHistogram) most() int {
	for i := len(c.time) - 1; i > 0; i-- {
		if c.time[i] > 0 {
			return i
		}
	}
	return 0
}

// quantile is the least value at or below which it is for so much of the time.
func (c *timeHistogram) quantile(q float64) int {
	return max(0, stats.Bucket(len(c.time), func(i int) int64 { return c.time[i] }, q))
}

// interval is a condition that comes and goes: how often, and how long it lasted at most.
type interval struct {
	on      bool
	now     int64
	longest int64
	count   int
	// long is the time in intervals of at least bound.
	long, bound int64
}

func (s *interval) add(on bool, d int64) {
	if !on {
		s.on, s.now = false, 0
		return
	}
	if !s.on {
		s.on = true
		s.count++
	}
	was := s.now
	s.now += d
	switch {
	case s.bound <= 0 || s.now < s.bound:
	case was < s.bound:
		s.long += s.now
	default:
		s.long += d
	}
	s.longest = max(s.longest, s.now)
}

// ceilCPUs is how many CPUs a limit fills at once.
func ceilCPUs(limit float64) int { return int(math.Ceil(limit - 1e-9)) }
