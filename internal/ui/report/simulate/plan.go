package simulate

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/unthrottle/unthrottle/internal/sim/realrun"
	"github.com/unthrottle/unthrottle/internal/text"
)

// Plan is what `unthrottle simulate --real --dry-run` shows.
type Plan struct {
	Scenario string  `json:"scenario"` // the file's name
	About    string  `json:"about"`
	Parent   string  `json:"parent"` // the cgroup below which its own would be made; "": the highest that can be seen
	Seconds  float64 `json:"duration_seconds"`
	Repeat   int     `json:"repeat"`
	realrun.Plan
}

// WritePlan writes what a run would make, for people.
func WritePlan(w io.Writer, p Plan) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", text.Shown(p.Scenario), text.Shown(p.About))
	at := "the highest cgroup that can be seen"
	if p.Parent != "" {
		at = text.EscapePath(p.Parent)
	}
	fmt.Fprintf(&b, "Would run for %v, %s, in cgroups of its own below %s:\n\n",
		time.Duration(p.Seconds*float64(time.Second)), text.Count(p.Repeat, "time"), at)
	for _, c := range p.Cgroups {
		fmt.Fprintf(&b, "  cgroup %s", text.Shown(c.Name))
		if c.Parent != "" {
			fmt.Fprintf(&b, " in %s", text.Shown(c.Parent))
		}
		if c.LimitCPUs == nil {
			b.WriteString(": no limit")
		} else {
			fmt.Fprintf(&b, ": limit %g CPUs, period %g ms, burst %g ms", *c.LimitCPUs, *c.PeriodSeconds*1e3, *c.BurstSeconds*1e3)
		}
		if c.CPUs != "" {
			fmt.Fprintf(&b, ", CPUs %s", c.CPUs)
		}
		b.WriteString("\n")
	}
	for _, load := range p.Workloads {
		fmt.Fprintf(&b, "  workload %s (%s)", text.Shown(load.Name), load.Kind)
		if load.Cgroup != "" {
			fmt.Fprintf(&b, " in %s", text.Shown(load.Cgroup))
		}
		if load.Threads > 0 {
			fmt.Fprintf(&b, ": %s", text.Count(load.Threads, "thread"))
		}
		b.WriteString("\n")
	}
	for _, note := range p.Notes {
		fmt.Fprintf(&b, "\n%s\n", text.Shown(note))
	}
	b.WriteString("\nNothing was written, and nothing runs.\n")
	_, err := io.WriteString(w, b.String())
	return err
}
