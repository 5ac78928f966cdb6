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
)

// Proposal writes what is proposed, why, why not something else, and the exact
// writes.
func Proposal(w io.Writer, p policy.Proposal, planned apply.Result) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", p.Plan.Remedy, text.Shown(p.Why))
	for _, n := range p.Not {
		fmt.Fprintf(&b, "  not %s: %s\n", n.Remedy, text.Shown(n.Why))
	}
	b.WriteString("\nwhat would be written:\n")
	if _, err := io.WriteString(w, b.String()); err != nil {
		return err
	}
	return changes.Plan(w, planned)
}

// Write writes what came of a fix.
func Write(w io.Writer, r fix.Result) error {
	if r.ID == "" {
		_, err := io.WriteString(w, text.Shown(r.Why)+"\n")
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "stopped per second  before %s, after %s\n", changes.Stopped(r.Before), changes.Stopped(r.After))
	fmt.Fprintf(&b, "CPUs used           before %s, after %s\n", used(r.Before), used(r.After))
	if j := r.Judgement; j != nil {
		if j.Before != nil {
			fmt.Fprintf(&b, "latency             %s\n", text.Shown(j.Why))
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
	fmt.Fprintf(&b, "verdict             %s\n", r.Verdict)
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
