// Package simulate writes what `unthrottle simulate` computed.
package simulate

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/unthrottle/unthrottle/bandwidth"
	"github.com/unthrottle/unthrottle/internal/sim/simulate"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/figure"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/page"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/scenariorun"
)

// Simulation is what `unthrottle simulate` shows.
type Simulation struct {
	scenariorun.Run
	// Rules are the release from which the simulated bandwidth control holds.
	Rules    bandwidth.Release   `json:"-"`
	Timeline []simulate.Timeline `json:"-"`
	Explain  []simulate.Account  `json:"-"`
}

// Write writes a simulation for people.
func Write(w io.Writer, s Simulation, style page.Style) error {
	var b strings.Builder
	hz := strconv.Itoa(*s.HZ) + " Hz"
	if *s.HZ == 0 {
		hz = "continuous accounting"
	}
	fmt.Fprintf(&b, "%s: %s\n", text.Shown(s.Scenario), text.Shown(s.About))
	fmt.Fprintf(&b, "Simulated: %s, Linux %s (bandwidth rules of %s), %s, %s s, %s from %d.\n",
		text.Count(s.CPUs, "CPU"), text.Shown(s.Kernel), s.Rules, hz,
		figure.Trimmed(s.Seconds), text.Count(s.Repeat, "seed"), s.Seed)
	if s.Repeat > 1 {
		b.WriteString("Figures are medians, with the lowest and the highest of all runs.\n")
	}
	b.WriteString("\n")
	scenariorun.Cgroups(&b, &s.Run, style)
	scenariorun.Workloads(&b, &s.Run, style)
	for _, t := range s.Timeline {
		drawTimeline(&b, t, style)
	}
	for _, account := range s.Explain {
		explainPeriod(&b, account, style)
	}
	return style.Send(w, b.String())
}
