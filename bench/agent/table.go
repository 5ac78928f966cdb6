package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
)

// result is what one variant cost in one scenario.
type result struct {
	name string
	cost float64 // CPU-seconds per 100 containers per minute
	rss  int64   // bytes
	// polled is how many cgroups were read at 10 Hz at the end; -1: not known.
	polled int
}

type table struct {
	rows    []string
	targets []string
}

func (t *table) add(s scenario, results []result) {
	cost := map[string]float64{}
	for _, r := range results {
		cost[r.name] = r.cost
	}
	for i, r := range results {
		where := s.String()
		if i > 0 {
			where = ""
		}
		bare := map[string]string{variantOnce: variantBareOnce, variantHot: variantBareHot}[r.name]
		ratio := "-"
		if bare != "" && cost[bare] > 0 {
			ratio = fmt.Sprintf("%.2f", r.cost/cost[bare])
			t.target(s, r.name+": within 2x of the bare loop", r.cost/cost[bare], 2)
		}
		polled := "-"
		if r.polled >= 0 {
			polled = strconv.Itoa(r.polled)
		}
		t.rows = append(t.rows, fmt.Sprintf("%s\t%s\t%s\t%.3f\t%s\t%.1f", where, r.name, polled, r.cost, ratio, float64(r.rss)/1e6))
		if r.name != variantHot {
			continue
		}
		bound := 1.5
		if s.stopped*10 <= s.cgroups {
			bound = 0.5
		}
		t.target(s, r.name+": CPU-s per 100 containers per minute", r.cost, bound)
		if s.cgroups == 200 {
			t.target(s, r.name+": resident MB", float64(r.rss)/1e6, 25)
		}
	}
}

func (t *table) target(s scenario, what string, is, bound float64) {
	verdict := "met"
	if is > bound {
		verdict = "MISSED"
	}
	t.targets = append(t.targets, fmt.Sprintf("%v\t%s\t%.3g\tat most %.3g\t%s", s, what, is, bound, verdict))
}

func (t *table) print(w io.Writer) {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "SCENARIO\tWHO\tAT 10 HZ\tCPU-S/100/MIN\tX BARE LOOP\tRSS MB")
	fmt.Fprintln(tw, strings.Join(t.rows, "\n"))
	fmt.Fprintln(tw, "\nSCENARIO\tTARGET\tIS\tBOUND\tVERDICT")
	fmt.Fprintln(tw, strings.Join(t.targets, "\n"))
	_ = tw.Flush()
}
