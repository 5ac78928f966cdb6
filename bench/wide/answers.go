package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/unthrottle/unthrottle/bench/study"
	"github.com/unthrottle/unthrottle/internal/experiment/capacity"
	"github.com/unthrottle/unthrottle/internal/stats"
)

// answers are the page's first lines: what each remedy gains at equal CPU, and whether the published claims come out.
func (p *page) answers() {
	p.Line("\n## In short\n")
	p.Line("The highest load whose p99 stays within %d ms, as a multiple of the plain quota's at equal CPU, for services that nobody tuned:\n", boundMs)
	for _, of := range []struct {
		at    host
		shape string
		about string
	}{
		{small, "pools", "short requests beside bursts of jobs"}, {small, "mixed", "pings and bursts of long work on the same threads"},
		{small, capacity.PoolsGC, "the first with a stop-the-world collector"}, {wide, "pools", "the same as the first"}, {wide, capacity.Shard, "a shard of a stateful service"},
	} {
		p.at = of.at
		p.Line("- %d CPUs, a limit of %d, `%s` (%s): %s.", of.at.CPUs, of.at.Limit, of.shape, of.about, p.gains(of.shape))
	}
	p.fixInShort()
	p.claims()
}

// gains are the remedies' gains of a shape, the largest first.
func (p *page) gains(shape string) string {
	factors, texts := map[string]float64{}, map[string]string{}
	var all []string
	for _, name := range allRemedies()[1:] {
		g := p.gain(shape, name)
		if n, ok := g.factor(); ok {
			factors[name], texts[name] = n, names[name]+" "+g.inWords()
			all = append(all, name)
		}
	}
	if len(all) == 0 {
		return notYet
	}
	slices.SortStableFunc(all, func(a, b string) int { return cmp.Compare(factors[b], factors[a]) })
	for i, name := range all {
		all[i] = texts[name]
	}
	return strings.Join(all, ", ")
}

// inWords is a factor within a sentence.
func (g gain) inWords() string {
	low, high := g.median()
	if low < high {
		return boundsText(low, high)
	}
	return fmt.Sprintf("%.2f", low)
}

// fixInShort says what fix left in force.
func (p *page) fixInShort() {
	p.at = small
	var left []string
	for _, shape := range shapes {
		r := p.have.find(fixedOf(small, shape, comparedLevel, 1))
		if r == nil {
			continue
		}
		text := "nothing"
		if t := r.Fix.left(); t != nil {
			text = t.String()
			if j := r.Fix.Judgement; j != nil && j.Before != nil && j.After != nil {
				before, after := judged(j)
				text += fmt.Sprintf(" (p%g of threads %s to %s)", 100*j.Quantile, before, after)
			}
		}
		left = append(left, fmt.Sprintf("`%s` %s", shape, text))
	}
	if len(left) == 0 {
		left = []string{notYet}
	}
	p.Line("- What `fix` left in force by itself on %d CPUs, at %.0f %%: %s.", small.CPUs, 100*levels[comparedLevel], strings.Join(left, "; "))
}

// claims sets the seeds' figures beside ours.
func (p *page) claims() {
	p.Line("\nThe published figures:\n")
	p.Line("- \"1.6 to 2 times the load\" (a kernel that bounds the width): %s.%s", p.bounded(), p.room())
	p.Line("- \"P99 falls by half\" (quotas become exclusive CPUs): %s.", p.halving())
	p.Line("- Slices of quota that expire made p99 long before Linux 5.4; this kernel has none.")
}

// bounded is the largest gain of narrow with credit for each shape that has one.
func (p *page) bounded() string {
	var all []string
	best := map[string]float64{} // on the small host
	for _, p.at = range []host{small, wide} {
		for _, shape := range shapes {
			most, text := 0.0, ""
			for _, name := range []string{capacity.NarrowSchedExt, longCredit} {
				g := p.gain(shape, name)
				if n, ok := g.factor(); ok && n > most && searched(p.at, shape, name) {
					most, text = n, fmt.Sprintf("`%s` on %d CPUs %s", shape, p.at.CPUs, g.inWords())
				}
			}
			if text != "" {
				all = append(all, text)
			}
			if p.at == small {
				best[shape] = most
			}
		}
	}
	if len(all) == 0 {
		return notYet
	}
	text := "narrow with credit comes to " + strings.Join(all, ", ")
	if without, with := best["pools"], best[capacity.PoolsGC]; without > 0 && with > without {
		text += fmt.Sprintf(". A collector makes %.2f of %.2f: a stop that falls into a collection makes all requests wait", with, without)
	}
	return text
}

// room says what any remedy can gain: where the quota already carries a large share of what its CPUs can, little is left.
func (p *page) room() string {
	var all []string
	for _, of := range []struct {
		at    host
		shape string
	}{{small, "pools"}, {small, capacity.PoolsGC}, {small, "mixed"}, {wide, "pools"}, {wide, capacity.Shard}} {
		var most []float64
		for repeat := 1; repeat <= repeats; repeat++ {
			if k, ok := p.have.kneeOf(of.at, of.shape, capacity.Quota, repeat); ok && k.exact() {
				most = append(most, 1/k.Share)
			}
		}
		if len(most) > 0 {
			all = append(all, fmt.Sprintf("`%s` on %d CPUs %.2f", of.shape, of.at.CPUs, stats.Median(most)))
		}
	}
	if len(all) == 0 {
		return ""
	}
	return " More than the limit's CPUs can do none gains; that bound is " + strings.Join(all, ", ") + "."
}

// pinnedAt is p99 in ms at one load under the quota, on exclusive CPUs, and there with pools sized by them. Nil: not measured.
type pinnedAt struct {
	of               string
	quota, pin, both *float64
}

func (a pinnedAt) String() string {
	text := fmt.Sprintf("%s %s, %s", a.of, study.Decimals(a.quota, 0), study.Decimals(a.pin, 0))
	if a.both != nil {
		text += ", " + study.Decimals(a.both, 0)
	}
	return text
}

// halved is how much of the quota's p99 counts as half: one repeat of 30 periods is not that exact.
const halved = 0.6

// halving compares p99 on exclusive CPUs with the quota's, at each load where both are measured.
func (p *page) halving() string {
	all, sized, sizedCome := 0, 0, 0
	var come, both []string
	for _, p.at = range []host{small, wide, widest} {
		for _, shape := range shapes {
			for level, share := range levels {
				a := pinnedAt{fmt.Sprintf("`%s` at %.0f %% on %d CPUs", shape, 100*share, p.at.CPUs), p.p99Ms(shape, capacity.Quota, level), p.p99Ms(shape, capacity.Pin, level), p.p99Ms(shape, capacity.PinPools, level)}
				if a.quota == nil || a.pin == nil {
					continue
				}
				all++
				if *a.pin <= halved**a.quota {
					come = append(come, a.String())
				}
				if a.both == nil {
					continue
				}
				sized++
				both = append(both, a.String())
				if *a.both <= halved**a.quota {
					sizedCome++
				}
			}
		}
	}
	if all == 0 {
		return notYet
	}
	text := fmt.Sprintf("it does at %d of %d loads", len(come), all)
	if len(come) > 0 {
		text += " (ms before and after: " + strings.Join(come, "; ") + ")"
	}
	text += ". Elsewhere threads sized for the wide host wait their turn on few CPUs"
	if sized > 0 {
		text += fmt.Sprintf(". With pools sized by these CPUs it does at %d of %d (before, after, and with such pools: %s)", sizedCome, sized, strings.Join(both, "; "))
	}
	return text
}
