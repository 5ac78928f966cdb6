package main

import (
	"fmt"

	"github.com/unthrottle/unthrottle/bench/study"
)

func sharing(r *result) float64 { return float64(r.sharing) / float64(max(1, r.containers)) }

func stranded(r *result) float64 { return float64(r.stranded) / float64(max(1, r.arrivals)) }

// together is what a state has of both: containers that share a core, and
// half-cores stranded.
func together(r *result) float64 { return float64(r.sharing+r.stranded) / float64(max(1, r.arrivals)) }

// least is what it must have of both: see frontierText.
func least(r *result) float64 { return float64(r.odd) / float64(max(1, r.arrivals)) }

// halves compares shared cores and stranded half-cores with the best peer in each, on the machines that every
// peer ran on.
func (t *table) halves() [][]any {
	peers, variants := t.who[:len(t.who)-len(variants)], t.who[len(t.who)-len(variants):]
	ours := t.besidePeers(variants[0])
	var body [][]any
	both := 0.0 // what the best peers' figures come to per state
	for _, what := range []struct {
		name string
		get  func(*result) float64
		each float64 // of them per state
	}{
		{"containers sharing a core", sharing, float64(ours.containers) / float64(max(1, ours.arrivals))},
		{"stranded half-cores", stranded, 1},
	} {
		best, by := t.lowest(peers, what.get)
		mine, with := t.lowest(variants, what.get)
		both += best * what.each
		body = append(body, []any{what.name, fmt.Sprintf("at most %.3f (%s)", best, by),
			fmt.Sprintf("%.3f (%s), %.3f (%s): see the frontier", mine, with, what.get(ours), variants[0]), byOrder(what.get(ours) <= best, mine <= best)})
	}
	verdict := "possible"
	if both < least(ours) {
		verdict = "no placement can: shown"
	}
	return append(body, []any{"both of these at once", fmt.Sprintf("%.2f of both together per state", both),
		fmt.Sprintf("at least %.2f for any placer, ours %.2f: see the frontier", least(ours), together(ours)), verdict})
}

// lowest finds who has the least of something.
func (t *table) lowest(who []string, get func(*result) float64) (least float64, by string) {
	for _, w := range who {
		if v := get(t.besidePeers(w)); by == "" || v < least {
			least, by = v, w
		}
	}
	return least, by
}

// byOrder tells what the default reaches from what another order reaches.
func byOrder(byDefault, byAnother bool) string {
	switch {
	case byDefault:
		return "met"
	case byAnother:
		return "met by another order than the default"
	}
	return "MISSED"
}

const frontierText = `## Shared cores and stranded half-cores: the frontier

A container of 3 CPUs on cores of 2 threads has part of a core. Either another container has the rest, and both share it,
or the rest is free, and a half-core is stranded; no two that do not share strand the same one. So at any moment

    containers that share a core + stranded half-cores >= containers of whose number no whole cores can be made

for any placer. An example: two containers of 1 CPU, two cores of two threads. On one core both share and no half-core is
stranded. On two cores they do not share and two half-cores are stranded. Fewer of one kind cost more of the other:
the order of the objectives chooses (` + "`--order`" + `), and what is above the bound is waste. Crossings count too: a placer that spreads
odd threads over the machine leaves less room in each group.

`

// cores shows the frontier of sharing and stranding.
func (t *table) cores(p *study.Page) {
	p.Text(frontierText)
	var body [][]any
	for _, w := range t.who {
		r := t.besidePeers(w)
		body = append(body, []any{w, fmt.Sprintf("%.3f", sharing(r)), fmt.Sprintf("%.3f", stranded(r)), fmt.Sprintf("%.2f", together(r)), fmt.Sprintf("%.2f", least(r)),
			percentOf(r.forced[0]+r.forced[1]+r.forced[2], r.containers)})
	}
	p.Text("All machines that every peer ran on:\n\n")
	rows(p, []string{"", "of the containers share a core", "half-cores stranded per state", "both per state", "of which must be", "crossings per 100 live containers"}, body)
	p.Text("Machine by machine: containers that share a core, of 100 / half-cores stranded on the machine. None of our orders costs an avoidable crossing.\n\n")
	t.perMachine(p, func(r *result) string {
		return percentOf(r.sharing, r.containers) + " / " + each(r.stranded, r.arrivals)
	}, t.who)
}
