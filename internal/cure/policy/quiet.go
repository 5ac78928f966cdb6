package policy

import (
	"fmt"
	"regexp"
	"strconv"
	"time"
)

// Quiet is a time of each day; zero: there is none.
type Quiet struct {
	// From and To are since midnight, whole minutes. The time goes over midnight where To is before From.
	From, To time.Duration
	// Zone is the time zone; nil: UTC.
	Zone *time.Location
}

const day = 24 * time.Hour

var quietForm = regexp.MustCompile(`^([01][0-9]|2[0-3]):([0-5][0-9])-([01][0-9]|2[0-3]):([0-5][0-9])$`)

// ParseQuiet reads "08:00-20:00". Errors show the form.
func ParseQuiet(s string) (Quiet, error) {
	parts := quietForm.FindStringSubmatch(s)
	if parts == nil {
		return Quiet{}, fmt.Errorf("%.30q is no time of the day: write it as 08:00-20:00", s)
	}
	at := func(hours, minutes string) time.Duration {
		h, _ := strconv.Atoi(hours) // digits, by the form
		m, _ := strconv.Atoi(minutes)
		return time.Duration(h)*time.Hour + time.Duration(m)*time.Minute
	}
	q := Quiet{From: at(parts[1], parts[2]), To: at(parts[3], parts[4])}
	if q.From == q.To {
		return Quiet{}, fmt.Errorf("%s is either no time or all day: let its ends differ", s)
	}
	return q, nil
}

// String is the form that ParseQuiet reads.
func (q Quiet) String() string {
	at := func(d time.Duration) string { return fmt.Sprintf("%02d:%02d", d/time.Hour, d%time.Hour/time.Minute) }
	return at(q.From) + "-" + at(q.To)
}

// in is a time in the zone.
func (q Quiet) in(at time.Time) time.Time {
	if q.Zone == nil {
		return at.UTC()
	}
	return at.In(q.Zone)
}

// at is a time of the day of some time, by the clock of the zone.
func (q Quiet) at(day time.Time, since time.Duration) time.Time {
	return time.Date(day.Year(), day.Month(), day.Day(), 0, int(since/time.Minute), 0, 0, day.Location())
}

// Until is when the quiet time ends that something meets which begins at a time and takes so long; zero: it meets none.
func (q Quiet) Until(from time.Time, length time.Duration) time.Time {
	if q == (Quiet{}) {
		return time.Time{}
	}
	to := q.To
	if to < q.From {
		to += day
	}
	for today := q.in(from).AddDate(0, 0, -1); ; today = today.AddDate(0, 0, 1) {
		begins, ends := q.at(today, q.From), q.at(today, to)
		if !begins.Before(from.Add(length)) {
			return time.Time{}
		}
		if ends.After(from) {
			return ends
		}
	}
}
