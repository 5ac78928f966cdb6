package policy

import (
	"fmt"
	"regexp"
	"strconv"
	"time"
)

// Quiet is a time of each day, in UTC; zero: there is none.
type Quiet struct {
	// From and To are since midnight, whole minutes. The time goes over midnight where To is before From.
	From, To time.Duration
}

const day = 24 * time.Hour

var quietForm = regexp.MustCompile(`^([01][0-9]|2[0-3]):([0-5][0-9])-([01][0-9]|2[0-3]):([0-5][0-9])$`)

// ParseQuiet reads "08:00-20:00". Errors show the form.
func ParseQuiet(s string) (Quiet, error) {
	parts := quietForm.FindStringSubmatch(s)
	if parts == nil {
		return Quiet{}, fmt.Errorf("%.30q is no time of the day: write it as 08:00-20:00, in UTC", s)
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

// Until is when the quiet time ends that something meets which begins at a time and takes so long; zero: it meets none.
func (q Quiet) Until(from time.Time, length time.Duration) time.Time {
	if q == (Quiet{}) {
		return time.Time{}
	}
	lasts := q.To - q.From
	if lasts < 0 {
		lasts += day
	}
	midnight := from.UTC().Truncate(day)
	for begins := midnight.Add(q.From - day); begins.Before(from.Add(length)); begins = begins.Add(day) {
		if ends := begins.Add(lasts); ends.After(from) {
			return ends
		}
	}
	return time.Time{}
}
