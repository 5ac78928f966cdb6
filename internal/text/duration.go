package text

import (
	"math"
	"strconv"
	"time"
)

// Duration writes a length of time with about three digits and its unit: "0 ms", "<0.01 ms", "0.25 ms", "9.5 ms",
// "81 ms", "2.31 s", "45.2 s". From two minutes on it has two units, rounded to the smaller: "2 min 5 s", "1 h 3 min",
// "3 d 4 h". A negative one has a minus.
func Duration(d time.Duration) string {
	if d < 0 {
		return "-" + Duration(-d)
	}
	switch {
	case d == 0:
		return "0 ms"
	case d < 10*time.Microsecond:
		return "<0.01 ms"
	case d < time.Millisecond:
		return fixed(d, time.Millisecond, 2) + " ms"
	case d < 9950*time.Microsecond:
		return fixed(d, time.Millisecond, 1) + " ms"
	case d < 999500*time.Microsecond:
		return fixed(d, time.Millisecond, 0) + " ms"
	case d%time.Second == 0 && d < inMinutes:
		return fixed(d, time.Second, 0) + " s"
	case d < 9995*time.Millisecond:
		return fixed(d, time.Second, 2) + " s"
	case d < inMinutes-50*time.Millisecond:
		return fixed(d, time.Second, 1) + " s"
	}
	return twoUnits(d)
}

// inMinutes is the length from which a duration is told in minutes.
const inMinutes = 2 * time.Minute

// fixed is d in a unit, with that many decimals.
func fixed(d, unit time.Duration, decimals int) string {
	return strconv.FormatFloat(float64(d)/float64(unit), 'f', decimals, 64)
}

// twoUnits writes d as its two largest units; a second of them that is 0 is left out.
func twoUnits(d time.Duration) string {
	const day = 24 * time.Hour
	units := []struct {
		length time.Duration
		name   string
	}{{day, "d"}, {time.Hour, "h"}, {time.Minute, "min"}, {time.Second, "s"}}
	for i, unit := range units[:len(units)-1] {
		next := units[i+1]
		rounded := d.Round(next.length)
		if rounded < unit.length {
			continue
		}
		text := strconv.FormatInt(int64(rounded/unit.length), 10) + " " + unit.name
		if rest := rounded % unit.length / next.length; rest > 0 {
			text += " " + strconv.FormatInt(int64(rest), 10) + " " + next.name
		}
		return text
	}
	return fixed(d, time.Second, 0) + " s"
}

// ExactDuration writes a length of time whole, in the largest unit of which it has at least one: "5 ms", "1.5 s",
// "200 us", "1 ns". It is for settings and for single steps of the kernel's accounting, where rounding would mislead.
func ExactDuration(d time.Duration) string {
	for _, unit := range []struct {
		length time.Duration
		name   string
	}{{time.Second, "s"}, {time.Millisecond, "ms"}, {time.Microsecond, "us"}} {
		if d.Abs() >= unit.length {
			return strconv.FormatFloat(float64(d)/float64(unit.length), 'f', -1, 64) + " " + unit.name
		}
	}
	if d == 0 {
		return "0 ms"
	}
	return strconv.FormatInt(int64(d), 10) + " ns"
}

// PerSecond writes a share of time as milliseconds per second, from its bounds, 0 to 1: "81-240 ms/s", and "81 ms/s"
// where both read the same. Below 10 ms it keeps one digit behind the point: what is little shall not look like nothing.
func PerSecond(low, high float64) string {
	from, to := millisecondsOf(low), millisecondsOf(high)
	if from == to {
		return to + " ms/s"
	}
	return from + "-" + to + " ms/s"
}

func millisecondsOf(share float64) string {
	switch ms := math.Max(0, 1000*share); {
	case ms == 0:
		return "0"
	case ms < 0.1:
		return "<0.1"
	case ms < 9.95:
		return strconv.FormatFloat(ms, 'f', 1, 64)
	default:
		return strconv.FormatFloat(ms, 'f', 0, 64)
	}
}
