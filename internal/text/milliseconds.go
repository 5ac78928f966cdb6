package text

import "strconv"

// Milliseconds shows a time in ms with three digits or so: 0.25, 12.3, 145. The unit is the caller's.
func Milliseconds(ms float64) string {
	switch {
	case ms >= 100:
		return strconv.FormatFloat(ms, 'f', 0, 64)
	case ms >= 10:
		return strconv.FormatFloat(ms, 'f', 1, 64)
	}
	return strconv.FormatFloat(ms, 'f', 2, 64)
}
