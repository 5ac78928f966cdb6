package main

import (
	"runtime"

	"github.com/unthrottle/unthrottle/placement"
)

// garbage is the number of allocations of one of our decisions on a machine that has been full for a while.
// It includes the departures that make room. Nothing else may run meanwhile.
func garbage(m machine) (float64, error) {
	n, _, err := placement.NewNode(placement.State{Machine: m.topology})
	if err != nil {
		return 0, err
	}
	cpus := m.topology.Online().Difference(m.topology.Isolated()).Size()
	const warm, counted = 3000, 3000
	requests := stream(mixes[1], cpus, 97, warm+counted, 1)
	handles := make([]placement.Handle, len(requests))
	var before, after runtime.MemStats
	for i, r := range requests {
		if i == len(requests)-counted {
			runtime.ReadMemStats(&before)
		}
		for _, gone := range r.leave {
			n.Leave(handles[gone])
		}
		if handles[i], err = n.Arrive(placement.Container{CPUs: float64(r.size)}); err != nil {
			return 0, err
		}
	}
	runtime.ReadMemStats(&after)
	return float64(after.Mallocs-before.Mallocs) / counted, nil
}
