package main

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/test/study"
)

//go:embed page.md
var pageText string

// Where each reach applies.
const (
	fastestFrom, fastestTo = 128, 384
	largest                = 1000
)

// key names a result: all streams of one allocator on one machine.
type key struct{ machine, who string }

// table collects results and writes them.
type table struct {
	length, seeds int

	mutex    sync.Mutex // of what follows
	machines []machine  // that are done
	results  map[key]*result
	// garbage are the allocations per decision of ours on each machine; empty: not measured yet.
	garbage []float64
}

// machine runs all peers on one machine.
func (t *table) machine(m machine, temp string) error {
	// The peers take up to a second per decision on the largest: it is for our
	// own time.
	var peers []peer
	if m.topology.Online().Size() < largest {
		var err error
		if peers, err = peersOf(m, filepath.Join(temp, m.name)); err != nil {
			return err
		}
	}
	cpus := m.topology.Online().Difference(m.topology.Isolated()).Size()
	for _, percent := range percents {
		fmt.Fprintf(os.Stderr, "bench: %s at %d %%\n", m.name, percent)
		for _, x := range mixes {
			for seed := range t.seeds {
				if err := t.stream(m, peers, stream(x, cpus, percent, t.length, uint64(seed))); err != nil {
					return err
				}
			}
		}
	}
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.machines = append(t.machines, m)
	slices.SortFunc(t.machines, func(a, b machine) int { return a.rank - b.rank })
	return nil
}

// stream gives all peers and our variants the same requests.
func (t *table) stream(m machine, peers []peer, requests []request) error {
	for _, p := range peers {
		r, err := runPeer(m, p, requests)
		if err != nil {
			return err
		}
		t.add(key{m.name, p.name}, r)
	}
	for _, v := range variants {
		r, err := runOurs(m, v, requests)
		if err != nil {
			return err
		}
		t.add(key{m.name, v.name}, r)
	}
	return nil
}

func (t *table) add(k key, r *result) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.results[k] == nil {
		t.results[k] = &result{}
	}
	t.results[k].add(r)
}

// sum adds up the results of one on all machines, or on those that every peer ran on.
func (t *table) sum(who string, besidePeers bool) *result {
	sum := &result{}
	for _, m := range t.machines {
		if r := t.results[key{m.name, who}]; r != nil && (!besidePeers || m.topology.Online().Size() < largest) {
			sum.add(r)
		}
	}
	return sum
}

// text is the page.
func (t *table) text() string {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	var sizes []string
	for _, x := range mixes {
		sizes = append(sizes, fmt.Sprintf("%s %s", x.name, strings.Trim(fmt.Sprint(x.sizes), "[]")))
	}
	return study.Fill(pageText, nil, struct {
		Seeds, Length, Done, Machines int
		Sizes                         string
		Reaches                       []reach
	}{t.seeds, t.length, len(t.machines), len(saved) + len(shapes), strings.Join(sizes, "; "), t.reaches()})
}

// reach is what was aimed at, and what came.
type reach struct{ Figure, Reach, Got, Verdict string }

func met(yes bool) string { return text.Either(yes, "met", "MISSED") }

// reaches compares the targets with the results.
func (t *table) reaches() []reach {
	ours, moved := t.sum(variants[0].name, false), t.sum(variants[1].name, false)
	left, perCrossing := 0.0, "-"
	if ours.crossings > 0 {
		left = float64(moved.crossings) / float64(ours.crossings)
	}
	if moved.recovered > 0 {
		perCrossing = fmt.Sprintf("%.2f", float64(moved.moves)/float64(moved.recovered))
	}
	all := []reach{
		{"avoidable crossings", "0 everywhere", fmt.Sprintf("%d of %d arrivals", ours.avoidable, ours.arrivals), met(ours.avoidable == 0)},
		{"forced crossings left after moves, of those without", "at most 25 %",
			fmt.Sprintf("%.1f %%, at %s moves per recovered crossing", 100*left, perCrossing), met(left <= 0.25)},
	}
	all = append(all, t.halves()...)
	for _, m := range t.machines {
		mine := t.results[key{m.name, variants[0].name}]
		switch cpus := m.topology.Online().Size(); {
		case cpus >= fastestFrom && cpus <= fastestTo:
			fastest, by := time.Duration(0), ""
			for _, who := range peerNames {
				if v := t.results[key{m.name, who}].quantile(0.5); by == "" || v < fastest {
					fastest, by = v, who
				}
			}
			factor := float64(fastest) / float64(max(1, mine.quantile(0.5)))
			all = append(all, reach{"median time per decision, " + m.name, "at least 20x faster than the fastest peer",
				fmt.Sprintf("%.0fx (%s)", factor, by), met(factor >= 20)})
		case cpus >= largest:
			p99 := mine.quantile(0.99)
			all = append(all, reach{"p99 time per decision, " + m.name, "under 1 ms",
				fmt.Sprintf("%.1f us", float64(p99)/1e3), met(p99 < time.Millisecond)})
		}
	}
	if len(t.garbage) > 0 {
		most := slices.Max(t.garbage)
		all = append(all, reach{fmt.Sprintf("garbage in the steady state, %d machines", len(t.garbage)), "none",
			fmt.Sprintf("at most %g allocations per decision, departures included", most), met(most == 0)})
	}
	return all
}

func sharing(r *result) float64 { return float64(r.sharing) / float64(max(1, r.containers)) }

func stranded(r *result) float64 { return float64(r.stranded) / float64(max(1, r.arrivals)) }

// halves compares shared cores and stranded half-cores with the best peer in each, on the machines that every
// peer ran on.
func (t *table) halves() (reaches []reach) {
	var ownNames []string
	for _, v := range variants {
		ownNames = append(ownNames, v.name)
	}
	ours := t.sum(variants[0].name, true)
	arrivals := float64(max(1, ours.arrivals))
	both := 0.0 // what the best peers' figures come to per state
	for _, what := range []struct {
		name string
		get  func(*result) float64
		each float64 // of them per state
	}{
		{"containers sharing a core", sharing, float64(ours.containers) / arrivals},
		{"stranded half-cores", stranded, 1},
	} {
		best, by := t.lowest(peerNames, what.get)
		mine, with := t.lowest(ownNames, what.get)
		both += best * what.each
		verdict := met(mine <= best)
		if mine <= best && what.get(ours) > best {
			verdict += " by another order than the default"
		}
		reaches = append(reaches, reach{what.name, fmt.Sprintf("at most %.3f (%s)", best, by),
			fmt.Sprintf("%.3f (%s), %.3f (%s)", mine, with, what.get(ours), variants[0].name), verdict})
	}
	together, least := float64(ours.sharing+ours.stranded)/arrivals, float64(ours.odd)/arrivals
	return append(reaches, reach{"both of these at once", fmt.Sprintf("%.2f of both together per state", both),
		fmt.Sprintf("at least %.2f for any placer, ours %.2f", least, together),
		text.Either(both < least, "no placement can: shown", "possible")})
}

// lowest finds who has the least of something.
func (t *table) lowest(who []string, get func(*result) float64) (least float64, by string) {
	for _, w := range who {
		if v := get(t.sum(w, true)); by == "" || v < least {
			least, by = v, w
		}
	}
	return least, by
}
