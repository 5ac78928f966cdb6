package forecast

import (
	"time"

	"github.com/unthrottle/unthrottle/bandwidth"
	"github.com/unthrottle/unthrottle/internal/scenario"
)

// Effect is what forecasts know of one remedy: its rows, what it does to a simulated host, and what it costs there.
// A nil function stands for what its comment says.
type Effect struct {
	// Name is that of Remedy.Name.
	Name string
	// Rows are the settings to forecast for a container.
	Rows func(Container) []Remedy
	// Parts are the remedies that a row combines. Such a row is shown only where it is better than each of them by more than
	// its error. Nil, or a nil result: it combines none.
	Parts func(r Remedy) []Remedy
	// Simulate puts the remedy in force on a host that is as recorded. Remedies that it gives to cgroups are applied
	// afterwards. Nil: it changes nothing there.
	Simulate func(s *scenario.Scenario, at Cgroups, r Remedy)
	// Granted is how many CPUs the container may use on average; nil result: nothing bounds its use. Nil: the limit.
	Granted func(limit float64, r Remedy) *float64
	// Text is the remedy with its settings, for people. Nil: the name.
	Text func(limit float64, r Remedy) string
	// Parameters are its settings as JSON shows them, with units in their names. Nil: none.
	Parameters func(r Remedy) map[string]any
	// Price says what it costs. Nil: nothing.
	Price func(r Remedy, p Pricing) string
	// Change orders remedies by how much they change for others; larger is more. A burst keeps the limit and its period.
	// A narrow cpuset leaves the CPUs to others, a pin does not. A larger limit is a promise to the container, and no
	// limit is one at the cost of all others.
	Change int
	// NoQuota: it leaves no quota that could throttle.
	NoQuota bool
	// Modelled: other threads take the work than in the recording, so that its rows are no replay.
	Modelled bool
	// InCode: it is a change of the program's code.
	InCode bool
}

// Container is what an Effect makes its rows of.
type Container struct {
	// Limit is the least limit along the ancestors, in CPUs; Quota is the same as the kernel has it.
	Limit float64
	Quota bandwidth.Limit
	// CPUs are those to pin to.
	CPUs int
	// SchedExt says that the kernel can narrow by sched_ext.
	SchedExt bool
}

// Cgroups are indices in the cgroups of a simulated host: the container's own, the one whose quota binds it, and those of
// its pod.
type Cgroups struct {
	Container, Binding int
	Pods               []int
}

// Pricing is what the price of a row is made of.
type Pricing struct {
	Limit float64
	// Used is the CPU time used per second, Widest the most CPUs at once.
	Used   float64
	Widest int
	// Pool is the name of the pool that is resized; "": all of them.
	Pool string
}

// effect returns the effect of a remedy.
func (r Remedy) effect() *Effect {
	if r.of != nil {
		return r.of
	}
	for _, e := range effects {
		if e.Name == r.Name {
			return e
		}
	}
	return &Effect{Name: r.Name}
}

// Effects returns what a forecast has rows of by default: the remedies that a quota has, in the order of the table.
func Effects() []*Effect {
	return []*Effect{PinEffect, NarrowEffect, BurstEffect, PeriodEffect, WeightEffect, RaiseEffect}
}

// effects are all that are known by name.
var effects = append(Effects(), &Effect{Name: None, Text: func(float64, Remedy) string { return "leave it" }},
	limitEffect, poolsEffect, shardsEffect, budgetEffect)

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
