package report

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/text"
)

// ExplainOptions of Explain.
type ExplainOptions struct {
	Width int  // of the terminal in columns; 0: 80
	ASCII bool // no block characters
	Color bool // what is stopped in red
}

// Bounds of the width, and on how much is shown for people; JSON has all of it.
const (
	explainMinWidth  = 40
	explainNarrow    = 80 // below it tables become lists
	explainMaxWidth  = 132
	maxExplainCauses = 4
	maxExplainPools  = 12
	maxExplainOthers = 6
	maxExplainNotes  = 12
	maxExplainName   = 40
	maxExplainText   = 2048
	explainNothing   = "-"
)

// explainer writes one explanation.
type explainer struct {
	strings.Builder
	e       *diagnose.Explanation
	o       ExplainOptions
	columns int
}

// Explain writes why a container stood still: the verdict with its evidence, the histogram of CPUs in use, the strip,
// who spent the quota, where waiting went, the runnable threads per reserved core; then the checks that failed and what
// was not measured. Sections for which nothing was measured are left out, and the reason is in the last one.
func Explain(w io.Writer, e diagnose.Explanation, o ExplainOptions) error {
	x := &explainer{e: &e, o: o, columns: o.Width}
	if x.columns <= 0 {
		x.columns = 80
	}
	x.columns = min(explainMaxWidth, max(explainMinWidth, x.columns))
	x.verdict()
	x.histogram()
	x.strip()
	x.spenders()
	x.waiting()
	x.perCore()
	x.doubts()
	_, err := io.WriteString(w, x.String())
	return err
}

func (x *explainer) narrow() bool { return x.columns < explainNarrow }

func (x *explainer) verdict() {
	e := x.e
	x.hanging("", x.bold(explainName(e.Target))+": "+strings.Join(explainFacts(e), ", "))
	if e.EndedEarly != "" {
		x.hanging("", explainEnded(e))
	}
	x.line("")
	for _, line := range fill(explainText(e.Verdict), x.columns) {
		x.line(x.bold(line))
	}
	if len(e.Causes) < 2 && e.Cause == diagnose.None {
		return
	}
	x.line("")
	for i, c := range e.Causes {
		if i == maxExplainCauses {
			x.line("   and " + text.Count(len(e.Causes)-i, "weaker cause"))
			break
		}
		cost := ""
		if c.Stopped != nil {
			cost = " (" + explainTime(*c.Stopped) + ")"
		}
		x.hanging(fmt.Sprintf("%2d. ", i+1), fmt.Sprintf("%s%s: %s", c.Cause, cost, explainText(c.Evidence)))
	}
}

// explainEnded says that the target ended early.
func explainEnded(e *diagnose.Explanation) string {
	return fmt.Sprintf("Ended early, after %s: %s.", explainTime(e.Window), explainText(e.EndedEarly))
}

// explainFacts are the figures of the first line.
func explainFacts(e *diagnose.Explanation) []string {
	facts := []string{explainTime(e.Window)}
	if !e.Start.IsZero() {
		facts[0] += " from " + e.Start.UTC().Format("2006-01-02 15:04:05") + " UTC"
	}
	if e.LimitCPUs != nil {
		facts = append(facts, "limit "+explainCPUs(*e.LimitCPUs))
	} else if !e.LimitUnknown {
		facts = append(facts, "no limit")
	}
	if e.MeanWidth != nil {
		facts = append(facts, "mean use "+explainCPUs(*e.MeanWidth))
	}
	if e.Periods != nil && e.ThrottledPeriods != nil && *e.Periods > 0 {
		facts = append(facts, fmt.Sprintf("%d of %d periods throttled", *e.ThrottledPeriods, *e.Periods))
	}
	if e.Stopped != nil {
		stopped := "stopped for " + explainTime(*e.Stopped)
		if e.StoppedIntervals != nil && *e.StoppedIntervals > 0 {
			stopped += " in " + text.Count(*e.StoppedIntervals, "interval")
		}
		facts = append(facts, stopped)
	}
	return facts
}

func (x *explainer) line(text string) {
	x.WriteString(strings.TrimRight(text, " "))
	x.WriteByte('\n')
}

// title begins a section.
func (x *explainer) title(text string) {
	x.WriteByte('\n')
	x.hanging("", text)
}

// hanging writes a text behind a lead, its further lines below its first word.
func (x *explainer) hanging(lead, text string) {
	for i, line := range fill(text, x.columns-width(lead)) {
		if i > 0 {
			lead = strings.Repeat(" ", width(lead))
		}
		x.line(lead + line)
	}
}

func (x *explainer) bold(s string) string { return x.paint(lsBold, s) }

func (x *explainer) paint(code, s string) string {
	if !x.o.Color || s == "" {
		return s
	}
	return code + s + lsPlain
}

// explainName is a stranger's name in a table.
func explainName(s string) string { return text.Sanitize(s, maxExplainName) }

// explainText is a sentence that may hold strangers' names.
func explainText(s string) string { return text.Sanitize(s, maxExplainText) }

func explainCPUs(n float64) string {
	text := strconv.FormatFloat(n, 'f', -1, 64)
	if len(text) > 4 {
		text = strconv.FormatFloat(n, 'f', 2, 64)
	}
	if n == 1 {
		return "1 CPU"
	}
	return text + " CPUs"
}

// explainTime keeps three digits: 81 ms, 2.31 s.
func explainTime(d time.Duration) string {
	switch ms := float64(d) / 1e6; {
	case d == 0:
		return "0 ms"
	case ms < 0.01:
		return "<0.01 ms"
	case ms < 1:
		return strconv.FormatFloat(ms, 'f', 2, 64) + " ms"
	case ms < 9.95:
		return strconv.FormatFloat(ms, 'f', 1, 64) + " ms"
	case ms < 999.5:
		return strconv.FormatFloat(ms, 'f', 0, 64) + " ms"
	}
	s := d.Seconds()
	switch {
	case s == math.Trunc(s):
		return strconv.FormatFloat(s, 'f', 0, 64) + " s"
	case s < 9.995:
		return strconv.FormatFloat(s, 'f', 2, 64) + " s"
	}
	return strconv.FormatFloat(s, 'f', 1, 64) + " s"
}

// explainShare is a share of a whole: 12.3 %.
func explainShare(part, whole time.Duration) string {
	if whole <= 0 {
		return explainNothing
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
