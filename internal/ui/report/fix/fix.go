// Package fix writes what `unthrottle fix` proposes, and what came of it.
package fix

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/unthrottle/unthrottle/internal/cure/fix"
	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/cure/verdict"
	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/sim/forecast"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/internal/txn/apply"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/changes"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/figure"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/jsonout"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/page"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/rows"
)

// Cause writes what the recording says, before anything is forecast.
func Cause(w io.Writer, e diagnose.Explanation, style page.Style) error {
	p := page.New(style, 0, 0)
	p.Paragraph(text.Shown(e.Verdict))
	return p.Send(w)
}

// Found writes the table of what each remedy would bring, and what is recommended. After a try it writes what changed: the rows
// that were tried, and what comes next. Without a forecast it writes the reasons for and against each remedy.
func Found(w io.Writer, found policy.Proposal, style page.Style) error {
	p := page.New(style, 0, 0)
	if found.Choice != nil && len(found.Known.Tried) > 0 {
		for _, i := range slices.Sorted(maps.Keys(found.Known.Tried)) {
			p.Hanging("", rows.Name(found.Known.Forecast, &found.Known.Forecast.Rows[i])+": "+text.Shown(found.Known.Tried[i]))
		}
		for _, line := range rows.Sentences(found.Choice) {
			p.Paragraph(line)
		}
		return p.Send(w)
	}
	if found.Choice != nil {
		p.Line("")
		rows.Table(p, found.Known.Forecast, found.Choice)
		p.Line("")
		if found.Turns { // what is measured chooses, and what the forecast would choose is no news
			return p.Send(w)
		}
		for i, line := range rows.Sentences(found.Choice) {
			if i == 0 {
				line = p.Bolden(line)
			}
			p.Paragraph(line)
		}
		return p.Send(w)
	}
	if found.Plan == nil {
		return nil // the result says why
	}
	p.Hanging("", fmt.Sprintf("%s: %s", found.Plan.Remedy, text.Shown(found.Why)))
	for _, n := range found.Not {
		p.Hanging("  ", fmt.Sprintf("not %s: %s", n.Remedy, text.Shown(n.Why)))
	}
	return p.Send(w)
}

// Proposal writes the exact writes.
func Proposal(w io.Writer, planned apply.Result, style page.Style) error {
	if _, err := io.WriteString(w, "\nwhat would be written:\n"); err != nil {
		return err
	}
	return changes.Plan(w, planned, style)
}

// Document is `fix --json`.
type Document struct {
	fix.Result
	Rows   []rows.Row        `json:"rows"`
	Chosen *rows.Recommended `json:"chosen"`
	// Judged is whose latency the choice and the verdict rest on; null: nothing was forecast, or only the user's own.
	Judged *rows.Judged `json:"judged"`
	// Looking is null where nothing was forecast.
	Looking *Looking `json:"looking"`
}

// Looking is the CPU time that a look took of the host, until everything was forecast.
type Looking struct {
	CPUSeconds float64 `json:"cpu_seconds"`
	// LoadingSeconds and ForecastingSeconds of it were on so many CPUs at most.
	LoadingSeconds     float64 `json:"loading_seconds"`
	ForecastingSeconds float64 `json:"forecasting_seconds"`
	CPUs               int     `json:"cpus"`
	// GaveWay says that loading and forecasting gave way to other work until their end.
	GaveWay bool `json:"gave_way"`
}

// line says what a look took; "": not known.
func (l *Looking) line() string {
	if l == nil {
		return ""
	}
	in := func(s float64) string { return text.Duration(time.Duration(s * float64(time.Second))) }
	return fmt.Sprintf("looking             %s of CPU time on %s: %s to load the probe and %s to forecast%s\n",
		in(l.CPUSeconds), text.Count(l.CPUs, "CPU"), in(l.LoadingSeconds), in(l.ForecastingSeconds),
		text.Either(l.GaveWay, ", giving way to other work", ""))
}

// JSON writes what came of a fix, for programs.
func JSON(w io.Writer, r fix.Result, look *Looking) error {
	out := Document{r, []rows.Row{}, nil, nil, look}
	if p := r.Proposal; p.Known != nil && p.Known.Forecast != nil {
		for i := range p.Known.Forecast.Rows {
			out.Rows = append(out.Rows, rows.New(p.Known.Forecast, p.Choice, i, r.Target))
		}
		out.Judged = rows.NewJudged(p.Known.Forecast)
		if p.Choice != nil {
			out.Chosen = rows.NewRecommended(p.Known.Forecast, p.Choice)
		}
	}
	return jsonout.Write(w, "fix", out)
}

