package cgroup

import (
	"bytes"
	"fmt"
	"math"
	"time"
)

// StatLines is the set of lines that a cpu.stat has.
type StatLines uint8

// The lines of cpu.stat that this project uses.
const (
	LinePeriods StatLines = 1 << iota
	LineThrottledPeriods
	LineThrottled
	LineBursts
	LineBurstTime
	LineUsage
)

// CPUStat has the numbers of cpu.stat or cpu.stat.local. It is flat and needs no allocation, because a sampler reads it
// for every cgroup, ten times a second.
type CPUStat struct {
	Lines                             StatLines
	Periods, ThrottledPeriods, Bursts uint64
	Throttled, BurstTime, Usage       time.Duration
}

// Has reports whether all of these lines were present.
func (s *CPUStat) Has(lines StatLines) bool { return s.Lines&lines == lines }

// ParseCPUStat reads lines of "name value". The name has the unit: throttled_time and burst_time of v1 are in ns;
// throttled_usec, burst_usec and usage_usec of v2 in us (cpu_cfs_stat_show and cpu_extra_stat_show,
// kernel/sched/core.c). It skips other lines. A known line with a bad value is an [ErrFormat] that names the line, and
// the result is then empty.
func ParseCPUStat(text []byte) (s CPUStat, err error) {
	for len(text) > 0 {
		line := text
		if i := bytes.IndexByte(text, '\n'); i >= 0 {
			line, text = text[:i], text[i+1:]
		} else {
			text = nil
		}
		i := bytes.IndexByte(line, ' ')
		if i < 0 {
			continue
		}
		if err := s.set(line[:i], line[i+1:]); err != nil {
			return CPUStat{}, fmt.Errorf("%s: %w", line[:i], err)
		}
	}
	return s, nil
}

func (s *CPUStat) set(name, value []byte) (err error) {
	switch string(name) {
	case "nr_periods":
		s.Lines |= LinePeriods
		s.Periods, err = parseEvents(value)
	case "nr_throttled":
		s.Lines |= LineThrottledPeriods
		s.ThrottledPeriods, err = parseEvents(value)
	case "nr_bursts":
		s.Lines |= LineBursts
		s.Bursts, err = parseEvents(value)
	case "throttled_time":
		s.Lines |= LineThrottled
		s.Throttled, err = ParseTime(value, time.Nanosecond)
	case "throttled_usec":
		s.Lines |= LineThrottled
		s.Throttled, err = ParseTime(value, time.Microsecond)
	case "burst_time":
		s.Lines |= LineBurstTime
		s.BurstTime, err = ParseTime(value, time.Nanosecond)
	case "burst_usec":
		s.Lines |= LineBurstTime
		s.BurstTime, err = ParseTime(value, time.Microsecond)
	case "usage_usec":
		s.Lines |= LineUsage
		s.Usage, err = ParseTime(value, time.Microsecond)
	}
	return err
}

// ParseUsage reads cpuacct.usage: one number of ns.
func ParseUsage(text []byte) (time.Duration, error) {
	return ParseTime(bytes.TrimSuffix(text, newline), time.Nanosecond)
}

var newline = []byte{'\n'}

// parseEvents reads a counter that is an int in the kernel (struct cfs_bandwidth). After 2^31-1, which is 25 days of 1
// ms periods, it continues at -2^31. Read as unsigned 32 bits it continues upwards.
func parseEvents(digits []byte) (uint64, error) {
	negative, isNegative := bytes.CutPrefix(digits, minus)
	n, err := parseDecimal(negative)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%w: %.40q is not a count", ErrFormat, digits)
	case !isNegative:
		return n, nil
	case n == 0 || n > 1<<31:
		return 0, fmt.Errorf("%w: %.40q is not an int of 32 bits", ErrFormat, digits)
	}
	return 1<<32 - n, nil
}

var minus = []byte{'-'}

// ParseTime reads a plain decimal number of that unit. It refuses a time above the range of a Duration, 292 years, with
// [ErrFormat].
func ParseTime(digits []byte, unit time.Duration) (time.Duration, error) {
	n, err := parseDecimal(digits)
	if err != nil {
		return 0, fmt.Errorf("%w: %.40q is not a time", ErrFormat, digits)
	}
	if n > uint64(math.MaxInt64/unit) {
		return 0, fmt.Errorf("%w: %.40q is beyond 292 years", ErrFormat, digits)
	}
	return time.Duration(n) * unit, nil
}

// parseDecimal reads a plain decimal number that fits 64 bits: strconv.ParseUint without a string. It also refuses the
// last few values below 2^64.
func parseDecimal(digits []byte) (uint64, error) {
	if len(digits) == 0 {
		return 0, ErrFormat
	}
	var n uint64
	for _, d := range digits {
		if d < '0' || d > '9' || n > (math.MaxUint64-9)/10 {
			return 0, ErrFormat
		}
		n = n*10 + uint64(d-'0')
	}
	return n, nil
}
