package agreement

import (
	"fmt"

	"github.com/unthrottle/unthrottle/internal/scenario"
)

// What others may have of the CPUs in a real run that is compared.
const (
	MostSteal  = 0.01 // the hypervisor
	MostOthers = 0.03 // other processes
)

// Result is one real run of a draw.
type Result struct {
	Seed    uint64           `json:"seed"`
	Key     string           `json:"key"`     // of the draw
	Machine Machine          `json:"machine"` // where it ran
	Seconds float64          `json:"seconds"` // asked for
	Noise   Noise            `json:"noise"`
	Outcome scenario.Outcome `json:"outcome"`
	// WakeCosts, if it is no run of a draw but a calibration.
	WakeCosts *scenario.WakeCosts `json:"wake_costs,omitempty"`
}

// Noise is what others had of the CPUs meanwhile, each 0 to 1.
type Noise struct {
	Steal  float64 `json:"steal"`  // the hypervisor
	Others float64 `json:"others"` // other processes
}

// TooMuch says why a run is not compared; "" if it is.
func (n Noise) TooMuch() string {
	switch {
	case n.Steal > MostSteal:
		return fmt.Sprintf("the hypervisor took %.1f %% of the CPUs, above %g %%", 100*n.Steal, 100*MostSteal)
	case n.Others > MostOthers:
		return fmt.Sprintf("other processes took %.1f %% of the CPUs, above %g %%", 100*n.Others, 100*MostOthers)
	}
	return ""
}
