// Package fix writes what `unthrottle fix` proposes, and what came of it.
package fix

import (
	"fmt"
	"io"
	"strings"

	"github.com/unthrottle/unthrottle/internal/cure/fix"
	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/cure/txn"
	"github.com/unthrottle/unthrottle/internal/cure/txn/apply"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/ui/report/changes"
	"github.com/unthrottle/unthrottle/internal/ui/report/figure"
	"github.com/unthrottle/unthrottle/internal/ui/report/jsonout"
	"github.com/unthrottle/unthrottle/internal/ui/report/rows"
)

// Found writes the cause, the table of what each remedy would bring, and what is recommended. Without a forecast it
// writes the reasons for and against each remedy.
func Found(w io.Writer, p policy.Proposal) error {
	var b strings.Builder
	if p.Choice != nil {
		if e := p.Known.Explanation; e != nil && len(p.Known.Tried) == 0 {
			fmt.Fprintf(&b, "%s\n\n", text.Shown(e.Verdict))
		}
		rows.Table(&b, p.Known.Forecast, p.Choice)
		b.WriteString("\n")
		for _, line := range rows.Sentences(p.Choice) {
			fmt.Fprintln(&b, line)
		}
		_, err := io.WriteString(w, b.String())
		return err
	}
	if p.Plan == nil {
		return nil // the result says why
	}
	fmt.Fprintf(&b, "%s: %s\n", p.Plan.Remedy, text.Shown(p.Why))
	for _, n := range p.Not {
		fmt.Fprintf(&b, "  not %s: %s\n", n.Remedy, text.Shown(n.Why))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Proposal writes the exact writes.
func Proposal(w io.Writer, planned apply.Result) error {
	if _, err := io.WriteString(w, "\nwhat would be written:\n"); err != nil {
		return err
	}
	return changes.Plan(w, planned)
}

// JSON writes what came of a fix, for programs.
func JSON(w io.Writer, r fix.Result) error {
	out := struct {
		fix.Result
		Rows   []rows.Row        `json:"rows"`
		Chosen *rows.Recommended `json:"chosen"`
	}{r, []rows.Row{}, nil}
	if p := r.Proposal; p.Choice != nil {
		for i := range p.Known.Forecast.Rows {
			out.Rows = append(out.Rows, rows.New(&p.Known.Forecast.Rows[i]))
		}
		out.Chosen = rows.NewRecommended(p.Known.Forecast, p.Choice)
	}
	return jsonout.Write(w, out)
}

// Write writes what came of a fix.
func Write(w io.Writer, r fix.Result) error {
	if r.ID == "" {
		if r.Proposal.Choice != nil && r.Verdict != fix.VerdictNotApplied {
			return nil // Found said it
		}
		_, err := io.WriteString(w, text.Shown(r.Why)+"\n")
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "stopped per second  before %s, after %s\n", changes.Stopped(r.Before), changes.Stopped(r.After))
	fmt.Fprintf(&b, "CPUs used           before %s, after %s\n", used(r.Before), used(r.After))
	if j := r.Judgement; j != nil {
		if j.Before != nil || r.Proposal.Choice != nil {
			fmt.Fprintf(&b, "%-20s%s\n", judgedBy(r), text.Shown(j.Why))
		}
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
	fmt.Fprintf(&b, "verdict             %s%s\n", r.Verdict, objective(r))
	if r.Kept {
		fmt.Fprintf(&b, "in force as %s; 'unthrottle restore' puts everything back\n", r.ID)
	} else {
		fmt.Fprintf(&b, "undone: %s\n", text.Shown(r.Why))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func used(f *txn.Figures) string {
	if f == nil {
		return figure.Missing
	}
	return figure.Fixed(f.UsedCPUs, 2)
}

// judgedBy names whose latency was judged.
func judgedBy(r fix.Result) string {
	if r.Proposal.Choice != nil && r.Before != nil && r.Before.MaxMs == nil {
		return "responses"
	}
	return "latency"
}

func objective(r fix.Result) string {
	switch met := r.ObjectiveMet; {
	case met == nil:
		return ""
	case *met:
		return ", the objective is met"
	}
	return ", the objective is not met"
}
