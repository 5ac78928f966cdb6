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
func All(w io.Writer, all []policy.ReportContainer, style page.Style) error {
	p := page.New(style, 0, 0)
	if len(all) == 0 {
		p.Line("no containers")
		return p.Send(w)
	}
	t := table.New([]table.Column{{Name: "NAME", Least: 12, Tail: true}, {Name: "REMEDY"}, {Name: "FROM", Spare: 1}, {Name: "IN FORCE"}, {Name: "WHY NOT", Fill: true, Least: 20}})
	refused := 0
	for _, c := range all {
		remedy := remedyOf(c)
		inForce, why := "-", ""
		switch {
		case c.Remedy != nil:
			inForce = text.Shown(*c.Remedy)
		case c.Why != nil:
			inForce, why = "no", text.Shown(*c.Why)
		default:
			why = notKnown
		}
		from := string(remedy.From)
		if remedy.Line != nil {
			from = fmt.Sprintf("line %d", *remedy.Line)
		}
		refused += len(c.Refused)
		t.Add([]table.Cell{{Text: text.Shown(c.Name)}, {Text: text.Shown(remedy.Value)}, {Text: text.Shown(from)}, {Text: inForce}, {Text: why}})
	}
	t.Fit(p.Columns)
	t.Write(p, true)
	t.Missing(p)
	if refused > 0 {
		p.Paragraph(text.Count(refused, "annotation") + text.Either(refused == 1, " does", " do") + " not count: 'unthrottle policy TARGET' says why")
	}
	return p.Send(w)
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
	t := table.New([]table.Column{{Name: "VALUE", Least: 12}, {Name: "IS", Least: 8}, {Name: "FROM", Fill: true, Least: 12}})
	for _, v := range c.Values {
		t.Add([]table.Cell{{Text: text.Shown(v.Name)}, {Text: text.Shown(v.Value)}, {Text: from(v)}})
	}
	t.Fit(p.Columns)
	t.Write(p, true)
	t.Missing(p)
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