// Write writes what came of a fix, and what the look took; nil: not known.
func Write(w io.Writer, r fix.Result, look *Looking, style page.Style) error {
	if r.Trial != nil {
		if err := Trial(w, r.Trial, style); err != nil {
			return err
		}
		if r.ID == "" {
			return style.Send(w, fmt.Sprintf("%sverdict             %s: %s\nnothing is in force\n", look.line(), r.Verdict, text.Shown(r.Why)))
		}
	}
	if r.ID == "" {
		if r.Proposal.Choice != nil || r.Proposal.Plan != nil {
			return nil // Found said it
		}
		return style.Send(w, text.Shown(r.Why)+"\n")
	}
	var b strings.Builder
	fmt.Fprintf(&b, "stopped             before %s, after %s\n", stopped(r.Before, style), stopped(r.After, style))
	fmt.Fprintf(&b, "CPUs used           before %s, after %s\n", used(r.Before), used(r.After))
	if j := r.Judgement; j != nil {
		if j.Before != nil || r.Proposal.Choice != nil {
			fmt.Fprintf(&b, "%-20s%s\n", judgedBy(r), text.Shown(j.Why))
		}
		b.WriteString(pools(r))
		for _, n := range j.Neighbours {
			fmt.Fprintf(&b, "neighbour           %s\n", text.Shown(n))
		}
	}
	for _, s := range r.Skipped {
		fmt.Fprintf(&b, "left                %s: %s\n", text.Shown(s.Path), text.Shown(s.Why))
	}
	for _, warning := range r.Warnings {
		fmt.Fprintf(&b, "note                %s\n", text.Shown(warning))
	}
	b.WriteString(look.line())
	fmt.Fprintf(&b, "verdict             %s%s\n", style.Paint(verdictColor(r), r.Verdict), objectiveText(r))
	if len(r.Tries) > 1 {
		fmt.Fprintf(&b, "tried               %s\n", tried(r))
	}
	if r.Kept {
		fmt.Fprintf(&b, "in force as %s; 'unthrottle restore' puts everything back\n", r.ID)
	} else {
		fmt.Fprintf(&b, "nothing is in force; undone: %s\n", text.Shown(r.Why))
	}
	return style.Send(w, b.String())
}

// tried names the remedies that were tried, in their order, and what came of each.
func tried(r fix.Result) string {
	var all []string
	for _, t := range r.Tries {
		name := t.Remedy
		for _, key := range slices.Sorted(maps.Keys(t.Parameters)) {
			if key == t.Remedy {
				name += " " + t.Parameters[key]
				continue
			}
			name += ", " + key + " " + t.Parameters[key]
		}
		all = append(all, text.Shown(name)+": "+t.Verdict)
	}
	return strings.Join(all, "; ")
}

// Of the pools beside the judged one at most mostPools are shown: those whose responses moved by that share, and by that many
// milliseconds, where each side has so many.
const (
	mostPools           = 4
	leastShare, leastMs = 0.1, 0.5
	leastRuns           = 20
)

// pools has a line for each pool that is not the judged one and became slower or faster.
func pools(r fix.Result) string {
	if len(r.Tries) == 0 {
		return ""
	}
	var b strings.Builder
	shown := 0
	for _, p := range r.Tries[len(r.Tries)-1].Pools {
		if p.Judged || p.Before == nil || p.After == nil || min(p.Before.Runs, p.After.Runs) < leastRuns || shown == mostPools {
			continue
		}
		quantile, before, after := "p99", p.Before.ResponseP99Ms, p.After.ResponseP99Ms
		if before == nil || after == nil {
			quantile, before, after = "p50", &p.Before.ResponseP50Ms, &p.After.ResponseP50Ms
		}
		if by := math.Abs(*after - *before); by < leastMs || by < leastShare**before {
			continue
		}
		shown++
		fmt.Fprintf(&b, "%-20s%s: %s from %s ms to %s ms, %d and %d samples\n", "another pool", text.Shown(p.Name), quantile,
			text.Milliseconds(*before), text.Milliseconds(*after), p.Before.Runs, p.After.Runs)
	}
	return b.String()
}

// stopped is stopped time in the colour of its severity.
func stopped(f *txn.Figures, style page.Style) string {
	if f == nil || f.StoppedPerSecondHigh == nil {
		return changes.Stopped(f)
	}
	return style.Paint(rows.Severity(*f.StoppedPerSecondHigh), changes.Stopped(f))
}

// verdictColor is green for a change that is kept, yellow for one that nothing judged, red for one that was undone.
func verdictColor(r fix.Result) string {
	switch {
	case !r.Kept:
		return page.Red
	case r.Verdict == verdict.Better:
		return page.Green
	}
	return page.Amber
}

func used(f *txn.Figures) string {
	if f == nil {
		return figure.Missing
	}
	return figure.Fixed(f.UsedCPUs, 2)
}

// judgedBy names whose latency was judged.
func judgedBy(r fix.Result) string {
	switch p := r.Proposal; {
	case p.Choice == nil || r.Before == nil || r.Before.MaxMs != nil:
		return "latency"
	case p.Known != nil && p.Known.Forecast != nil && p.Known.Forecast.Judged != nil && p.Known.Forecast.Judged.Of == forecast.OfRequests:
		return "requests"
	}
	return "responses"
}

func objectiveText(r fix.Result) string {
	switch met := r.ObjectiveMet; {
	case met == nil:
		return ""
	case *met:
		return ", the objective is met"
	}
	return ", the objective is not met"
}
