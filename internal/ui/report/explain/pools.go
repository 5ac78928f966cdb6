package explain

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/sim/forecast"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/figure"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/table"
)

// poolName names a pool, and its process where that has another name.
func poolName(p diagnose.PoolUse) string {
	name := shownName(p.Name)
	if process := shownName(p.Process); p.Process != "" && process != name && !strings.HasPrefix(name, process) {
		name += " (" + text.Sanitize(p.Process, 15) + ")"
	}
	return name
}

// poolName leaves the process out where there is no room for both.
func (x *view) poolName(p diagnose.PoolUse, room int) string {
	if name := poolName(p); text.Width(name) <= room {
		return name
	}
	return text.Cut(shownName(p.Name), max(14, room), "…")
}

// roomyWidth is the width from which the table of pools has all columns. Its numbers take
// numbersWidth columns, and moreNumbersWidth more from roomyWidth on.
// Where a name has no room beside them, the column of the widest moment gives way: the verdict has it.
const (
	roomyWidth       = 124
	numbersWidth     = 65
	moreNumbersWidth = 36
	widestWidth      = 8
)

func (x *view) spenders() {
	pools := x.e.Pools
	if len(pools) == 0 {
		return
	}
	response := "response the thread's time from wake-up to sleep"
	if why := ofThreads(x.e.Requests); why != "" {
		response += " (" + why + ")"
	}
	x.Section("Who spent it: CPU time in all, and in throttled periods; delay is the time from wake-up to running, " + response + ":")
	if x.narrow() {
		for _, p := range pools[:min(len(pools), maxPools)] {
			x.Hanging("  ", poolName(p)+": "+poolFigures(p))
		}
	} else {
		x.poolTable(pools[:min(len(pools), maxPools)])
	}
	if more := len(pools) - maxPools; more > 0 {
		x.Line(fmt.Sprintf("and %s more in --json", text.Count(more, "pool")))
	}
	for i, p := range pools {
		if i == maxPools {
			break
		}
		if text := poolAdvice(p); text != "" {
			name := shownName(p.Name)
			if slices.ContainsFunc(pools, func(other diagnose.PoolUse) bool { return other.Name == p.Name && other.Process != p.Process }) {
				name = poolName(p)
			}
			x.Hanging("  ", name+": "+text)
		}
	}
	for i, b := range x.e.Budgets {
		if i == maxPools {
			x.Line(fmt.Sprintf("and %s more in --json", text.Count(len(x.e.Budgets)-i, "CPU budget")))
			break
		}
		x.Hanging("  ", budgetText(b))
	}
	if text := widthCost(x.e); text != "" {
		x.Hanging("  ", text)
	}
}

// budgetText says what the project's library in a process has in force.
func budgetText(b diagnose.Budget) string {
	return fmt.Sprintf("%s (process %d) says that its CPU budget is in force: %s.", shownName(b.Process), b.TGID, b.Text())
}

// poolFigures has as text what poolTable has in columns.
func poolFigures(p diagnose.PoolUse) string {
	figures := fmt.Sprintf("%s, CPU time %s, in throttled %s, widest %d", text.Count(p.Threads, "thread"),
		text.Duration(p.CPU), throttledTime(p), p.Widest)
	if p.Delay != nil {
		figures += ", delay p99 " + text.Duration(p.Delay.P99)
	}
	if p.Response != nil {
		figures += ", response p99 " + text.Duration(p.Response.P99)
	}
	return figures
}

func throttledTime(p diagnose.PoolUse) string {
	if p.CPUThrottled == nil {
		return figure.Missing
	}
	return text.Duration(*p.CPUThrottled)
}

func (x *view) poolTable(pools []diagnose.PoolUse) {
	type pool = diagnose.PoolUse
	roomy, room := x.Columns >= roomyWidth, x.Columns-numbersWidth
	if roomy {
		room -= moreNumbersWidth
	}
	crowded := slices.ContainsFunc(pools, func(p pool) bool { return text.Width(shownName(p.Name)) > room })
	if crowded {
		room += widestWidth
	}
	var fields []table.Field[pool]
	show := func(name string, text func(pool) string) {
		fields = append(fields, table.Field[pool]{Column: table.Column{Name: name}, Text: text})
	}
	quantile := func(name string, find func(pool) *diagnose.Quantiles, pick func(*diagnose.Quantiles) time.Duration) {
		show(name, func(p pool) string {
			if q := find(p); q != nil {
				return text.Duration(pick(q))
			}
			return figure.Missing
		})
	}
	delay, response := func(p pool) *diagnose.Quantiles { return p.Delay }, func(p pool) *diagnose.Quantiles { return p.Response }
	p50, p99 := func(q *diagnose.Quantiles) time.Duration { return q.P50 }, func(q *diagnose.Quantiles) time.Duration { return q.P99 }
	show("pool", func(p pool) string { return x.poolName(p, room) })
	show("threads", func(p pool) string { return strconv.Itoa(p.Threads) })
	show("CPU time", func(p pool) string { return text.Duration(p.CPU) })
	show("throttled", throttledTime)
	if !crowded {
		show("widest", func(p pool) string { return strconv.Itoa(p.Widest) })
	}
	quantile("delay p99", delay, p99)
	quantile("response p99", response, p99)
	if roomy {
		quantile("delay p50", delay, p50)
		quantile("delay max", delay, func(q *diagnose.Quantiles) time.Duration { return q.Max })
		quantile("response p50", response, p50)
	}
	table.Figures(x, x.Style, fields, pools)
}

// Check removes the advice that a forecast of the same recording does not support, and sets what it forecasts beside
// the rest.
func Check(pools []diagnose.PoolUse, f *forecast.Forecast) {
	for i := range pools {
		p := &pools[i]
		if p.Advice == "" {
			continue
		}
		forecasts, ok := policy.Resize(f, p.Name)
		if !ok {
			p.Advice = ""
			continue
		}
		p.Advice = strings.TrimSuffix(p.Advice, ".") + "; " + forecasts + "."
	}
}

// poolAdvice is what the pool table knows of a pool, in one text. The advice names library and setting itself.
func poolAdvice(p diagnose.PoolUse) string {
	var parts []string
	if p.Class != "" {
		parts = append(parts, "class "+shownText(p.Class))
	}
	switch {
	case p.Advice != "":
		parts = append(parts, shownText(strings.TrimSuffix(p.Advice, ".")))
	case p.Library != "":
		parts = append(parts, shownText(p.Library))
	}
	if p.OnIOThread {
		parts = append(parts, "application work was seen on these threads, which are made for I/O")
	}
	return strings.Join(parts, "; ")
}

// widthCost says what a run costs when wider than the limit.
func widthCost(e *diagnose.Explanation) string {
	c := e.CostOfWidth
	if c == nil || c.Narrow <= 0 {
		return ""
	}
	more := 100 * (float64(c.Wide)/float64(c.Narrow) - 1)
	verb := "more"
	if more < 0 {
		more, verb = -more, "less"
	}
	return fmt.Sprintf("Cost of width: a run takes %s of CPU time within the limit (%s) and %s above it (%s): %s %% %s.",
		text.Duration(c.Narrow), text.Count(c.NarrowRuns, "run"), text.Duration(c.Wide), text.Count(c.WideRuns, "run"),
		strconv.FormatFloat(more, 'f', 0, 64), verb)
}
