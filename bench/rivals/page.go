package main

import (
	_ "embed"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/unthrottle/unthrottle/bench/services"
	"github.com/unthrottle/unthrottle/internal/stats"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/test/study"
)

//go:embed page.md
var pageText string

// cell is one variant of one service, over its rounds.
type cell struct {
	Variant    string
	NotApplied string
	Rounds     int
	// Highest is the highest load within the objective; Open: at least that in one of the rounds.
	Highest study.Spread
	Open    bool
	// Half and FourFifths are p50, p99 and p99.9 in ms at half and four fifths of the highest load.
	Half, FourFifths [3]study.Spread
	// Usual is p99 at the usual load, in ms, Neighbour that of the service beside it; CPUs are those of that load.
	Usual, Used, Granted, Most, Neighbour study.Spread
	// MostGranted is the most that any step was granted, on average: a rule may raise the limit only where the load is higher.
	MostGranted      float64
	Decided          study.Spread
	Set              string
	Refusals, Writes int
	FirstRefusal     string
}

// serviceRows is a service of the page.
type serviceRows struct {
	Name      string
	Limit     float64
	Objective float64
	Day       string
	Machine   string
	Cells     []cell
}

// quantiles of a point.
var quantiles = [3]func(*point) *float64{
	func(p *point) *float64 { return p.P50 }, func(p *point) *float64 { return p.P99 }, func(p *point) *float64 { return p.P999 },
}

// cellOf is what the rounds of a variant say.
func cellOf(name string, pieces []piece) cell {
	c := cell{Variant: name}
	var highestLoads, usualP99, used, granted, most, neighbour, decided []float64
	var half, fourFifths [3][]float64
	for i := range pieces {
		p := &pieces[i]
		if p.NotApplied != "" {
			c.NotApplied = p.NotApplied
			continue
		}
		c.Rounds++
		c.Set, c.Writes, c.Refusals = p.Set, c.Writes+p.Writes, c.Refusals+p.Refusals
		if p.FirstRefusal != "" {
			c.FirstRefusal = p.FirstRefusal
		}
		load, open := highest(p.Points, p.Objective)
		highestLoads, c.Open = append(highestLoads, load), c.Open || open
		for k, of := range quantiles {
			for part, into := range map[float64]*[]float64{0.5: &half[k], 0.8: &fourFifths[k]} {
				if v, ok := between(p.Points, part*load, of); ok && load > 0 {
					*into = append(*into, v)
				}
			}
		}
		for _, at := range p.Points {
			c.MostGranted = max(c.MostGranted, at.GrantedCPUs)
		}
		if at := p.at(1); at != nil {
			used, granted, most = append(used, at.UsedCPUs), append(granted, at.GrantedCPUs), append(most, at.MostCPUs)
			if at.P99 != nil {
				usualP99 = append(usualP99, *at.P99)
			}
			if at.Neighbour != nil {
				neighbour = append(neighbour, *at.Neighbour)
			}
		}
		if p.Decided != nil {
			decided = append(decided, *p.Decided)
		}
	}
	c.Highest, c.Usual, c.Used = study.SpreadOf(highestLoads), study.SpreadOf(usualP99), study.SpreadOf(used)
	c.Granted, c.Most = study.SpreadOf(granted), study.SpreadOf(most)
	c.Neighbour, c.Decided = study.SpreadOf(neighbour), study.SpreadOf(decided)
	for k := range quantiles {
		c.Half[k], c.FourFifths[k] = study.SpreadOf(half[k]), study.SpreadOf(fourFifths[k])
	}
	return c
}

// rowsOf are the services that are measured, in the order of the page, each with its variants.
func rowsOf(all []piece) (rows []serviceRows) {
	for _, name := range servicesOf(all) {
		r := serviceRows{Name: name}
		for _, v := range variants {
			var pieces []piece
			for _, p := range all {
				if p.Service == name && p.Variant == v.name && p.Round > 0 {
					pieces = append(pieces, p)
					r.Limit, r.Objective = p.Limit, max(r.Objective, p.Objective)
					r.Day, r.Machine = max(r.Day, p.Day()), p.Machine
				}
			}
			if len(pieces) > 0 {
				r.Cells = append(r.Cells, cellOf(v.name, pieces))
			}
		}
		if len(r.Cells) > 0 {
			rows = append(rows, r)
		}
	}
	return rows
}

// servicesOf are the names in the order of served, others behind.
func servicesOf(all []piece) []string {
	names := slices.Clone(served)
	for _, p := range all {
		if !slices.Contains(names, p.Service) {
			names = append(names, p.Service)
		}
	}
	return names
}

