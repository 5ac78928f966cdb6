// Package figure writes single figures as views show them.
//
// # Rule
//
// What was not measured is "-", never 0. A range whose bounds are equal is one
// figure.
//
// # Example
//
// Fixed(nil, 2) is "-", Fixed(1.5, 2) "1.50", Trimmed(1.50) "1.5", PerSecond(0.081,
// 0.24) "81-240 ms".
package figure

import (
	"fmt"
	"strconv"
	"time"
)

// Missing stands for what was not measured.
const Missing = "-"

// Fixed is a figure with that many decimals.
func Fixed(v *float64, decimals int) string {
	if v == nil {
		return Missing
	}
	return strconv.FormatFloat(*v, 'f', decimals, 64)
}

// Trimmed is a figure with as many decimals as it needs.
func Trimmed(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// OfPeriods is "throttled of all", Missing without a quota.
func OfPeriods(throttled, all *uint64) string {
	if throttled == nil || all == nil {
		return Missing
	}
	return fmt.Sprintf("%d of %d", *throttled, *all)
}

// PerSecond is stopped time in ms per second, from its bounds in seconds per second.
func PerSecond(low, high *float64) string {
	switch {
	case low == nil || high == nil:
		return Missing
	case *low == *high:
		return fmt.Sprintf("%.0f ms", *low*1000)
	}
	return fmt.Sprintf("%.0f-%.0f ms", *low*1000, *high*1000)
}

// Seconds is a duration as JSON has it; nil stays nil.
func Seconds(d *time.Duration) *float64 {
	if d == nil {
		return nil
	}
	return new(d.Seconds())
}
