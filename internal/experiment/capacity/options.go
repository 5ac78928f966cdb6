package capacity

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/text"
)

// Options of Run. Host must be given, but for a URL.
type Options struct {
	Host *cgroup.Host
	// Shape of the service; URL of the user's own instead.
	Shape string
	URL   string
	// Objective to keep.
	Objective Objective
	// remedies to compare, the quota first; nil: all, or quota, burst and pin if
	// Quick.
	Remedies []string
	// Quick ends within five minutes on 2 CPUs: 3 repeats, 4 steps of 5 s.
	Quick bool
	// Repeats, Steps of a search, and Step's length; 0: 5, 5, 6 s.
	Repeats, Steps int
	Step           time.Duration
	// Patience is how often a step is tried again where the generator was the
	// bottleneck; 0: 5.
	Patience int
	Scope    string
	Fair     bool
	Exe      string // what children run; "": this program
	Seed     uint64
	// Record, if set, records the service's cgroup for some seconds. The bench calls
	// it after the searches, while the plain quota carries four fifths of the load
	// that it met.
	Record func(ctx context.Context, group cgroup.Group, load float64, d time.Duration) error
	// Choose records the service's cgroup for so long, and returns what then says what `unthrottle fix` chooses for it. The
	// variant Fix needs it. The bench calls it before the searches, while the plain quota carries four fifths of the load
	// that it met, and asks for the choice when the load is over.
	Choose func(ctx context.Context, group cgroup.Group, d time.Duration) (choice func(context.Context) (Chosen, error), err error)
	// Progress, if set, is called from one goroutine.
	Progress func(Event)
}

// Chosen is what a remedy leaves in force.
type Chosen struct {
	// Name is the remedy with its settings, for people.
	Name  string
	Limit cgroup.Limit
	// CPUs is how many it may use; 0: all.
	CPUs int
}

// Event tells how far a run is.
type Event struct {
	Doing       string
	Done, Total time.Duration // of the whole run, about
}

// Bounds of Options.
const (
	MinRepeats, MaxRepeats = 2, 50
	MinSteps, MaxSteps     = 2, 20
	MinStep, MaxStep       = time.Second, time.Minute
	// minCompared is the repeats from which on an interval means something to us.
	minCompared = 5
)

// recordedShare is the share of the plain quota's own best load at which the bench
// calls Record. At this load the service keeps the objective and is throttled.
const recordedShare = 0.8

// recordedFor is how long Record may look, and recordedMore what the load lasts
// beyond that.
const (
	recordedFor  = 10 * time.Second
	recordedMore = time.Second
)

// levels are the shares of the best load at which points are measured.
var levels = []float64{0.5, 0.8}

func (o Options) filled() (Options, error) {
	set := func(v *int, normal, quick int) {
		if *v == 0 {
			if *v = normal; o.Quick {
				*v = quick
			}
		}
	}
	set(&o.Repeats, minCompared, 3)
	set(&o.Steps, 5, 4)
	if o.Step == 0 {
		if o.Step = 6 * time.Second; o.Quick {
			o.Step = 5 * time.Second
		}
	}
	if len(o.Remedies) == 0 {
		if o.Remedies = remedies(); o.Quick {
			o.Remedies = []string{Quota, Burst, Pin}
		}
	}
	if o.Patience == 0 {
		o.Patience = 5
	}
	if o.Seed == 0 {
		o.Seed = 1
	}
	if o.Objective == (Objective{}) {
		o.Objective = DefaultObjective()
	}
	if o.Progress == nil {
		o.Progress = func(Event) {}
	}
	switch {
	case o.Repeats < MinRepeats || o.Repeats > MaxRepeats:
		return o, fmt.Errorf("%d repeats: give %d to %d", o.Repeats, MinRepeats, MaxRepeats)
	case o.Steps < MinSteps || o.Steps > MaxSteps:
		return o, fmt.Errorf("%d steps: give %d to %d", o.Steps, MinSteps, MaxSteps)
	case o.Step < MinStep || o.Step > MaxStep:
		return o, fmt.Errorf("steps of %s: give %s to %s", text.Duration(o.Step), text.Duration(MinStep), text.Duration(MaxStep))
	case slices.Contains(o.Remedies, Fix) && o.Choose == nil:
		return o, fmt.Errorf("remedy %s: nothing can choose here", Fix)
	case o.Remedies[0] != Quota && slices.Contains(remedies(), o.Remedies[0]): // what is no remedy is told as such
		return o, fmt.Errorf("the first remedy must be %s, which the others are compared with", Quota)
	}
	return o, nil
}