// Find is the cell of a variant; nil: it was not measured, or could not be applied.
func (r serviceRows) Find(name string) *cell {
	for i := range r.Cells {
		if r.Cells[i].Variant == name && r.Cells[i].Rounds > 0 {
			return &r.Cells[i]
		}
	}
	return nil
}

// leastRounds is how many rounds the variants of a service have at least.
func (r serviceRows) leastRounds() int {
	least := 0
	for _, c := range r.Cells {
		if c.Rounds > 0 && (least == 0 || c.Rounds < least) {
			least = c.Rounds
		}
	}
	return least
}

// Speed says from how many CPUs to how many variants used at the usual load, which is the same work: how far the host's speed changed.
func (r serviceRows) Speed() string {
	low, high := math.Inf(1), 0.0
	for _, c := range r.Cells {
		if c.Used.Rounds > 0 {
			low, high = min(low, c.Used.Median), max(high, c.Used.Median)
		}
	}
	if high == 0 {
		return "-"
	}
	return fmt.Sprintf("%s to %s", short(low), short(high))
}

// roundsWanted and servicesWanted are from how many on the first table counts as a result.
const roundsWanted, servicesWanted = 2, 3

// few says why the first table is no result yet; "": it is one.
func few(rows []serviceRows) string {
	rounds := 0
	for _, r := range rows {
		if n := r.leastRounds(); rounds == 0 || n < rounds {
			rounds = n
		}
	}
	if len(rows) >= servicesWanted && rounds >= roundsWanted {
		return ""
	}
	return fmt.Sprintf("%s in %s so far", text.Count(len(rows), "service"), text.Count(rounds, "round"))
}

// overNoLimit is p99 at the usual load over that without a limit, for each service in which both were measured.
func overNoLimit(rows []serviceRows, name string) (ratios []float64) {
	for _, r := range rows {
		if c, none := r.Find(name), r.Find(usual.name); c != nil && none != nil && c.Usual.Rounds > 0 && none.Usual.Rounds > 0 {
			ratios = append(ratios, c.Usual.Median/none.Usual.Median)
		}
	}
	return ratios
}

// carries is the highest load over that of the quota.
func carries(rows []serviceRows, name string) (ratios []float64) {
	for _, r := range rows {
		if c, quota := r.Find(name), r.Find(variants[0].name); c != nil && quota != nil && quota.Highest.Median > 0 {
			ratios = append(ratios, c.Highest.Median/quota.Highest.Median)
		}
	}
	return ratios
}

// summary is a line of the first table: a variant over all services.
type summary struct {
	Variant                                string
	Services                               int
	OverNoLimit, Carries, Granted, Decided string
	// EqualCPU: it grants no more than the limit in any service, at any load.
	EqualCPU bool
	Left     string
}

func summaries(rows []serviceRows) (all []summary) {
	for _, v := range variants {
		s := summary{Variant: v.name, EqualCPU: true, Left: v.left, OverNoLimit: middle(overNoLimit(rows, v.name)),
			Carries: middle(carries(rows, v.name))}
		var granted, decided []float64
		for _, r := range rows {
			c := r.Find(v.name)
			if c == nil {
				continue
			}
			s.Services++
			granted = append(granted, c.Granted.Median/r.Limit)
			s.EqualCPU = s.EqualCPU && c.MostGranted <= r.Limit*equalWithin
			if c.Decided.Rounds > 0 {
				decided = append(decided, c.Decided.Median)
			}
		}
		if s.Granted, s.Decided = middle(granted), middle(decided); s.Services > 0 {
			all = append(all, s)
		}
	}
	return all
}

// equalWithin is up to how many times the limit counts as equal CPU: whole microseconds of a quota.
const equalWithin = 1.01

// middle is the median of ratios with the lowest and highest; "-" of none.
func middle(values []float64) string {
	if len(values) == 0 {
		return "-"
	}
	if len(values) == 1 {
		return short(values[0])
	}
	return fmt.Sprintf("%s (%s to %s)", short(stats.Median(values)), short(slices.Min(values)), short(slices.Max(values)))
}

