package simulate

import (
	"fmt"

	"github.com/unthrottle/unthrottle/internal/scenario"
)

// Unmodelled is the error for a part of a scenario that the simulator does not have. Without it the figures
// would be those of another scenario.
type Unmodelled struct{ Key, What string }

func (e *Unmodelled) Error() string {
	return fmt.Sprintf("%s: %s: not simulated: leave it out, or run it for real ('unthrottle simulate --real')", e.Key, e.What)
}

// unmodelled names the first part that the simulator does not have; nil: it has all.
func unmodelled(s *scenario.Scenario) error {
	for i := range s.Workloads {
		w := &s.Workloads[i]
		if _, ok := starts[w.Kind]; ok {
			continue
		}
		what := fmt.Sprintf("%.20q", w.Kind)
		if w.Kind == scenario.JVM {
			what = "jvm, a real Java virtual machine"
		}
		return &Unmodelled{"workloads." + w.Name + ".kind", what}
	}
	return nil
}
