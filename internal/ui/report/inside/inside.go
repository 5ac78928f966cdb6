// Package inside shows what a look from inside a container found, as text and as JSON.
package inside

import (
	"fmt"
	"io"
	"math"
	"time"

	"github.com/unthrottle/unthrottle/internal/inside"
	"github.com/unthrottle/unthrottle/internal/text"
)

// Document is the JSON of `unthrottle inside`. What was not measured is null.
type Document struct {
	// Limited is null where the look cannot tell; Why then says why.
	Limited   *bool    `json:"limited"`
	PeriodMS  *float64 `json:"period_ms"`
	QuotaMS   *float64 `json:"quota_ms"`
	LimitCPUs *float64 `json:"limit_cpus"`
	// Stops are the periods of the window in which the quota stopped a thread, beside as good as no work of the look's own.
	Stops          *int     `json:"stops"`
	StoppedSeconds *float64 `json:"stopped_seconds"`
	LongestStopMS  *float64 `json:"longest_stop_ms"`
	WindowSeconds  float64  `json:"window_seconds"`
	// TrialStops are those of the trial, in which the look's own threads ran on every CPU.
	TrialStops   *int    `json:"trial_stops"`
	TrialSeconds float64 `json:"trial_seconds"`
	// LongestPeriodMS is the longest period that the trial tells. A limit in a longer one may be there where Limited is false.
	LongestPeriodMS float64 `json:"longest_period_ms"`
	// SpentShare is the share of the limit that the look used in the window.
	SpentShare *float64 `json:"spent_share"`
	// BusiestPID is the other process of the cgroup in sight that used most CPU time: what `unthrottle look` explains.
	BusiestPID *int   `json:"busiest_pid"`
	Method     string `json:"method"`
	Why        string `json:"why"`
}

// Methods, by what was seen.
const (
	byTrial = "a thread on each CPU ran for %s"
	byWatch = byTrial + "; then each looked every %s or so whether it was late"
)

// New is the document of a trial, what was found in it, and the watch after it. busiest is the other process in sight that used most
// CPU time; 0: there is none.
func New(f inside.Finding, t inside.Trial, w inside.Watch, busiest int) Document {
	d := Document{Limited: f.Limited, Why: f.Why, Method: fmt.Sprintf(byTrial, wholly(t.End)), TrialSeconds: round(t.End.Seconds(), 3),
		LongestPeriodMS: round(inside.LongestPeriod(t.End).Seconds()*1000, 0)}
	if busiest > 0 {
		d.BusiestPID = &busiest
	}
	switch {
	case f.Limited == nil:
	case !*f.Limited:
		d.WindowSeconds = d.TrialSeconds
		d.Stops, d.TrialStops, d.StoppedSeconds, d.LongestStopMS = new(int), new(int), new(float64), new(float64)
	default:
		ms := func(v time.Duration) *float64 { return number(v.Seconds()*1000, 2) }
		d.PeriodMS, d.QuotaMS, d.LimitCPUs = ms(f.Period), ms(f.Quota), number(f.LimitCPUs(), 3)
		trial := f.TrialStops(t)
		d.TrialStops = &trial.Periods
		window := w.End - w.Start
		if window <= 0 {
			break
		}
		s := f.Stops(w.Gaps, w.Start, w.End)
		d.Method = fmt.Sprintf(byWatch, wholly(t.End), text.Duration(w.Interval))
		d.WindowSeconds = round(window.Seconds(), 3)
		d.Stops, d.StoppedSeconds, d.LongestStopMS = &s.Periods, number(s.Total.Seconds(), 4), ms(s.Longest)
		d.SpentShare = number(float64(w.Spent)/float64(window)/f.LimitCPUs(), 4)
	}
	return d
}

// wholly is a trial's length to a tenth of a second.
func wholly(d time.Duration) string { return text.Duration(d.Round(100 * time.Millisecond)) }

func round(v float64, digits int) float64 {
	scale := math.Pow10(digits)
	return math.Round(v*scale) / scale
}

func number(v float64, digits int) *float64 {
	v = round(v, digits)
	return &v
}

// Write writes the document for people.
func Write(w io.Writer, d Document) error {
	switch {
	case d.Limited == nil:
		_, err := fmt.Fprintf(w, "limit      not known: %s\n", d.Why)
		return err
	case !*d.Limited:
		_, err := fmt.Fprintf(w, "limit      none with a period up to %s ms: for %s its threads had every CPU that it may use\nstops      0\n",
			text.Milliseconds(d.LongestPeriodMS), seconds(d.TrialSeconds))
		return err
	}
	if _, err := fmt.Fprintf(w, "limit      %s: a quota of %s ms in each period of %s ms\n", text.CPUs(*d.LimitCPUs),
		text.Milliseconds(*d.QuotaMS), text.Milliseconds(*d.PeriodMS)); err != nil {
		return err
	}
	if d.Stops == nil {
		_, err := fmt.Fprintln(w, "stops      not measured: the look ended before")
		return err
	}
	if *d.Stops == 0 {
		_, err := fmt.Fprintf(w, "stops      none in %s\ncost       %.1f %% of the limit\n", seconds(d.WindowSeconds), 100**d.SpentShare)
		return err
	}
	periods := d.WindowSeconds * 1000 / *d.PeriodMS
	_, err := fmt.Fprintf(w, "stops      in %d of %.0f periods; stopped for %s of %s, the longest for %s ms\ncost    "+
		"   %.1f %% of the limit\n",
		*d.Stops, periods, seconds(*d.StoppedSeconds), seconds(d.WindowSeconds), text.Milliseconds(*d.LongestStopMS), 100**d.SpentShare)
	if err == nil && d.BusiestPID != nil {
		_, err = fmt.Fprintf(w, "who        is told by 'unthrottle look %d': of the processes in sight it used most CPU time\n", *d.BusiestPID)
	}
	return err
}

func seconds(v float64) string { return text.Duration(time.Duration(v * float64(time.Second))) }
