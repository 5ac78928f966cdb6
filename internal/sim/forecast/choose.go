package forecast

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"github.com/unthrottle/unthrottle/internal/text"
)

const (
	// harmless is the share of the time for which a container may be stopped and is left alone where no objective is given:
	// what 'explain' calls negligible.
	harmless = 0.001
	// relief is the share of the stopped time that a remedy must end, where no objective is given, to be one.
	relief = 0.9
	// alikeP99: a 99th percentile that is no more than this much longer counts as no worse.
	alikeP99 = 1.05
	// spared is the share of a host's CPU time within which neighbours count as not harmed.
	spared = 0.01
)

// meets says whether a remedy keeps the objective. Without one it must end the stopped time and make latency no worse:
// leaving it does where it is hardly ever stopped.
func (m *maker) meets(results []Result) bool {
	times := m.l.summed(results, m.objective().Pool)
	if o := m.o.Objective; o != nil {
		return pick(o.Bound, o.of(times.Response))
	}
	stopped := time.Duration(median(results, func(r *Result) float64 { return float64(r.Stopped) }))
	window := m.l.Window
	if float64(stopped) <= harmless*float64(window) {
		return m.noWorse(times.Response.Quantile(0.99))
	}
	was := time.Duration(median(m.none, func(r *Result) float64 { return float64(r.Stopped) }))
	return float64(stopped) <= (1-relief)*float64(was) && m.noWorse(times.Response.Quantile(0.99))
}

func (m *maker) noWorse(p99 *float64) bool {
	was := m.l.summed(m.none, m.objective().Pool).Response.Quantile(0.99)
	return p99 == nil || was == nil || *p99 <= *was*alikeP99
}

// order of remedies that take as many CPUs: what changes least first. A shorter period keeps what the limit promises, a
// burst and no quota let it be wide at others' cost, and CPUs of its own are taken from others whether it uses them or not.
var order = map[string]int{None: 0, Period: 1, Narrow: 2, Burst: 3, Weight: 4, Raise: 5, Pin: 6}

// cost of a row: CPUs that it takes beyond the limit, CPU time that neighbours lose beyond what they would hardly feel,
// then how much it changes. No quota at all can take all that there is: what it took at its widest counts.
func (m *maker) cost(row *Row) (cpus, lost float64, changes int) {
	reserved := float64(row.Figures.Widest)
	if row.Reserved != nil {
		reserved = *row.Reserved
	}
	if n := row.Neighbours; n != nil {
		if share := n.Lost.Seconds() / m.l.Window.Seconds() / float64(m.f.CPUs); share > spared {
			lost = share
		}
	}
	return math.Max(0, reserved-m.l.Limit), lost, order[row.Remedy.Name]
}

// choose finds the cheapest remedy that keeps the objective at the recorded load of the host, among those that are
// replayed: a modelled row is advice, and never the answer.
func (m *maker) choose() {
	for i := range m.f.Rows {
		row := &m.f.Rows[i]
		if row.HostLoad != 0 || row.Refused != "" || !row.Meets || row.Remedy.Modelled() {
			continue
		}
		if m.f.Cheapest >= 0 && m.compare(row, &m.f.Rows[m.f.Cheapest]) >= 0 {
			continue
		}
		m.f.Cheapest = i
	}
	if m.f.Cheapest < 0 {
		return
	}
	best := &m.f.Rows[m.f.Cheapest]
	o := m.o.Objective
	m.f.Sure = o == nil
	if o != nil && best.Error != nil {
		of := best.Error.P99
		switch {
		case o.Quantile > 0.99: // of the tail beyond p99 only the end has an error
			of = best.Error.Max
		case o.Quantile <= 0.5:
			of = best.Error.P50
		}
		m.f.Sure = of != nil && of.High <= milliseconds(o.Bound)
	}
}

func (m *maker) compare(a, b *Row) int {
	aCPUs, aLost, aChanges := m.cost(a)
	bCPUs, bLost, bChanges := m.cost(b)
	return cmp.Or(cmp.Compare(aCPUs, bCPUs), cmp.Compare(aLost, bLost), cmp.Compare(aChanges, bChanges),
		cmp.Compare(a.Figures.Stopped, b.Figures.Stopped))
}

// price says what a row costs, in words.
func (l *Load) price(row *Row, none Figures) string {
	used := row.Figures.CPU.Seconds() / l.Window.Seconds()
	price := ""
	switch r := row.Remedy; r.Name {
	case None:
		return "nothing"
	case Pin:
		price = fmt.Sprintf("%s that nobody else gets, %.2f used", text.Count(r.CPUs, "CPU"), used)
	case Narrow:
		price = fmt.Sprintf("never wider than %d", int(math.Ceil(l.Limit)))
	case Burst:
		price = fmt.Sprintf("up to %s at once from others, on what was not used before", text.Count(row.Figures.Widest, "CPU"))
	case Period:
		price = fmt.Sprintf("a refill every %v; one stretch gets %v at most", r.Period, time.Duration(float64(r.Period)*l.Limit).Round(100*time.Microsecond))
	case Weight:
		price = fmt.Sprintf("no bound: up to %s at once", text.Count(row.Figures.Widest, "CPU"))
	case Raise:
		price = fmt.Sprintf("%s more of limit", text.CPUs(l.Limit*(r.Factor-1)))
	case Pools:
		which := "each pool"
		if r.Pool != AllPools {
			which = l.Pools[r.Pool].Name
		}
		price = fmt.Sprintf("a setting of the service: %s of %s", which, text.Count(r.CPUs, "thread"))
	case Shards:
		price = fmt.Sprintf("limits of %s each", text.CPUs(l.Limit/r.Factor))
	}
	if a, b := row.Figures.Response.P50, none.Response.P50; a != nil && b != nil && *a > *b*1.1 && *a-*b > 0.1 {
		price += fmt.Sprintf("; p50 %+.1f ms", *a-*b)
	}
	return price
}
