package main

import (
	"fmt"
	"strings"

	"github.com/unthrottle/unthrottle/bench/study"
	"github.com/unthrottle/unthrottle/internal/scenario"
)

// seed003 are the scenarios of that seed's experiment, which are run at two K.
var seed003 = []string{"burners", "cpuset"}

// seed003 is the page's table of it: published are 150 of 161 periods with the quota and 13 of 154 with a cpuset too.
func (p *page) seed003() {
	p.Line("\n## Seed 003 in milliseconds\n\n32 threads burn beside a sleeper of 10 ms under a limit of %d CPUs of %d, %d s each, at two K. Published: 150 of 161 periods throttled, sleeps of 96 to 117 ms and a second", wide.Limit, wide.CPUs, scenarioSeconds)
	p.Line("mode around 190 ms; with a cpuset of the limit 13 of 154. Equal figures of two K say that slowing is enough.")
	p.Line("A period has about as many short sleeps as long ones, so that half of them is the one or the other by chance; p90 is not.")
	t := p.Table("limit", "K", "runs", "throttled periods, each run", "p90 of the sleeps, ms", "p99")
	for _, name := range seed003 {
		for _, h := range []host{faster, wide} {
			var throttled []string
			var p90, p99 []float64
			for repeat := 1; repeat <= scenarioRepeats; repeat++ {
				r := p.have.find(scenarioPiece(h, name, repeat))
				if r == nil {
					continue
				}
				c := r.Outcome.Cgroups["a"]
				throttled = append(throttled, fmt.Sprintf("%d of %d", c.ThrottledPeriods, c.Periods))
				p90, p99 = withFigure(p90, p99, r.Outcome.Workloads["sleeper"].Latencies)
			}
			if len(throttled) == 0 {
				t.Rowf("%s | %d | 0 | %s", seed003Names[name], h.K, notYet)
				continue
			}
			t.Rowf("%s | %d | %d | %s | %s | %s", seed003Names[name], h.K, len(throttled), strings.Join(throttled, ", "), spread(p90), spread(p99))
		}
	}
}

// seed003Names are the limits on the page.
var seed003Names = map[string]string{"burners": "quota", "cpuset": "quota, and a cpuset of its size"}

// withFigure adds what a run counted.
func withFigure(p90, p99 []float64, l scenario.Latencies) (_, _ []float64) {
	if l.P90 != nil {
		p90 = append(p90, *l.P90)
	}
	if l.P99 != nil {
		p99 = append(p99, *l.P99)
	}
	return p90, p99
}

// spread is the median of several runs with the least and the largest; "-" without any.
func spread(all []float64) string {
	s := study.SpreadOf(all)
	switch s.Rounds {
	case 0:
		return "-"
	case 1:
		return fmt.Sprintf("%.0f", s.Median)
	}
	return fmt.Sprintf("%.0f (%.0f to %.0f)", s.Median, s.Low, s.High)
}
