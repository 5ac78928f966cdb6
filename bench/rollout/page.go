package main

import (
	_ "embed"
	"fmt"
	"math"
	"slices"
	"strings"
	"text/template"

	"github.com/unthrottle/unthrottle/internal/agent"
	"github.com/unthrottle/unthrottle/internal/cure/switchback"
	"github.com/unthrottle/unthrottle/internal/stats"
	"github.com/unthrottle/unthrottle/test/study"
)

//go:embed page.md
var pageText string

// page is that of all nights, the last one first.
func page(all []night) string {
	slices.Reverse(all)
	return study.Fill(pageText, template.FuncMap{"row": row, "misses": misses, "minutes": minutes, "ended": ended,
		"agentCPUs": agentCPUs, "aaRow": aaRow}, all)
}

func minutes(seconds float64) string { return fmt.Sprintf("%.3g", seconds/60) }

// ended tells whether a trial of a night came to its end.
func ended(n night) bool {
	return slices.ContainsFunc(n.Services, func(s serviced) bool {
		return s.Trial != nil && (s.Trial.Kept != nil || s.Over && !s.failed(n))
	})
}

// failed tells whether the agent ended a service's trial by an error.
func (s serviced) failed(n night) bool {
	return slices.ContainsFunc(n.Warnings, func(line string) bool {
		return strings.Contains(line, "its trial is ended") && strings.Contains(line, "container="+s.Name+" ")
	})
}

// row is the row of a service.
func row(s serviced, n night) string {
	beside := func(m minute) bool { return m.At > -1 && m.At+each.Seconds() < n.Seconds+1 }
	keptAt := math.Inf(1)
	if s.KeptAt != nil {
		keptAt = *s.KeptAt
	}
	kept := func(m minute) bool { return m.At >= keptAt && beside(m) }
	tried := func(m minute) bool { return m.At+each.Seconds() < keptAt && beside(m) }
	answer, by := "no trial began", any("-")
	switch t := s.Trial; {
	case t == nil:
	case t.Kept != nil:
		answer = fmt.Sprintf("kept, promised %.2f times; since then %s in %d blocks left alone", t.Kept.Promised,
			study.Decimals(t.Kept.Times, 2), t.Kept.Pairs)
		by = t.Blocks
	default:
		answer, by = "still tried", t.Blocks
		if s.Over {
			answer = "kept nothing"
		}
		if v, ok := lowest(t.Variants); ok {
			answer += fmt.Sprintf("; lowest %s, %.2f times", v.Name, *v.Times)
			if v.Low != nil || v.High != nil {
				answer += fmt.Sprintf(" (%s to %s)", study.Decimals(v.Low, 2), study.Decimals(v.High, 2))
			}
		}
	}
	inForce := s.InForce
	if inForce == "" {
		inForce = "nothing"
	}
	return study.Row("`"+s.Name+"`", s.Limit, s.p99(n.without), s.p99(tried), s.p99(kept), by, slow(s.Remedied),
		slow(s.LeftAlone), answer, inForce)
}

// lowest is the variant with the lowest ratio that is tried still; false: nothing was measured.
func lowest(all []agent.SpreadVariant) (v agent.SpreadVariant, ok bool) {
	for _, one := range all {
		if one.Times != nil && one.Out == nil && (!ok || *one.Times < *v.Times) {
			v, ok = one, true
		}
	}
	return v, ok
}

// without tells whether no agent ran in a minute.
func (n night) without(m minute) bool { return m.At+each.Seconds() < 1 || m.At >= n.Seconds }

// p99 is the median of the p99 of those minutes that had all of the usual load, with their number.
func (s serviced) p99(of func(minute) bool) string {
	all := s.all(of)
	if len(all) == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f (%d)", stats.Median(all), len(all))
}

func (s serviced) all(of func(minute) bool) (all []float64) {
	for _, m := range s.Minutes {
		if m.P99 != nil && m.Load == 1 && of(m) {
			all = append(all, *m.P99)
		}
	}
	return all
}

// overloadedMs is the median p99 without an agent from which on a service counts as overloaded.
const overloadedMs = 1000

// overloaded is how many services the host has no room for.
func (n night) overloaded() (count int) {
	for _, s := range n.Services {
		if all := s.all(n.without); len(all) > 0 && stats.Median(all) >= overloadedMs {
			count++
		}
	}
	return count
}

// slow is the share of slow requests in percent.
func slow(c switchback.Counted) string {
	if c.Requests == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", 100*float64(c.Slow)/float64(c.Requests))
}

// agentCPUs is what the agents used; "": it was not measured.
func agentCPUs(n night) string {
	if n.AgentCPU == 0 {
		return ""
	}
	return fmt.Sprintf("%.3f", n.AgentCPU/n.Seconds)
}

// misses are what went wrong in a night.
func misses(n night) (all []string) {
	if count := n.overloaded(); count > 0 {
		all = append(all, fmt.Sprintf("the services together overload this host: without an agent p99 is %d ms or more in %d of %d, so that p99 says "+
			"nothing of remedies, and forecasts find no time", overloadedMs, count, len(n.Services)))
	}
	for _, s := range n.Services {
		if !s.Restored {
			all = append(all, "`"+s.Name+"`: its limit, weight or CPUs after `restore` are others than at the beginning")
		}
		switch {
		case s.Trial == nil:
			all = append(all, "`"+s.Name+"`: no trial began")
		case s.Trial.Kept != nil && !s.Over && s.InForce == "":
			all = append(all, "`"+s.Name+"`: what it kept was not in force at the end")
		case s.failed(n):
			all = append(all, "`"+s.Name+"`: its trial was ended by an error")
		}
	}
	for i, k := range n.Kills {
		for _, what := range k.Abandoned {
			all = append(all, fmt.Sprintf("kill %d: %s was in force still %v after the next agent's start", i+1, what, recovers))
		}
	}
	for _, what := range n.Left {
		all = append(all, "left on trial at the end: "+what)
	}
	return all
}
