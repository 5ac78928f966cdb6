// Package rows shows a forecast's rows and what is recommended of them: the part that explain, forecast and fix share.
package rows

import (
	"fmt"
	"io"
	"strconv"

	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/sim/forecast"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/ui/report/table"
)

// Recommendation is a choice in a few words.
func Recommendation(f *forecast.Forecast, c *policy.Choice) string {
	switch c.Answer {
	case policy.AnswerRemedy:
		return f.Rows[c.Row].Remedy.Text(f.Limit)
	case policy.AnswerMoreCPU:
		if c.Row >= 0 {
			return "more CPU: " + f.Rows[c.Row].Remedy.Text(f.Limit)
		}
		return "more CPU"
	case policy.AnswerSetting:
		return "a setting: " + f.Rows[c.Row].Remedy.Text(f.Limit)
	case policy.AnswerUnknown:
		return "nothing"
	}
	return "leave it"
}

// Sentences are a choice with its reason, and the advice beside it.
func Sentences(c *policy.Choice) []string {
	head := map[policy.Answer]string{
		policy.AnswerRemedy: "Recommended: ", policy.AnswerLeave: "Leave it: ", policy.AnswerMoreCPU: "More CPU than the limit: ",
		policy.AnswerSetting: "A setting of the service: ", policy.AnswerUnknown: "Nothing is recommended: ",
	}[c.Answer]
	lines := []string{head + text.Shown(c.Why) + "."}
	if c.Advice != "" {
		lines = append(lines, "Beside it: "+text.Shown(c.Advice)+".")
	}
	return lines
}

// Table writes the rows that a fix chooses from: what each brings and costs, and why it is not recommended.
func Table(w io.Writer, f *forecast.Forecast, c *policy.Choice) {
	why := map[int]string{}
	for _, n := range c.Not {
		why[n.Row] = n.Why
	}
	t := table.Left(w)
	fmt.Fprintf(t, "  remedy\t%s ms\t90 %% of cases\tp50 ms\tstopped\tCPUs\tothers lose\t\n", Figure(f.Judged))
	for i := range f.Rows {
		row := &f.Rows[i]
		if row.HostLoad != 0 {
			continue
		}
		mark := "  "
		if i == c.Row || c.Answer == policy.AnswerLeave && row.Remedy.Name == forecast.None {
			mark = "> "
		}
		name := mark + row.Remedy.Text(f.Limit)
		if row.Remedy.Modelled() {
			if row.Refused != "" || row.Remedy.Name != forecast.Pools {
				continue
			}
			name += " *"
		}
		if row.Refused != "" {
			fmt.Fprintf(t, "%s\t-\t-\t-\t-\t-\t-\tnot possible: %s\n", name, text.Sanitize(row.Refused, 0))
			continue
		}
		spread := "not known"
		if e := row.JudgedRange; e != nil {
			spread = Milliseconds(&e.Low) + " to " + Milliseconds(&e.High)
		}
		lost := "-"
		if n := row.Neighbours; n != nil {
			lost = fmt.Sprintf("%.2g CPUs", max(0, n.Lost.Seconds()/f.Window.Seconds()))
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%.0f ms/s\t%s\t%s\t%s\n", name, Milliseconds(row.Judged), spread, Milliseconds(row.Figures.Response.P50),
			1000*row.Figures.Stopped.Seconds()/f.Window.Seconds(), Milliseconds(row.Reserved), lost, text.Shown(why[i]))
	}
	t.Flush() // writes to memory: cannot fail
}

// Figure names what is judged, for a column.
func Figure(j *forecast.Judged) string {
	switch {
	case j == nil:
		return "p99"
	case j.Quantile >= 1:
		return "longest"
	}
	return "p" + strconv.FormatFloat(100*j.Quantile, 'f', -1, 64)
}

// Milliseconds shows a figure with three digits or so; "-": not measured.
func Milliseconds(v *float64) string {
	if v == nil {
		return "-"
	}
	return text.Milliseconds(*v)
}
