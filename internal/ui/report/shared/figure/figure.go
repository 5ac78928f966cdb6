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
// 0.24) "81-240 ms/s".
package figure

import (
	"fmt"
	"strconv"
	"time"

	"github.com/unthrottle/unthrottle/internal/text"
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

// PerSecond is stopped time in ms per second, from its bounds in seconds per second; Missing without them.
func PerSecond(low, high *float64) string {
	if low == nil || high == nil {
		return Missing
	}
	return text.PerSecond(*low, *high)
}

// Seconds is a duration as JSON has it; nil stays nil.
func Seconds(d *time.Duration) *float64 {
	if d == nil {
		return nil
	}
	return new(d.Seconds())
}
