package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/unthrottle/unthrottle/internal/cure/fix"
	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/cure/txn"
	"github.com/unthrottle/unthrottle/internal/cure/txn/apply"
)

// Proposal writes what is proposed, why, why not something else, and the exact
// writes.
func Proposal(w io.Writer, p policy.Proposal, planned apply.Result) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", p.Plan.Remedy, shown(p.Why))
	for _, n := range p.Not {
		fmt.Fprintf(&b, "  not %s: %s\n", n.Remedy, shown(n.Why))
	}
	b.WriteString("\nwhat would be written:\n")
	if _, err := io.WriteString(w, b.String()); err != nil {
		return err
	}
	return Plan(w, planned)
}

// Fix writes what came of a fix.
func Fix(w io.Writer, r fix.Result) error {
	var b strings.Builder
	if r.ID == "" {
		b.WriteString(shown(r.Why) + "\n")
		_, err := io.WriteString(w, b.String())
		return err
	}
	fmt.Fprintf(&b, "stopped per second  before %s, after %s\n", stopped(r.Before), stopped(r.After))
	fmt.Fprintf(&b, "CPUs used           before %s, after %s\n", used(r.Before), used(r.After))
	if j := r.Judgement; j != nil {
		if j.Before != nil {
			fmt.Fprintf(&b, "latency             %s\n", shown(j.Why))
		}
		for _, n := range j.Neighbours {
			fmt.Fprintf(&b, "neighbour           %s\n", shown(n))
		}
	}
	for _, s := range r.Skipped {
		fmt.Fprintf(&b, "left                %s: %s\n", shown(s.Path), shown(s.Why))
	}
	for _, text := range r.Warnings {
		fmt.Fprintf(&b, "note                %s\n", shown(text))
	}
	fmt.Fprintf(&b, "verdict             %s\n", r.Verdict)
	if r.Kept {
		fmt.Fprintf(&b, "in force as %s; 'unthrottle restore' puts everything back\n", r.ID)
	} else {
		fmt.Fprintf(&b, "undone: %s\n", shown(r.Why))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func used(f *txn.Figures) string {
	if f == nil || f.UsedCPUs == nil {
		return "-"
	}
	return fmt.Sprintf("%.2f", *f.UsedCPUs)
}
