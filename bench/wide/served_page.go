package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/unthrottle/unthrottle/bench/services"
	"github.com/unthrottle/unthrottle/internal/experiment/capacity"
	"github.com/unthrottle/unthrottle/test/study"
)

// servedNames are the variants of real services on the page, where they have other names than for shapes.
var servedNames = map[string]string{capacity.Pools: "pools sized by the limit", capacity.Pin: "exclusive CPUs, no quota",
	capacity.Weight: "no limit", capacity.Burst: "burst of one quota in 100 ms", capacity.NarrowSchedExt: "narrow with credit",
	noCredit: "narrow without credit"}

func servedName(variant string) string {
	if name := servedNames[variant]; name != "" {
		return name
	}
	return names[variant]
}

// servedTable is a real service.
type servedTable struct {
	Name, Truth string
	// Setting is what sizes its pools; "": it has none.
	Setting string
	K       int
	// Load is the heavy requests of a burst, in words; "": its size is not known yet.
	Load string
	Rows []string
}

// servedRound are the figures of a service under a variant in a round; nil: it is not measured.
func (p page) servedRound(k int, name, variant string, round int) *servedFigures {
	times, first := p.have.timesOf(k, name)
	if first != nil {
		return nil
	}
	if r := p.have.find(servedOf(k, name, variant, times, round)); r != nil {
		return r.Served
	}
	return nil
}

// servedRounds are the rounds of a service under a variant.
func (p page) servedRounds(k int, name, variant string) (all []*servedFigures) {
	for round := 1; round <= mostRounds; round++ {
		if f := p.servedRound(k, name, variant, round); f != nil {
			all = append(all, f)
		}
	}
	return all
}

// Services are the tables of the real services of which anything is measured, at the K of the study.
func (p page) Services() (tables []servedTable) {
	for _, c := range services.Wide() {
		if p.anyServed(servedK, c.Name, servedVariants) {
			tables = append(tables, p.serviceTable(c, servedK, servedVariants))
		}
	}
	return tables
}

// Unserved are the names of those of which nothing is measured.
func (p page) Unserved() string {
	var left []string
	for _, c := range services.Wide() {
		if !p.anyServed(servedK, c.Name, servedVariants) {
			left = append(left, "`"+c.Name+"`")
		}
	}
	return strings.Join(left, ", ")
}

func (p page) anyServed(k int, name string, variants []string) bool {
	return slices.ContainsFunc(variants, func(v string) bool { return len(p.servedRounds(k, name, v)) > 0 })
}

// ServedControl is the control at another K, beside the same rows of the study; none: it is not measured.
func (p page) ServedControl() (tables []servedTable) {
	if !p.anyServed(controlK, controlled, controls) {
		return nil
	}
	c, _ := services.Find(controlled)
	for _, k := range []int{servedK, controlK} {
		tables = append(tables, p.serviceTable(c, k, controls))
	}
	return tables
}

// ServedControlled is the service of the control, with its other K.
func (p page) ServedControlled() string { return fmt.Sprintf("`%s` at K = %d", controlled, controlK) }

func (p page) serviceTable(c services.Case, k int, variants []string) servedTable {
	t := servedTable{Name: c.Name, Truth: c.Truth, Setting: c.Setting.Name, K: k}
	if times, first := p.have.timesOf(k, c.Name); first == nil {
		var loads []string
		for _, s := range c.Times(times).Streams {
			load := fmt.Sprintf("%.3g %s a second", s.PerSecond, plural(s.Name))
			if s.Burst > 1 {
				load += fmt.Sprintf(", %d at once", s.Burst)
			}
			loads = append(loads, load)
		}
		t.Load = strings.Join(loads, "; ")
	}
	for _, v := range variants {
		if v == capacity.Pools && c.Setting.Name == "" {
			t.Rows = append(t.Rows, study.Row(servedName(v), "it has no setting", "", "", "", "", "", "", ""))
			continue
		}
		t.Rows = append(t.Rows, p.servedRow(k, c.Name, v))
	}
	return t
}

// plural of the name of a stream.
func plural(name string) string {
	if strings.HasSuffix(name, "y") {
		return strings.TrimSuffix(name, "y") + "ies"
	}
	return name + "s"
}

