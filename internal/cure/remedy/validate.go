package remedy

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/topology"
)

// validate refuses settings that make no sense, or that this host does not have.
func (p *planner) validate() error {
	r := p.r
	for _, n := range []struct {
		name  string
		value float64
	}{
		{"limit in CPUs", r.To}, {"cap in CPUs", r.Cap}, {"credit in seconds", r.Credit.Seconds()},
		{"factor", r.Factor}, {"number of CPUs", float64(r.CPUs)},
		{"burst in seconds", r.Burst.Seconds()}, {"period in seconds", r.Period.Seconds()},
	} {
		if math.IsNaN(n.value) || math.IsInf(n.value, 0) || n.value < 0 {
			return p.refuse(fmt.Sprintf("a %s of %g makes no sense", n.name, n.value), "give one above 0")
		}
	}
	asked := cgroup.Unlimited()
	asked.Period, asked.Burst = cmp.Or(r.Period, asked.Period), r.Burst
	if err := asked.CheckBounds(); err != nil {
		return p.refuse(err.Error(), "give whole microseconds, and a period of 1 ms to 1 s")
	}
	hybrid := r.Kind == Pin && r.Class == ClassHybrid
	if r.Class != "" && !hybrid && (r.Kind != Pin || r.Class != ClassExclusive) || r.Strict && !hybrid && r.Kind != Secondary {
		return p.refuse(fmt.Sprintf("there is no class %.40q, or none that is strict", r.Class),
			"choose exclusive or hybrid; only a hybrid pin and a secondary can be strict")
	}
	if (r.FullCores || r.IdleSiblings) && r.Kind != Pin || r.FullCores && r.IdleSiblings {
		return p.refuse("whole cores and idle siblings are for CPUs of its own, and not both at once",
			"give one of --full-cores and --idle-siblings to a pin")
	}
	if r.Shares && r.Kind != Pin {
		return p.refuse("it has no CPUs of its own to lend", "only a pin lends")
	}
	if r.Interrupts != nil && r.Kind != Pin {
		return p.refuse("it has no CPUs of its own to keep interrupts off", "only a pin takes --irqs")
	}
	if r.Via != "" && (r.Kind != Narrow || !slices.Contains(Vias, r.Via)) {
		return p.refuse(fmt.Sprintf("there is no %.40q", r.Via), "leave --via out, or choose "+strings.Join(Vias, ", "))
	}
	if (r.Cap > 0 || r.Credit > 0) && (r.Kind != Narrow || r.Via == ViaCPUSet) {
		return p.refuse("only the scheduler of sched_ext saves credit and keeps a fraction of a CPU",
			"give them to narrow --via sched_ext, or leave them out")
	}
	if r.Reserve == nil {
		return nil
	}
	if err := CheckReserve(p.f.Machine, *r.Reserve); err != nil {
		return p.refuse(err.Error(), "reserve CPUs that are online")
	}
	return nil
}

// CheckReserve refuses a reserve that a user names and that has CPUs which a machine has not, or which are offline.
func CheckReserve(m topology.Machine, reserve cpuset.CPUSet) error {
	if absent := reserve.Difference(m.Online()); !absent.IsEmpty() {
		return fmt.Errorf("the reserve names CPUs %s, which are not there or offline: %s are online", absent, m.Online())
	}
	return nil
}
