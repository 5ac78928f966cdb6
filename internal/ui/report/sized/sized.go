// Package sized shows with which settings a program would be started, as text and as JSON.
package sized

import (
	"fmt"
	"io"
	"strings"

	"github.com/unthrottle/unthrottle/internal/runtimes"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/page"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/table"
)

// Document is the JSON of `unthrottle sized --print`.
type Document struct {
	// LimitCPUs is the least limit along the path of the own cgroup, RequestCPUs what its weight asks for; null: none is known.
	LimitCPUs   *float64       `json:"limit_cpus"`
	RequestCPUs *float64       `json:"request_cpus"`
	HostCPUs    int            `json:"host_cpus"`
	Settings    []runtimes.Row `json:"settings"`
}

// New is the document of a plan.
func New(l runtimes.Limits, rows []runtimes.Row) Document {
	d := Document{HostCPUs: l.Host, Settings: rows}
	if l.CPUs > 0 {
		d.LimitCPUs = &l.CPUs
	}
	if l.Request > 0 {
		d.RequestCPUs = &l.Request
	}
	return d
}

// Write writes the document as a table.
func Write(w io.Writer, d Document, style page.Style) error {
	limit := "no limit"
	if d.LimitCPUs != nil {
		limit = "a limit of " + text.CPUs(*d.LimitCPUs)
	}
	fmt.Fprintf(w, "%s, %s to run on\n", limit, text.Count(d.HostCPUs, "CPU"))
	rows := table.Left(w, style)
	fmt.Fprintln(rows, "RUNTIME\tSETTING\tVALUE\tBY ITSELF\tWHY")
	for _, r := range d.Settings {
		name, _, _ := strings.Cut(r.Runtime, " (")
		fmt.Fprintf(rows, "%s\t%s\t%s\t%s\t%s\n", name, r.Setting, text.Sanitize(r.Value, 40), r.WouldBe, r.Why)
	}
	return rows.Flush()
}
