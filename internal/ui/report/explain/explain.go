// Package explain writes one explanation as text, as JSON and as a page.
package explain

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/sim/forecast"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/figure"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/page"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/rows"
)

// Options of Write.
type Options struct {
	page.Style // red: it is stopped; yellow: a cause without stopped time; green: fine
	// Recommended is what the forecast of the same recording recommends; nil: NotForecast says why there is none.
	Recommended *policy.Choice
	NotForecast string
	// NotHere say which remedies this host cannot do: see rows.NotHere.
	NotHere []string
	// Forecast has the rows that it was chosen from, for the page; nil: the page has none.
	Forecast *forecast.Forecast
	// Next is the command to type next, for the page; "": none.
	Next string
}

// Recommend puts a forecast of the same recording, and the choice from it, into the options, and returns the choice for JSON. It
// takes the advice that the forecast contradicts from the explanation, and a verdict that nothing is wrong where few
// stops make up the slowest
// requests.
func (o *Options) Recommend(e *diagnose.Explanation, f *forecast.Forecast, c *policy.Choice) *rows.Recommended {
	o.Recommended, o.Forecast = c, f
	if c.Answer != policy.AnswerLeave || !c.Certain {
		o.NotHere = rows.NotHere(f, c) // else nothing is to be done
	}
	Check(e.Pools, f)
	if o.fewStops(e) && e.Stopped != nil && *e.Stopped > 0 {
		e.Verdict = fmt.Sprintf("A quota held it back for only %s of %s, but the slowest of its requests waited for "+
			"that.", text.Duration(*e.Stopped), text.Duration(e.Window))
	}
	return rows.NewRecommended(f, c)
}

// fewStops reports that no cause was found, and a remedy is recommended all the same.
func (o *Options) fewStops(e *diagnose.Explanation) bool {
	return e.Cause == diagnose.None && o.Recommended != nil && o.Recommended.Answer == policy.AnswerRemedy
}

// Bounds of the width, and on how much is shown for people; JSON has all of it.
const (
	minWidth    = 40
	narrowWidth = 80 // below it tables become lists
	maxWidth    = 132
	maxCauses   = 4
	maxPools    = 12
	maxOthers   = 6
	maxNotes    = 12
	maxName     = 40
	maxText     = 2048
)

// view writes one explanation.
type view struct {
	*page.Page
	e     *diagnose.Explanation
	ascii bool
	few   bool // Options.fewStops
}

// Write writes why a container was stopped: the verdict with its evidence, the histogram of CPUs in use, the timeline,
// who spent the quota, the slowest requests, where waiting went, the runnable threads per reserved core. Then come the
// checks that failed and
// what was not measured, and at the end what is recommended. A section without a figure is left out; the last section has the reason.
func Write(w io.Writer, e diagnose.Explanation, o Options) error {
	x := &view{page.New(o.Style, minWidth, maxWidth), &e, o.ASCII, o.fewStops(&e)}
	x.verdict()
	x.histogram()
	x.timeline()
	x.spenders()
	x.requests()
	x.waiting()
	x.perCore()
	x.doubts()
	x.recommended(o)
	x.ownRemedies()
	return x.Send(w)
}

// recommended ends the report with the line that forecast and fix would act on.
func (x *view) recommended(o Options) {
	switch {
	case o.Recommended != nil:
		x.Line("")
		for _, line := range o.advice() {
			x.Hanging("", line)
		}
	case o.NotForecast != "":
		x.Line("")
		x.Hanging("", "Nothing is recommended: "+shownText(o.NotForecast)+".")
	}
}

// ownRemedies ends the report of a look.
func (x *view) ownRemedies() {
	if len(x.e.OwnRemedies) > 0 {
		x.Section("What you can do without rights on the host:")
	}
	for _, text := range x.e.OwnRemedies {
		x.Hanging("  ", shownText(text))
	}
}

// advice is what is recommended, and which remedies this host cannot do.
func (o Options) advice() []string { return append(rows.Sentences(o.Recommended), o.NotHere...) }

func (x *view) narrow() bool { return x.Columns < narrowWidth }

func (x *view) verdict() {
	e := x.e
	x.Hanging("", x.Bolden(shownName(e.Target))+": "+strings.Join(facts(e), ", "))
	if e.EndedEarly != "" {
		x.Hanging("", endedEarly(e))
	}
	x.Line("")
	for _, line := range text.Fill(shownText(e.Verdict), x.Columns) {
		x.Line(x.Paint(severity(e, x.few), x.Bolden(line)))
	}
	if s := e.Startup; s != nil {
		x.Hanging("", startup(*s))
	}
	if share := e.WarmingUp(); share > 0 {
		x.Hanging("", fmt.Sprintf("Its own compiler used %.0f %% of its CPU time: it is warming up and will need "+
			"less. Ask again later.", 100*share))
	}
	if c := e.ClosedLoop; c != nil {
		x.Hanging("", fmt.Sprintf("Clients of pool `%s` wait for answers, and ask again %s after one: a faster "+
			"service gets more requests.", shownName(c.Pool), text.Duration(c.Gap)))
	}
	if len(e.Causes) < 2 && e.Cause == diagnose.None {
		return
	}
	x.Line("")
	for i, c := range e.Causes {
		if i == maxCauses {
			x.Line("   and " + text.Count(len(e.Causes)-i, "weaker cause"))
			break
		}
		x.Hanging(fmt.Sprintf("%2d. ", i+1), fmt.Sprintf("%s%s: %s", c.Cause, cost(c), shownText(c.Evidence)))
	}
}

