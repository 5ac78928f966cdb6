package flightrecorder

import (
	"fmt"
	"time"
)

// Moment reads a time in the past. It accepts "03:12" or "03:12:30" (the latest such time before now, in now's time
// zone), a date with it ("2026-03-04 03:12"), RFC 3339, or an age ("20m").
func Moment(text string, now time.Time) (time.Time, error) {
	for _, layout := range []string{"15:04", "15:04:05"} {
		if t, err := time.ParseInLocation(layout, text, now.Location()); err == nil {
			y, m, d := now.Date()
			t = time.Date(y, m, d, t.Hour(), t.Minute(), t.Second(), 0, now.Location())
			if t.After(now) {
				t = time.Date(y, m, d-1, t.Hour(), t.Minute(), t.Second(), 0, now.Location())
			}
			return t, nil
		}
	}
	for _, layout := range []string{"2006-01-02 15:04", "2006-01-02 15:04:05", "2006-01-02T15:04", time.RFC3339} {
		if t, err := time.ParseInLocation(layout, text, now.Location()); err == nil {
			if t.After(now) {
				return time.Time{}, fmt.Errorf("%q is in the future: give a past time", text)
			}
			return t, nil
		}
	}
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return now.Add(-ago), nil
	}
	return time.Time{}, fmt.Errorf("%q is not a time: give 03:12, 2026-03-04 03:12, or how long ago, 20m", text)
}
