package report

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/unthrottle/unthrottle/bandwidth"
	"github.com/unthrottle/unthrottle/internal/sim/simulate"
	"github.com/unthrottle/unthrottle/internal/text"
)

// Simulation is what `unthrottle simulate` shows.
type Simulation struct {
	Trial
	Rules    bandwidth.Release   `json:"-"`
	Timeline []simulate.Timeline `json:"-"`
	Explain  []simulate.Account  `json:"-"`
}

// SimulateOptions of Simulate.
type SimulateOptions struct {
	ASCII bool // no block characters
}

// Simulate writes a simulation for people.
func Simulate(w io.Writer, s Simulation, o SimulateOptions) error {
	var b strings.Builder
	hz := strconv.Itoa(*s.HZ) + " Hz"
	if *s.HZ == 0 {
		hz = "continuous accounting"
	}
	fmt.Fprintf(&b, "%s: %s\n", shown(s.Scenario), shown(s.About))
	fmt.Fprintf(&b, "Simulated: %s, Linux %s (bandwidth rules of %s), %s, %s s, %s from %d.\n", text.Count(s.CPUs, "CPU"), shown(s.Kernel), s.Rules, hz,
		trimmed(s.Seconds), text.Count(s.Repeat, "seed"), s.Seed)
	if s.Repeat > 1 {
		b.WriteString("Figures are medians, with the lowest and the highest of all runs.\n")
	}
	b.WriteString("\n")
	trialCgroups(&b, &s.Trial)
	trialWorkloads(&b, &s.Trial)
	for _, timeline := range s.Timeline {
		simulatedTimeline(&b, timeline, bars{o.ASCII})
	}
	for _, account := range s.Explain {
		explained(&b, account)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