// startup says that the container was stopped while it started.
func startup(s diagnose.Startup) string {
	if s.Over {
		return fmt.Sprintf("It was stopped while it started, and hardly in the %s after that: its oldest process was "+
			"%s old at the beginning, and up to %s count as start-up.",
			text.Duration(s.After), text.Duration(s.Age), text.Duration(diagnose.StartupAge))
	}
	return fmt.Sprintf("It is starting: its oldest process was %s old at the beginning. Ask again when it is older than %s.",
		text.Duration(s.Age), text.Duration(diagnose.StartupAge))
}

// cost is what a cause cost in wall time. Where nothing was stopped for it, the thread time stands beside.
func cost(c diagnose.RankedCause) string {
	switch {
	case c.Stopped != nil:
		return " (" + text.Duration(*c.Stopped) + ")"
	case c.Wall != nil && c.Waited != nil:
		return " (" + text.Duration(*c.Wall) + ", " + text.Duration(*c.Waited) + " of thread time)"
	case c.Waited != nil:
		return " (" + text.Duration(*c.Waited) + " of thread time)"
	}
	return ""
}

// alarm is the share of stopped time from which a container counts as stopped now; below it is near a stop.
const alarm = 0.05

// severity is the colour of an explanation: red where it is stopped, yellow where another cause was found or it is
// stopped now and then, green where it is fine, none where that was not measured.
func severity(e *diagnose.Explanation, fewStops bool) string {
	switch {
	case fewStops:
		return page.Amber
	case e.Cause == diagnose.None:
		return page.Green
	case e.Cause == "":
		return ""
	case e.Stopped != nil && e.Window > 0 && e.Stopped.Seconds() >= alarm*e.Window.Seconds():
		return page.Red
	}
	return page.Amber
}

// endedEarly says that the target ended early.
func endedEarly(e *diagnose.Explanation) string {
	return fmt.Sprintf("Ended early, after %s: %s.", text.Duration(e.Window), shownText(e.EndedEarly))
}

// facts are the figures of the first line.
func facts(e *diagnose.Explanation) []string {
	facts := []string{text.Duration(e.Window)}
	if !e.Start.IsZero() {
		facts[0] += " from " + e.Start.UTC().Format("2006-01-02 15:04:05") + " UTC"
	}
	if e.LimitCPUs != nil {
		facts = append(facts, "limit "+cpusText(*e.LimitCPUs))
	} else if !e.LimitUnknown {
		facts = append(facts, "no limit")
	}
	if e.MeanWidth != nil {
		facts = append(facts, "mean use "+cpusText(*e.MeanWidth))
	}
	if e.Periods != nil && e.ThrottledPeriods != nil && *e.Periods > 0 {
		facts = append(facts, fmt.Sprintf("%d of %d periods throttled", *e.ThrottledPeriods, *e.Periods))
	}
	if e.Stopped != nil {
		stopped := "stopped for " + text.Duration(*e.Stopped)
		if e.StoppedIntervals != nil && *e.StoppedIntervals > 0 {
			stopped += " in " + text.Count(*e.StoppedIntervals, "interval")
		}
		facts = append(facts, stopped)
	}
	return facts
}

// shownName is a stranger's name in a table.
func shownName(s string) string { return text.Sanitize(s, maxName) }

// shownText is a sentence that may hold strangers' names.
func shownText(s string) string { return text.Sanitize(s, maxText) }

func cpusText(n float64) string {
	text := strconv.FormatFloat(n, 'f', -1, 64)
	if len(text) > 4 {
		text = strconv.FormatFloat(n, 'f', 2, 64)
	}
	if n == 1 {
		return "1 CPU"
	}
	return text + " CPUs"
}

// shareText is a share of a whole: 12.3 %.
func shareText(part, whole time.Duration) string {
	if whole <= 0 {
		return figure.Missing
	}
	percent := 100 * float64(part) / float64(whole)
	switch {
	case part == 0:
		return "0 %"
	case percent < 0.1:
		return "<0.1 %"
	case percent < 99.95:
		return strconv.FormatFloat(percent, 'f', 1, 64) + " %"
	}
	return "100 %"
}
