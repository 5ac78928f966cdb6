package observe

import (
	"bytes"
	"errors"
	"math"
	"time"
)

// errFormat: a kernel file did not hold what the kernel writes there.
var errFormat = errors.New("not in the kernel's format")

// Which lines of cpu.stat were there.
const (
	seenPeriods = 1 << iota
	seenThrottledPeriods
	seenThrottled
	seenUsage
	seenBandwidth = seenPeriods | seenThrottledPeriods | seenThrottled
)

// ParseStat reads cpu.stat of either version ("name value" lines) without making garbage: it runs for every cgroup at
// every sample. Times are ns on v1 (throttled_time) and us on v2 (throttled_usec, usage_usec). Lines that are not
// known are skipped; a known one with a bad value is an error.
func ParseStat(text []byte) (Counters, error) {
	c, seen, err := parseStat(text)
	if err != nil {
		return Counters{}, err
	}
	c.HasBandwidth = seen&seenBandwidth == seenBandwidth
	c.HasUsage = seen&seenUsage != 0
	return c, nil
}

// ParseStatLocal reads cpu.stat.local: throttled_time in ns (v1) or throttled_usec (v2).
func ParseStatLocal(text []byte) (time.Duration, error) {
	c, seen, err := parseStat(text)
	if err == nil && seen&seenThrottled == 0 {
		err = errFormat
	}
	if err != nil {
		return 0, err
	}
	return c.Throttled, nil
}

// ParseUsage reads cpuacct.usage: one number of ns.
func ParseUsage(text []byte) (time.Duration, error) {
	return duration(bytes.TrimSuffix(text, newline), time.Nanosecond)
}

var newline = []byte{'\n'}

func parseStat(text []byte) (c Counters, seen int, err error) {
	for len(text) > 0 && err == nil {
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
		value := line[i+1:]
		switch string(line[:i]) {
		case "nr_periods":
			c.Periods, err = count(value)
			seen |= seenPeriods
		case "nr_throttled":
			c.ThrottledPeriods, err = count(value)
			seen |= seenThrottledPeriods
		case "throttled_time":
			c.Throttled, err = duration(value, time.Nanosecond)
			seen |= seenThrottled
		case "throttled_usec":
			c.Throttled, err = duration(value, time.Microsecond)
			seen |= seenThrottled
		case "usage_usec":
			c.Usage, err = duration(value, time.Microsecond)
			seen |= seenUsage
		}
	}
	return c, seen, err
}

// count reads nr_periods or nr_throttled. The kernel keeps them as int and prints them so: after 2^31 periods (25 days
// of 1 ms) they go on at -2^31. Read as unsigned 32 bits they go on upwards.
func count(digits []byte) (uint64, error) {
	negative := len(digits) > 0 && digits[0] == '-'
	if negative {
		digits = digits[1:]
	}
	n, err := number(digits)
	switch {
	case err != nil:
		return 0, err
	case !negative:
		return n, nil
	case n == 0 || n > 1<<31:
		return 0, errFormat
	}
	return 1<<32 - n, nil
}

// duration reads a time; what does not fit 292 years is refused.
func duration(digits []byte, unit time.Duration) (time.Duration, error) {
	n, err := number(digits)
	if err == nil && n > uint64(math.MaxInt64/unit) {
		err = errFormat
	}
	if err != nil {
		return 0, err
	}
	return time.Duration(n) * unit, nil
}

// number reads a plain decimal number that fits 64 bits.
func number(digits []byte) (uint64, error) {
	if len(digits) == 0 {
		return 0, errFormat
	}
	var n uint64
	for _, d := range digits {
		if d < '0' || d > '9' || n > (math.MaxUint64-9)/10 {
			return 0, errFormat
		}
		n = n*10 + uint64(d-'0')
	}
	return n, nil
}
