package demo

import (
	"fmt"
	"slices"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/load/sandbox"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/placement"
	"github.com/unthrottle/unthrottle/topology"
)

// quotaCPUs is the demo's quota: 2 CPUs, 1 where fewer than 4 can be used.
func quotaCPUs(usable int) int {
	if usable < 4 {
		return 1
	}
	return 2
}

// burners is how many threads burn: seed 003's 32, and 2 per CPU of the host
// where that is more, so that every CPU is wanted.
func burners(online int) int { return max(32, 2*online) }

// idleSlack is how much busier than the n-th quietest a CPU may be to count as
// quiet: within it, lying close together matters more.
const idleSlack = 0.10

// choosePinned chooses n of the usable CPUs: of the quietest ones those that lie
// together. busy is the use of each CPU over a moment, 0 to 1. A CPU without an entry
// counts as idle.
func choosePinned(m topology.Machine, allowed cpuset.CPUSet, busy map[int]float64, n int) (cpuset.CPUSet, error) {
	free := allowed.Intersection(m.Online()).Difference(m.Isolated())
	loads := make([]float64, 0, free.Size())
	for _, cpu := range free.UnsortedList() {
		loads = append(loads, busy[cpu])
	}
	slices.Sort(loads)
	if len(loads) >= n {
		quiet := make([]int, 0, free.Size())
		for _, cpu := range free.UnsortedList() {
			if busy[cpu] <= loads[n-1]+idleSlack {
				quiet = append(quiet, cpu)
			}
		}
		free = cpuset.New(quiet...)
	}
	if free.Size() == n {
		return free, nil // a placement would keep one for the shared pool
	}
	placed, err := placement.Place(placement.State{Machine: m, Unavailable: m.Present().Difference(free)},
		placement.Container{CPUs: float64(n)})
	return placed.Own, err
}

// checkRoom checks that a quota of n CPUs can bind in the sandbox, and that no limit
// above it binds first.
func checkRoom(box *sandbox.Sandbox, n int) error {
	if cpus := box.CPUs(); cpus.Size() <= n {
		return &NotMeasurable{
			What:   fmt.Sprintf("%d CPU(s) (%q) can be used: a quota of %d would never bind", cpus.Size(), cpus, n),
			WayOut: "run it on a host with more CPUs, or leave --parent out",
		}
	}
	levels, err := box.Levels()
	if err != nil {
		return err
	}
	if least, limited, at := cgroup.Effective(levels); limited && least < float64(n)+0.5 {
		return &NotMeasurable{
			What: fmt.Sprintf("cgroup %s has a limit of %.2f CPUs itself, which would stop the demo in every variant",
				text.EscapePath(at), least),
			WayOut: "name a cgroup without a limit with --parent",
		}
	}
	return nil
}
