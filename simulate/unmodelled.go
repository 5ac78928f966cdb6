package simulate

import (
	"fmt"

	"github.com/unthrottle/unthrottle/scenario"
)

// Unmodelled is a part of a scenario that the simulator does not have. Leaving
// it out silently would give the figures of another scenario.
type Unmodelled struct{ Key, What string }

func (e *Unmodelled) Error() string {
	return fmt.Sprintf("%s: %s: not simulated: leave it out, or run it for real ('unthrottle run')", e.Key, e.What)
}

// unmodelled names the first part that is not simulated; nil: all is.
func unmodelled(s *scenario.Scenario) error {
	for i := range s.Workloads {
		w := &s.Workloads[i]
		key := "workloads." + w.Name
		switch {
		case w.Kind == scenario.GC || w.Kind == scenario.JVM || w.Kind == scenario.Kernel:
			return &Unmodelled{key, "kind " + string(w.Kind)}
		case len(w.Phases) > 0:
			return &Unmodelled{key, "load that changes (phases, spike)"}
		}
		if w.Server == nil {
			continue
		}
		if part := beyondSimple(w.Server); part != "" {
			return &Unmodelled{key, part}
		}
	}
	return nil
}

// beyondSimple is what a service has beyond one pool and one class; "" if
// nothing.
func beyondSimple(s *scenario.Server) string {
	if _, _, ok := s.Simple(); ok {
		return ""
	}
	switch {
	case s.IO != 1:
		return "more than one I/O thread (io)"
	case len(s.Pools) > 1 || len(s.Classes) > 1:
		return "several pools or classes"
	case len(s.Pools) == 0 || s.Classes[0].Pool < 0:
		return "requests served by the I/O thread"
	case s.Shared > 0 || s.Classes[0].Touches > 0 || s.Classes[0].Locked > 0:
		return "shared data and locks"
	case s.Inflate > 0:
		return "work that inflates"
	case s.Timeout > 0 || s.Retries.Max > 0:
		return "clients' timeouts and retries"
	case s.Pools[0].PerThread:
		return "a queue per thread"
	}
	return "arrivals in bursts or with equal gaps"
}
