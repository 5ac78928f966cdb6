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
	rows := table.Left(w, style).Spare("BY")
	fmt.Fprintln(rows, "PID\tRUNTIME\tFIGURE\tDECIDED\tFITS\tBY\tSET IT BY")
	for _, p := range d.Processes {
		name, _, _ := strings.Cut(p.Runtime, " (")
		if p.Version != nil {
			name += " " + text.Sanitize(strings.TrimPrefix(*p.Version, "go"), 20)
		}
		for _, figure := range slices.Sorted(maps.Keys(p.Fits)) {
			decided, setting := "-", p.Settings[figure]
			if n, known := p.Decided[figure]; known {
				decided = strconv.Itoa(n)
			}
			by := "its rule"
			switch {
			case p.Told[figure] != "" && p.Live:
				by = "told, live"
			case p.Told[figure] != "" && setting != "" && p.Told[figure] != setting:
				by = "told by " + p.Told[figure]
			case p.Told[figure] != "":
				by = "told"
			case slices.Contains(p.Said, figure):
				by, setting = "its own word", "-"
			case setting == "" && slices.Contains(p.Assumed, figure):
				by, setting = "its rule, at its start", "-"
			case setting == "":
				by, setting = "its processors", "-"
			case slices.Contains(p.Assumed, figure):
				by = "its rule, at its start"
			case p.Live:
				by = "its rule, live"
			}
			fmt.Fprintf(rows, "%d\t%s\t%s\t%s\t%d\t%s\t%s\n", p.PID, name, figure, decided, p.Fits[figure], by, setting)
		}
	}
	if err := rows.Flush(); err != nil {
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