// servedRow is a variant's row: medians of the rounds with the lowest and the highest, and the medians of what each round's p99 is over
// that without a limit and with the quota in the same round.
func (p page) servedRow(k int, name, variant string) string {
	all := p.servedRounds(k, name, variant)
	if len(all) == 0 {
		return study.Row(servedName(variant), "not measured yet", "", "", "", "", "", "", "")
	}
	over := func(other string) string {
		var ratios []float64
		for round := 1; round <= mostRounds; round++ {
			of, base := p.servedRound(k, name, variant, round), p.servedRound(k, name, other, round)
			if of != nil && base != nil && of.P99 != nil && base.P99 != nil && *base.P99 > 0 {
				ratios = append(ratios, *of.P99 / *base.P99)
			}
		}
		return spreadText(ratios, 2)
	}
	return study.Row(servedName(variant), len(all), spreadOf(all, 1, func(f *servedFigures) *float64 { return f.P50 }),
		spreadOf(all, 1, func(f *servedFigures) *float64 { return f.P99 }), over(capacity.Weight), over(capacity.Quota),
		spreadOf(all, 2, func(f *servedFigures) *float64 { return f.CPUUsed }),
		spreadOf(all, 0, (*servedFigures).throttledShare), spreadOf(all, 2, func(f *servedFigures) *float64 { return f.ThrottledSeconds }))
}

// throttledShare is the share of periods that were throttled, in percent; nil: it has none to throttle.
func (f *servedFigures) throttledShare() *float64 {
	if f.Periods == nil || f.Throttled == nil || *f.Periods == 0 {
		return nil
	}
	return new(100 * float64(*f.Throttled) / float64(*f.Periods))
}

// spreadOf is a figure of all rounds that have it.
func spreadOf(all []*servedFigures, decimals int, of func(*servedFigures) *float64) string {
	var values []float64
	for _, f := range all {
		if v := of(f); v != nil {
			values = append(values, *v)
		}
	}
	return spreadText(values, decimals)
}

// spreadText is the median with the lowest and the highest; "-": there is none.
func spreadText(values []float64, decimals int) string {
	if len(values) == 0 {
		return "-"
	}
	s := study.SpreadOf(values)
	if len(values) == 1 {
		return study.Decimals(&s.Median, decimals)
	}
	return fmt.Sprintf("%.*f (%.*f to %.*f)", decimals, s.Median, decimals, s.Low, decimals, s.High)
}

// ServedMisses are the services whose variant is not what was hoped of it: the quota does not stop them, requests failed, or a
// variant's p99 is longer than the quota's in each round.
func (p page) ServedMisses() (texts []string) {
	for _, c := range services.Wide() {
		quota := p.servedRounds(servedK, c.Name, capacity.Quota)
		if len(quota) > 0 && !slices.ContainsFunc(quota, func(f *servedFigures) bool { return f.Throttled != nil && *f.Throttled > 0 }) {
			texts = append(texts, fmt.Sprintf("`%s` is not stopped by the quota: it says nothing of remedies", c.Name))
		}
		for _, v := range servedVariants {
			all := p.servedRounds(servedK, c.Name, v)
			failed, longer, compared := uint64(0), 0, 0
			for _, f := range all {
				failed += f.Failed
			}
			for round := 1; round <= mostRounds; round++ {
				of, base := p.servedRound(servedK, c.Name, v, round), p.servedRound(servedK, c.Name, capacity.Quota, round)
				if of == nil || base == nil || of.P99 == nil || base.P99 == nil {
					continue
				}
				if compared++; *of.P99 > *base.P99 {
					longer++
				}
			}
			if failed > 0 {
				texts = append(texts, fmt.Sprintf("`%s`, %s: %d requests failed", c.Name, servedName(v), failed))
			}
			if v != capacity.Quota && compared > 0 && longer == compared {
				texts = append(texts, fmt.Sprintf("`%s`, %s: p99 is longer than with the quota in each of %d rounds", c.Name, servedName(v),
					compared))
			}
		}
	}
	return texts
}

// ServedCount is how many services have all variants in how many rounds at least; of how many.
func (p page) ServedCount() string {
	whole, least := 0, 0
	for _, c := range services.Wide() {
		rounds := mostRounds
		for _, v := range servedVariants {
			if v != capacity.Pools || c.Setting.Name != "" {
				rounds = min(rounds, len(p.servedRounds(servedK, c.Name, v)))
			}
		}
		if rounds == 0 {
			continue
		}
		if whole++; whole == 1 || rounds < least {
			least = rounds
		}
	}
	if whole == 0 {
		return fmt.Sprintf("None of %d services has a whole round yet.", len(services.Wide()))
	}
	return fmt.Sprintf("%d of %d services have at least %d whole rounds; %d were planned.", whole, len(services.Wide()), least,
		servedRounds)
}

// ServedK is the K of the study with real services.
func (p page) ServedK() int { return servedK }

// ServedSeconds is how long each was measured.
func (p page) ServedSeconds() int { return servedSeconds }
