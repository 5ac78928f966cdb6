package report

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/unthrottle/unthrottle/scenario"
	"github.com/unthrottle/unthrottle/simulate"
)

// Simulation is what `unthrottle simulate` shows: one scenario, run with one
// or more seeds.
type Simulation struct {
	Scenario string `json:"scenario"` // the file's name
	About    string `json:"about"`
	Kernel   string `json:"kernel"`
	Era      string `json:"era"`
	CPUs     int    `json:"cpus"`
	HZ       int    `json:"hz"`     // 0: continuous
	Seed     uint64 `json:"seed"`   // the first
	Repeat   int    `json:"repeat"` // runs, with seeds from Seed on
	// Outcome has the median of each figure over the runs; with an even number
	// of them the lower of the two in the middle.
	scenario.Outcome
	// Lowest and Highest of each figure; nil for a single run.
	Lowest  *scenario.Outcome `json:"lowest"`
	Highest *scenario.Outcome `json:"highest"`

	Timeline []simulate.Strip   `json:"-"`
	Explain  []simulate.Account `json:"-"`
}

// SimulateOptions of Simulate.
type SimulateOptions struct {
	ASCII bool // no block characters
}

// Summarize fills a simulation's figures from its runs, at least one.
func (s *Simulation) Summarize(runs []scenario.Outcome) {
	s.Repeat = len(runs)
	s.Outcome = scenario.Quantile(runs, 0.5)
	if len(runs) > 1 {
		low, high := scenario.Quantile(runs, 0), scenario.Quantile(runs, 1)
		s.Lowest, s.Highest = &low, &high
	}
}

// Simulate writes a simulation for people.
func Simulate(w io.Writer, s Simulation, o SimulateOptions) error {
	var b strings.Builder
	hz := strconv.Itoa(s.HZ) + " Hz"
	if s.HZ == 0 {
		hz = "continuous accounting"
	}
	fmt.Fprintf(&b, "%s: %s\n", shown(s.Scenario), shown(s.About))
	fmt.Fprintf(&b, "Simulated: %s, Linux %s (era %s), %s, %s s, %s from %d.\n", counted(s.CPUs, "CPU"), shown(s.Kernel), s.Era, hz,
		trimmed(s.Seconds), counted(s.Repeat, "seed"), s.Seed)
	if s.Repeat > 1 {
		b.WriteString("Figures are medians, with the lowest and the highest of all runs.\n")
	}
	b.WriteString("\n")
	simulatedCgroups(&b, s)
	simulatedWorkloads(&b, s)
	for _, strip := range s.Timeline {
		simulatedStrip(&b, strip, bars{o.ASCII})
	}
	for _, account := range s.Explain {
		explained(&b, account)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// spread is a figure, with its range where there were several runs.
func (s *Simulation) spread(figure func(*scenario.Outcome) (float64, bool), decimals int) string {
	text := func(o *scenario.Outcome) string {
		v, ok := figure(o)
		if !ok {
			return "-"
		}
		return strconv.FormatFloat(v, 'f', decimals, 64)
	}
	mid := text(&s.Outcome)
	if s.Lowest == nil {
		return mid
	}
	if low, high := text(s.Lowest), text(s.Highest); low != mid || high != mid {
		return fmt.Sprintf("%s (%s-%s)", mid, low, high)
	}
	return mid
}

func simulatedCgroups(b *strings.Builder, s Simulation) {
	if len(s.Cgroups) == 0 {
		return
	}
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "cgroup\tthrottled\tof active\tperiods\tthrottled s\tstopped s\tCPUs used\tmost at once\t")
	for _, name := range slices.Sorted(maps.Keys(s.Cgroups)) {
		of := func(decimals int, value func(scenario.CgroupOutcome) *float64) string {
			return s.spread(func(o *scenario.Outcome) (float64, bool) { return measured(value(o.Cgroups[name])) }, decimals)
		}
		number := func(v float64) *float64 { return &v }
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", name,
			of(0, func(c scenario.CgroupOutcome) *float64 { return number(float64(c.ThrottledPeriods)) }),
			of(0, func(c scenario.CgroupOutcome) *float64 {
				if c.ActivePeriods == nil {
					return nil
				}
				return number(float64(*c.ActivePeriods))
			}),
			of(0, func(c scenario.CgroupOutcome) *float64 { return number(float64(c.Periods)) }),
			of(3, func(c scenario.CgroupOutcome) *float64 { return &c.ThrottledSeconds }),
			of(3, func(c scenario.CgroupOutcome) *float64 { return c.StoppedSeconds }),
			of(3, func(c scenario.CgroupOutcome) *float64 { return number(c.UsageSeconds / s.Seconds) }),
			widest(s.Cgroups[name].Width))
	}
	t.Flush() // writes to memory: cannot fail
	b.WriteString("\n")
}

// measured says whether there is a figure.
func measured(v *float64) (float64, bool) {
	if v == nil {
		return 0, false
	}
	return *v, true
}

func widest(width []scenario.Width) string {
	if len(width) == 0 {
		return "-"
	}
	return strconv.Itoa(width[len(width)-1].CPUs)
}

func simulatedWorkloads(b *strings.Builder, s Simulation) {
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "workload\tcount\tp50\tp90\tp99\tmax ms\trefused\tunfinished\tCPUs used\t")
	for _, name := range slices.Sorted(maps.Keys(s.Workloads)) {
		of := func(decimals int, value func(scenario.WorkloadOutcome) *float64) string {
			return s.spread(func(o *scenario.Outcome) (float64, bool) {
				return measured(value(o.Workloads[name]))
			}, decimals)
		}
		number := func(v float64) *float64 { return &v }
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", name,
			of(0, func(w scenario.WorkloadOutcome) *float64 { return number(float64(w.Count)) }),
			of(2, func(w scenario.WorkloadOutcome) *float64 { return w.P50 }),
			of(2, func(w scenario.WorkloadOutcome) *float64 { return w.P90 }),
			of(2, func(w scenario.WorkloadOutcome) *float64 { return w.P99 }),
			of(2, func(w scenario.WorkloadOutcome) *float64 { return w.Max }),
			of(0, func(w scenario.WorkloadOutcome) *float64 { return number(float64(w.Refused)) }),
			of(0, func(w scenario.WorkloadOutcome) *float64 { return number(float64(w.Unfinished)) }),
			of(3, func(w scenario.WorkloadOutcome) *float64 {
				if w.CPUSeconds == nil {
					return nil
				}
				return number(*w.CPUSeconds / s.Seconds)
			}))
	}
	t.Flush()
}
