package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/unthrottle/unthrottle/internal/stats"
	"github.com/unthrottle/unthrottle/test/study"
)

// page is the tables of all runs: of this host, then of the guest.
func page(all []piece) string {
	var b strings.Builder
	here, there := split(all)
	real := realOf(here)
	fmt.Fprintf(&b, "%d services on two CPUs, limit %g each; %d rounds of %.0f s for real, %s, %s; one round simulated. Services' p99 in ms: "+
		"the median and the worst, each the median over rounds (lowest to highest). Latencies count from when a request was to be sent; what "+
		"the services' clients, on the same two CPUs, sent late is in them. Together: all groups within %v.\n\n",
		services, limitCPUs, rounds(real), real[0].Seconds, real[0].Machine, real[0].Day(), services*apart)
	table(&b, here)
	if real = realOf(there); len(real) == 0 {
		fmt.Fprintf(&b, "\nNot measured yet: the same on %d CPUs.\n", wide.cpus)
		return b.String()
	}
	fmt.Fprintf(&b, "\nThe same on %d CPUs, in a guest of the [lab](../lab.md) whose clock runs %d times slower than its host's: limit %g each, "+
		"requests of %d times the CPU time; %d of %.0f s, %s, %s.\n\n", wide.cpus, real[0].K, wide.limit(), wide.times, rounds(real), real[0].Seconds,
		real[0].Machine, real[0].Day())
	table(&b, there)
	return b.String()
}

// split parts what ran here from what ran in the guest.
func split(all []piece) (here, there []piece) {
	for _, p := range all {
		if p.HostCPUs == 0 {
			here = append(here, p)
		} else {
			there = append(there, p)
		}
	}
	return here, there
}

// realOf leaves out what was simulated.
func realOf(all []piece) []piece {
	return slices.DeleteFunc(slices.Clone(all), func(p piece) bool { return !p.Real })
}

// table has a row for each setting that was measured.
func table(b *strings.Builder, all []piece) {
	b.WriteString(study.Row("groups come", "limit", "p50", "p99, median service", "p99, worst service",
		"simulated: median", "worst", "CPUs, real") + "\n")
	b.WriteString("|---|---|---|---|---|---|---|---|\n")
	for _, together := range []bool{false, true} {
		for _, set := range settings {
			var p50, middle, worst, cpus []float64
			simulated := []string{"-", "-"}
			for _, p := range all {
				switch {
				case p.Setting != set.name || p.Together != together || len(p.P99) == 0:
				case p.Real:
					p50 = append(p50, stats.Median(p.P50))
					middle = append(middle, stats.Median(p.P99))
					worst, cpus = append(worst, slices.Max(p.P99)), append(cpus, p.CPUs)
				default:
					simulated = []string{fmt.Sprintf("%.0f", stats.Median(p.P99)), fmt.Sprintf("%.0f", slices.Max(p.P99))}
				}
			}
			if len(p50) == 0 && simulated[0] == "-" {
				continue
			}
			when := "by chance"
			if together {
				when = "together"
			}
			b.WriteString(study.Row(when, set.name, spread(p50), spread(middle), spread(worst), simulated[0], simulated[1],
				spread(cpus)) + "\n")
		}
	}
}

// rounds is how many rounds each setting has.
func rounds(real []piece) (most int) {
	for _, p := range real {
		most = max(most, p.Round)
	}
	return most
}

func spread(values []float64) string {
	if len(values) == 0 {
		return "-"
	}
	s := study.SpreadOf(values)
	return fmt.Sprintf("%s (%s to %s)", short(s.Median), short(s.Low), short(s.High))
}

// short is a figure of three digits.
func short(v float64) string {
	if v >= 100 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}
