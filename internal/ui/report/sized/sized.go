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
	return table.Texts(w, style, []table.Field[runtimes.Row]{
		{Column: table.Column{Name: "RUNTIME"},
			Text: func(r runtimes.Row) string { name, _, _ := strings.Cut(r.Runtime, " ("); return name }},
		{Column: table.Column{Name: "SETTING"}, Text: func(r runtimes.Row) string { return r.Setting }},
		{Column: table.Column{Name: "VALUE"}, Text: func(r runtimes.Row) string { return text.Sanitize(r.Value, 40) }},
		{Column: table.Column{Name: "BY ITSELF"}, Text: func(r runtimes.Row) string { return r.WouldBe }},
		{Column: table.Column{Name: "WHY"}, Text: func(r runtimes.Row) string { return r.Why }},
	}, d.Settings)
}
