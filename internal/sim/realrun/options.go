package realrun

import (
	"time"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/scenario"
)

// Prefix begins the name of the sandbox of a run.
const Prefix = "unthrottle-run-"

// Options of Run. Host must be given.
type Options struct {
	Host *cgroup.Host
	// Scope is the cgroup below which the run's own is made; "": the highest that
	// can be seen.
	Scope string
	// Fair leaves the run's own cgroup at the ordinary weight; else other load
	// counts as little as the kernel allows.
	Fair bool
	Seed uint64
	Exe  string // what children run; "": this program
	// LateAfter is what a load generator may add to one request in a hundred: where it adds more, nothing is said of its service. 0: 5 ms.
	LateAfter time.Duration
	// Probe, if any, measures what the kernel does not count.
	Probe Probe
}

// Probe measures what the kernel's counters do not tell.
type Probe interface {
	// Watch makes ready to measure cgroups, by their names in the scenario.
	Watch(cgroups map[string]cgroup.Group) (Watching, error)
}

// Watching is a probe at work.
type Watching interface {
	// Begin is called when the time measured begins, End when it ends.
	Begin() error
	End() (map[string]Measured, error)
	// Close ends it at any time; a second call does nothing.
	Close()
}

// Measured is what a probe tells of one cgroup; nil: not measured.
type Measured struct {
	ActivePeriods  *uint64
	StoppedSeconds *float64
	Width          []scenario.Width
}

// Result of a run.
type Result struct {
	Outcome scenario.Outcome
	// Notes on what may have disturbed it, and what of the file did not matter.
	Notes []string
}
