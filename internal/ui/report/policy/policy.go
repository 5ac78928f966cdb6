// Package policy writes which rule is in force for containers, where its values come from, and why none is treated.
package policy

import (
	"fmt"
	"io"
	"time"

	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/page"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/table"
)

// notKnown stands for whether a container is treated where no agent was asked.
const notKnown = "not known: no agent was asked"

// All writes a line for each container.
func All(w io.Writer, containers []policy.ReportContainer, style page.Style) error {
	p := page.New(style, 0, 0)
	if len(containers) == 0 {
		p.Line("no containers")
		return p.Send(w)
	}
	table.Of([]table.Field[policy.ReportContainer]{
		{Column: table.Column{Name: "NAME", Least: 12, Tail: true}, Text: func(c policy.ReportContainer) string {
			return text.Shown(c.Name)
		}},
		{Column: table.Column{Name: "REMEDY"}, Text: func(c policy.ReportContainer) string { return text.Shown(remedyOf(c).Value) }},
		{Column: table.Column{Name: "FROM", Spare: 1}, Text: func(c policy.ReportContainer) string {
			return text.Shown(lineOf(remedyOf(c)))
		}},
		{Column: table.Column{Name: "IN FORCE"}, Text: func(c policy.ReportContainer) string { force, _ := forceOf(c); return force }},
		{Column: table.Column{Name: "WHY NOT", Fill: true, Least: 20}, Text: func(c policy.ReportContainer) string {
			_, why := forceOf(c)
			return why
		}},
	}, containers).Fitted(p)
	refused := 0
	for _, c := range containers {
		refused += len(c.Refused)
	}
	if refused > 0 {
		p.Paragraph(text.Count(refused, "annotation") + text.Either(refused == 1, " does", " do") +
			" not count: 'unthrottle policy TARGET' says why")
	}
	return p.Send(w)
}

// forceOf is the remedy that is in force, or "no" and why not.
func forceOf(c policy.ReportContainer) (force, why string) {
	switch {
	case c.Remedy != nil:
		return text.Shown(*c.Remedy), ""
	case c.Why != nil:
		return "no", text.Shown(*c.Why)
	}
	return "-", notKnown
}

// lineOf says in short where a value comes from.
func lineOf(v policy.Value) string {
	if v.Line != nil {
		return fmt.Sprintf("line %d", *v.Line)
	}
	return string(v.From)
}

// remedyOf is the value of the remedy in force.
func remedyOf(c policy.ReportContainer) policy.Value {
	for _, v := range c.Values {
		if v.Name == "remedy" {
			return v
		}
	}
	return policy.Value{Value: "-"}
}

// Container writes every value of one container. config is the file.
func Container(w io.Writer, config string, c policy.ReportContainer, style page.Style) error {
	p := page.New(style, 0, 0)
	p.Hanging("name      ", p.Bolden(text.Shown(c.Name)))
	p.Hanging("cgroup    ", text.Shown(c.Cgroup))
	p.Hanging("file      ", text.Shown(config))
	p.Hanging("in force  ", inForce(c))
	p.Line("")
	table.Of([]table.Field[policy.Value]{
		{Column: table.Column{Name: "VALUE", Least: 12}, Text: func(v policy.Value) string { return text.Shown(v.Name) }},
		{Column: table.Column{Name: "IS", Least: 8}, Text: func(v policy.Value) string { return text.Shown(v.Value) }},
		{Column: table.Column{Name: "FROM", Fill: true, Least: 12}, Text: from},
	}, c.Values).Fitted(p)
	for _, r := range c.Refused {
		p.Line("")
		p.Paragraph(fmt.Sprintf("annotation %s: %s does not count: %s", text.Shown(r.Annotation), text.Quoted(r.Value), text.Shown(r.Why)))
	}
	return p.Send(w)
}

func inForce(c policy.ReportContainer) string {
	switch {
	case c.Remedy != nil && c.Transaction != nil:
		return fmt.Sprintf("%s (%s)", text.Shown(*c.Remedy), text.Shown(*c.Transaction))
	case c.Why == nil:
		return notKnown
	case c.Until == nil:
		return "no: " + text.Shown(*c.Why)
	}
	return "no: " + text.Shown(*c.Why) + "; until " + c.Until.UTC().Format(time.RFC3339)
}

// from says where a value comes from.
func from(v policy.Value) string {
	switch {
	case v.Annotation != nil:
		return text.Shown(*v.Annotation)
	case v.Line != nil:
		return fmt.Sprintf("%s, line %d", v.From, *v.Line)
	}
	return text.Shown(string(v.From))
}
