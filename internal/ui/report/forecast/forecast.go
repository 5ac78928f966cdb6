// Package forecast writes what `unthrottle forecast` predicts, for one container or all.
package forecast

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/sim/forecast"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/ui/report/rows"
	"github.com/unthrottle/unthrottle/internal/ui/report/table"
)

// Options of Write.
type Options struct {
	Pools bool // a table of each pool's delay and response
}

// Bounds on what is shown for people; JSON has all of it.
const (
	maxName  = 40
	maxPools = 12
)

// Write writes what each remedy would do, for people: the self-check, a table for each load of the host, and the answer.
func Write(w io.Writer, f *forecast.Forecast, c *policy.Choice, o Options) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %.3g s recorded on %s, Linux %s; limit %s.\n", text.Sanitize(f.Target, 0), f.Window.Seconds(),
		text.Count(f.CPUs, "CPU"), text.Sanitize(f.Kernel, maxName), text.CPUs(f.Limit))
	selfChecked(&b, f)
	loads := []float64{0}
	for _, row := range f.Rows {
		if !slices.Contains(loads, row.HostLoad) {
			loads = append(loads, row.HostLoad)
		}
	}
	for _, load := range loads {
		if load > 0 {
			fmt.Fprintf(&b, "\nWith the host %.0f %% busy:\n", 100*load)
		}
		writeTable(&b, f, c, load)
	}
	if o.Pools {
		writePools(&b, f)
	}
	b.WriteString("\n")
	for _, line := range answer(f, c) {
		fmt.Fprintln(&b, line)
	}
	for _, note := range f.Notes {
		fmt.Fprintf(&b, "Note: %s.\n", note)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func selfChecked(b *strings.Builder, f *forecast.Forecast) {
	pair := func(of forecast.Figure, decimals int, unit string) string {
		text := func(v *float64) string {
			if v == nil {
				return "-"
			}
			return strconv.FormatFloat(*v, 'f', decimals, 64)
		}
		return fmt.Sprintf("%s%s (%s)", text(of.Replayed), unit, text(of.Recorded))
	}
	c := f.Check
	fmt.Fprintf(b, "Self-check, replayed as it was (recorded): throttled periods %s, stopped %s, p50 %s, p99 %s, CPU time %s.\n\n",
		pair(c.ThrottledPeriods, 0, ""), pair(c.Stopped, 3, " s"), pair(c.P50, 2, " ms"), pair(c.P99, 2, " ms"), pair(c.CPU, 2, " s"))
}

func writeTable(b *strings.Builder, f *forecast.Forecast, c *policy.Choice, load float64) {
	swept, neighbours := false, false
	for _, row := range f.Rows {
		if row.HostLoad == load {
			swept = swept || row.BreaksAt != nil || row.CollapsesAt != nil
			neighbours = neighbours || row.Neighbours != nil
		}
	}
	t := table.Left(b)
	fmt.Fprint(t, "  remedy\tthrottled\tstopped s\tp50 ms\tp99 ms\t90 % of cases\tmax ms\tCPUs\t")
	if neighbours {
		fmt.Fprint(t, "others lose\t")
	}
	if swept {
		fmt.Fprint(t, "breaks at\tcollapses at\t")
	}
	fmt.Fprintln(t, "price")
	for i := range f.Rows {
		row := &f.Rows[i]
		if row.HostLoad != load {
			continue
		}
		mark := "  "
		if i == c.Row || c.Answer == policy.AnswerLeave && row.Remedy.Name == forecast.None && load == 0 {
			mark = "> "
		}
		name := mark + row.Remedy.Text(f.Limit)
		if row.Remedy.Modelled() {
			name += " *"
		}
		if row.Refused != "" {
			columns := 7
			if neighbours {
				columns++
			}
			if swept {
				columns += 2
			}
			fmt.Fprintf(t, "%s%s\tnot possible: %s\n", name, strings.Repeat("\t-", columns), text.Sanitize(row.Refused, 0))
			continue
		}
		fmt.Fprintf(t, "%s\t%.0f\t%.3f\t%s\t%s\t%s\t%s\t%s\t", name, row.Figures.ThrottledPeriods, row.Figures.Stopped.Seconds(),
			rows.Milliseconds(row.Figures.Response.P50), rows.Milliseconds(row.Figures.Response.P99), rangeText(row.Error),
			rows.Milliseconds(row.Figures.Response.Max), rows.Milliseconds(row.Reserved))
		if neighbours {
			lost := "-"
			if n := row.Neighbours; n != nil {
				lost = fmt.Sprintf("%.3f s", max(0, n.Lost.Seconds()))
			}
			fmt.Fprintf(t, "%s\t", lost)
		}
		if swept {
			fmt.Fprintf(t, "%s\t%s\t", loadText(row.BreaksAt), loadText(row.CollapsesAt))
		}
		fmt.Fprintln(t, text.Sanitize(row.Price, 0))
	}
	t.Flush()
}

func rangeText(e *forecast.Error) string {
	if e == nil || e.P99 == nil {
		return "not known"
	}
	return rows.Milliseconds(&e.P99.Low) + " to " + rows.Milliseconds(&e.P99.High)
}

func loadText(at *float64) string {
	if at == nil {
		return "-"
	}
	return fmt.Sprintf("x%.2f", *at)
}

func writePools(b *strings.Builder, f *forecast.Forecast) {
	t := table.Left(b)
	fmt.Fprintln(t, "\n  remedy\tpool\truns\tdelay p50 ms\tp99\tmax\tresponse p50 ms\tp99\tmax")
	for i := range f.Rows {
		row := &f.Rows[i]
		if row.HostLoad > 0 || row.Refused != "" {
			continue
		}
		name := row.Remedy.Text(f.Limit)
		for k, p := range row.Figures.Pools {
			if k == maxPools {
				break
			}
			if p.Response.Count == 0 && p.Delay.Count == 0 {
				continue
			}
			fmt.Fprintf(t, "  %s\t%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\n", name, text.Sanitize(p.Name, maxName), p.Response.Count,
				rows.Milliseconds(p.Delay.P50), rows.Milliseconds(p.Delay.P99), rows.Milliseconds(p.Delay.Max),
				rows.Milliseconds(p.Response.P50), rows.Milliseconds(p.Response.P99), rows.Milliseconds(p.Response.Max))
			name = ""
		}
	}
	t.Flush()
}

// answer says in sentences what is recommended.
func answer(f *forecast.Forecast, c *policy.Choice) []string {
	lines := rows.Sentences(c)
	if f.SmallestLimit != nil {
		lines = append(lines, fmt.Sprintf("Smallest limit that does: %s (now %.3g).", text.CPUs(*f.SmallestLimit), f.Limit))
	}
	if f.SmallestNarrow != nil {
		lines = append(lines, fmt.Sprintf("So does no quota, but never wider than %s.", text.Count(int(*f.SmallestNarrow), "CPU")))
	}
	if slices.ContainsFunc(f.Rows, func(r forecast.Row) bool { return r.Remedy.Modelled() && r.Refused == "" }) {
		lines = append(lines, "* modelled, not replayed: other threads take the work that was recorded.")
	}
	return lines
}

// WriteAll writes a line for each container, and what the host gets back.
func WriteAll(w io.Writer, f *All) error {
	var b strings.Builder
	t := table.Left(&b)
	fmt.Fprintln(t, "container\tlimit\tthrottled\tstopped s\tp99 ms\trecommended\tp99 ms\tsmallest limit\tback")
	for i, one := range f.All {
		recommended, then := rows.Recommendation(one, &f.Choices[i]), "-"
		if row := f.Choices[i].Row; row >= 0 {
			then = rows.Milliseconds(one.Rows[row].Figures.Response.P99)
		}
		smallest, back := "-", "-"
		if one.SmallestLimit != nil {
			smallest, back = fmt.Sprintf("%.3g", *one.SmallestLimit), fmt.Sprintf("%+.3g", one.Limit-*one.SmallestLimit)
		}
		none := &one.Rows[0].Figures
		fmt.Fprintf(t, "%s\t%.3g\t%.0f\t%.3f\t%s\t%s\t%s\t%s\t%s\n", text.Sanitize(one.Target, maxName), one.Limit,
			none.ThrottledPeriods, none.Stopped.Seconds(), rows.Milliseconds(none.Response.P99), recommended, then, smallest, back)
	}
	t.Flush()
	if cpus, n := f.Back(); n > 0 {
		fmt.Fprintf(&b, "\nWith the smallest limits that keep what there is, this host gets %.3g CPUs of limit back (%s).\n", cpus, text.Count(n, "container"))
	}
	for _, why := range f.NotForecast {
		fmt.Fprintf(&b, "Not forecast: %s.\n", text.Sanitize(why, 0))
	}
	_, err := io.WriteString(w, b.String())
	return err
}
