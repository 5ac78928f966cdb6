// Package runtimes shows what the runtimes of a container's processes decided, as text and as JSON.
package runtimes

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/unthrottle/unthrottle/internal/runtimes"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/page"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/table"
)

// Document is the JSON of `unthrottle runtimes`.
type Document struct {
	Container string `json:"container"`
	// LimitCPUs is the effective limit; null: there is none.
	LimitCPUs *float64 `json:"limit_cpus"`
	// Processes has an entry for each runtime of each process.
	Processes []runtimes.Decision `json:"processes"`
	Notes     []string            `json:"notes"`
}

// Write writes the document as a table: a line a figure.
func Write(w io.Writer, d Document, style page.Style) error {
	if d.LimitCPUs == nil {
		fmt.Fprintf(w, "%s has no limit.\n", d.Container)
	} else {
		fmt.Fprintf(w, "%s has a limit of %s.\n", d.Container, text.CPUs(*d.LimitCPUs))
	}
	if len(d.Processes) == 0 {
		_, err := fmt.Fprintln(w, "none of its processes has a runtime that the table knows")
		return err
	}
	type line struct {
		pid, fits            int
		runtime, figure      string
		decided, by, setting string
	}
	var lines []line
	for _, p := range d.Processes {
		name, _, _ := strings.Cut(p.Runtime, " (")
		if p.Version != nil {
			name += " " + text.Sanitize(strings.TrimPrefix(*p.Version, "go"), 20)
		}
		for _, figure := range slices.Sorted(maps.Keys(p.Fits)) {
			decided := "-"
			if n, known := p.Decided[figure]; known {
				decided = strconv.Itoa(n)
			}
			by, setting := decidedBy(&p, figure)
			lines = append(lines, line{p.PID, p.Fits[figure], name, figure, decided, by, setting})
		}
	}
	if err := table.Texts(w, style, []table.Field[line]{
		{Column: table.Column{Name: "PID"}, Text: func(l line) string { return strconv.Itoa(l.pid) }},
		{Column: table.Column{Name: "RUNTIME"}, Text: func(l line) string { return l.runtime }},
		{Column: table.Column{Name: "FIGURE"}, Text: func(l line) string { return l.figure }},
		{Column: table.Column{Name: "DECIDED"}, Text: func(l line) string { return l.decided }},
		{Column: table.Column{Name: "FITS"}, Text: func(l line) string { return strconv.Itoa(l.fits) }},
		{Column: table.Column{Name: "BY", Spare: 1}, Text: func(l line) string { return l.by }},
		{Column: table.Column{Name: "SET IT BY"}, Text: func(l line) string { return l.setting }},
	}, lines); err != nil {
		return err
	}
	said := map[int]bool{}
	for _, p := range d.Processes {
		if p.Budget != nil && !said[p.PID] {
			said[p.PID] = true
			fmt.Fprintf(w, "process %d says that its CPU budget is in force: %s.\n", p.PID, p.Budget.Text())
		}
	}
	return nil
}

// decidedBy says what a process's figure was decided by, and what sets it.
func decidedBy(p *runtimes.Decision, figure string) (by, setting string) {
	told, setting, assumed := p.Told[figure], p.Settings[figure], slices.Contains(p.Assumed, figure)
	switch {
	case told != "" && p.Live:
		return "told, live", setting
	case told != "" && setting != "" && told != setting:
		return "told by " + told, setting
	case told != "":
		return "told", setting
	case slices.Contains(p.Said, figure):
		return "its own word", "-"
	case setting == "" && assumed:
		return "its rule, at its start", "-"
	case setting == "":
		return "its processors", "-"
	case assumed:
		return "its rule, at its start", setting
	case p.Live:
		return "its rule, live", setting
	}
	return "its rule", setting
}
