package forecast

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
)

const (
	// negligibleStopped is the share of stopped time that needs no remedy if the user gives no objective.
	negligibleStopped = diagnose.Negligible
	// requiredRelief is the share of the stopped time that a remedy must end if the user gives no objective.
	requiredRelief = 0.9
	// toleratedP99 is the factor by which a 99th percentile may grow and still count as no worse.
	toleratedP99 = 1.05
	// toleratedLoss is the share of a host's CPU time that neighbours may lose and still count as not harmed.
	toleratedLoss = 0.01
)

// meets reports whether a remedy keeps the objective. Without an objective it must end the stopped time and
// make latency no worse. A container with negligible stopped time needs no remedy.
func (m *maker) meets(results []result) bool {
	latency := m.ofRuns(results)
	if o := m.o.Objective; o != nil {
		return withinBound(o.Bound, latency)
	}
	stopped := time.Duration(median(results, func(r *result) float64 { return float64(r.stopped) }))
	window := m.l.window
	if float64(stopped) <= negligibleStopped*float64(window) {
		return m.noWorse(latency)
	}
	was := time.Duration(median(m.none, func(r *result) float64 { return float64(r.stopped) }))
	return float64(stopped) <= (1-requiredRelief)*float64(was) && m.noWorse(latency)
}

func (m *maker) noWorse(latency *float64) bool {
	was := m.ofRuns(m.none)
	return latency == nil || was == nil || *latency <= *was*toleratedP99
}

// ofRuns is the latency by which runs are compared: the judged one, or that of all pools until something is judged.
func (m *maker) ofRuns(results []result) *float64 {
	if m.f.Judged != nil {
		return m.latency(results)
	}
	o := m.objective()
	return o.quantile(m.l.mergedTimes(results, o.Pool).Response)
}

// cost of a row: CPUs that it takes beyond the limit, CPU time that neighbours lose beyond toleratedLoss,
// then Remedy.Change. Without a quota a container can take the whole host, so its largest width counts.
func (m *maker) cost(row *Row) (cpus, lost float64, changes int) {
	reserved := float64(row.Figures.Widest)
	if row.Reserved != nil {
		reserved = *row.Reserved
	}
	if n := row.Neighbours; n != nil {
		if share := n.Lost.Seconds() / m.l.window.Seconds() / float64(m.f.CPUs); share > toleratedLoss {
			lost = share
		}
	}
	return math.Max(0, reserved-m.l.limit), lost, row.Remedy.Change()
}

// choose finds the cheapest remedy that keeps the objective at the recorded load of the host. It chooses
// among remedies only: a setting of the service, or a change of its code, is advice.
func (m *maker) choose() {
	for i := range m.f.Rows {
		row := &m.f.Rows[i]
		if row.HostLoad != 0 || row.Refused != "" || !row.Meets || row.Remedy.OfService() {
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
		of := best.Error.judged
		m.f.Sure = of != nil && of.High <= milliseconds(o.Bound)
	}
}

func (m *maker) compare(a, b *Row) int {
	aCPUs, aLost, aChanges := m.cost(a)
	bCPUs, bLost, bChanges := m.cost(b)
	return cmp.Or(cmp.Compare(aCPUs, bCPUs), cmp.Compare(aLost, bLost), cmp.Compare(aChanges, bChanges),
		cmp.Compare(a.Figures.Stopped, b.Figures.Stopped))
}

// price describes the cost of a row.
func (l *Load) price(row *Row, none Figures) string {
	priced := Pricing{Limit: l.limit, Used: row.Figures.CPU.Seconds() / l.window.Seconds(), Widest: row.Figures.Widest}
	if row.Remedy.Name == None {
		return "nothing"
	}
	if row.Remedy.Name == Pools && row.Remedy.Pool != AllPools {
		priced.Pool = l.Pools[row.Remedy.Pool].Name
	}
	price := ""
	if says := row.Remedy.effect().Price; says != nil {
		price = says(row.Remedy, priced)
	}
	if a, b := row.Figures.Response.P50, none.Response.P50; a != nil && b != nil && *a > *b*1.1 && *a-*b > 0.1 {
		price += fmt.Sprintf("; p50 %+.1f ms", *a-*b)
	}
	return price
}