// better are the rivals that carry more at equal CPU than what fix left, by service.
func better(rows []serviceRows) (lines []string) {
	for _, r := range rows {
		fix := r.Find("unthrottle fix")
		if fix == nil {
			continue
		}
		for i := range r.Cells {
			c := &r.Cells[i]
			if c.Rounds == 0 || c.Variant == fix.Variant || c.MostGranted > r.Limit*equalWithin {
				continue
			}
			if c.Highest.Median > fix.Highest.Median*betterBy && c.Highest.Low > fix.Highest.High {
				lines = append(lines, fmt.Sprintf("`%s`: %s carries %s times the usual load, what fix left (%s) %s", r.Name, c.Variant,
					spread(c.Highest, c.Open), fix.Set, spread(fix.Highest, fix.Open)))
			}
		}
	}
	return lines
}

// betterBy is by which factor more load counts as better.
const betterBy = 1.05

// spread is a figure over rounds.
func spread(s study.Spread, open bool) string {
	if s.Rounds == 0 {
		return "-"
	}
	words := short(s.Median)
	if s.Low != s.High {
		words += fmt.Sprintf(" (%s to %s)", short(s.Low), short(s.High))
	}
	if open {
		words = "at least " + words
	}
	return words
}

// short is a figure of three digits.
func short(v float64) string {
	if v >= 100 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}

// Row is a line of a service's table.
func (c cell) Row() string {
	if c.Rounds == 0 {
		return study.Row(c.Variant, "not applied: "+c.NotApplied, "", "", "", "", "", "", "", "")
	}
	quantile := func(of [3]study.Spread) string {
		var all []string
		for _, s := range of {
			all = append(all, spread(study.Spread{Median: s.Median, Low: s.Median, High: s.Median, Rounds: s.Rounds}, false))
		}
		return strings.Join(all, ", ")
	}
	set := c.Set
	if c.Refusals > 0 {
		set += fmt.Sprintf("; refused %d of %d writes", c.Refusals, c.Writes)
	}
	return study.Row(c.Variant, set, spread(c.Highest, c.Open), spread(c.Usual, false), quantile(c.Half), quantile(c.FourFifths),
		spread(c.Used, false), spread(c.Granted, false), spread(c.Most, false), spread(c.Neighbour, false))
}

// chainRow is a line of the chain's table: its p99 at each load, and by how much it grows.
type chainRow struct {
	Variant string
	P99     []string
	Grows   string
}

// The loads between which p99 of a chain is said to grow.
const growsFrom, growsTo = 0.3, 0.8

// chainOf are the variants of the chain; none: it was not measured.
func chainOf(all []piece) (rows []chainRow) {
	for _, v := range variants {
		byLoad := map[float64][]float64{}
		var grows []float64
		for i := range all {
			p := &all[i]
			if p.Service != chained || p.Variant != v.name || p.Round == 0 || p.NotApplied != "" {
				continue
			}
			for _, at := range p.Points {
				if at.P99 != nil {
					byLoad[at.Load] = append(byLoad[at.Load], *at.P99)
				}
			}
			if from, to := p.at(growsFrom), p.at(growsTo); from != nil && to != nil && from.P99 != nil && to.P99 != nil {
				grows = append(grows, *to.P99 / *from.P99)
			}
		}
		if len(byLoad) == 0 {
			continue
		}
		row := chainRow{Variant: v.name, Grows: spread(study.SpreadOf(grows), false)}
		for _, load := range chainLoads {
			row.P99 = append(row.P99, spread(study.SpreadOf(byLoad[load]), false))
		}
		rows = append(rows, row)
	}
	return rows
}

// refused are the refusals that were met, each text once.
func refused(rows []serviceRows) (lines []string) {
	for _, r := range rows {
		for _, c := range r.Cells {
			if c.FirstRefusal != "" {
				line := fmt.Sprintf("%s in `%s`: %d of %d writes, the first with: %s", c.Variant, r.Name, c.Refusals, c.Writes, c.FirstRefusal)
				lines = append(lines, line)
			}
		}
	}
	return lines
}

// pageOf is the page of all pieces.
func pageOf(all []piece) string {
	rows := rowsOf(all)
	chain, _ := services.Find(chained)
	return study.Fill(pageText, nil, map[string]any{
		"Rows": rows, "Summaries": summaries(rows), "Better": better(rows), "Refused": refused(rows), "Times": objectiveTimes,
		"BetterBy": fmt.Sprintf("%.0f %%", 100*(betterBy-1)), "Neighbour": neighbourPerSecond, "Loads": loads,
		"Few": few(rows), "Chain": chainOf(all), "ChainLoads": chainLoads, "Containers": 1 + len(chain.Containers),
		"From": 100 * growsFrom, "To": 100 * growsTo,
	})
}
