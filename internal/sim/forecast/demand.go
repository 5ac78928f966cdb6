package forecast

import (
	"fmt"
	"math"
	"slices"
	"time"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/bandwidth"
	"github.com/unthrottle/unthrottle/internal/scenario"
	"github.com/unthrottle/unthrottle/internal/sim/simulate"
)

// MostPeriods is how many periods Demand tells at most.
const MostPeriods = simulate.MaxTimeline

// Demand is what a container wants in one period.
type Demand struct {
	// Work is CPU time.
	Work time.Duration
	// Width is the most CPUs in use, of a mean over a fiftieth of the period, rounded up.
	Width int
}

// Demand replays the container alone on a host of so many CPUs, with a quota that it cannot spend, and returns what it
// used in each whole period. So neither the recorded host's few CPUs nor its other work bound the width. A thread that
// is bound to some of the
// recorded CPUs stays there. Work that an answer brings about, such as a client's next request, comes as it was recorded.
func (l *Load) Demand(cpus int, period time.Duration, seed uint64) ([]Demand, error) {
	if cpus < l.recordedScenario.Host.CPUs || cpus > scenario.MaxCPUs {
		return nil, fmt.Errorf("%d CPUs: give those of the recorded host, %d, to %d", cpus, l.recordedScenario.Host.CPUs, scenario.MaxCPUs)
	}
	s, replay := l.recordedScenario, l.replay
	all := s.Host.CPUs
	s.Host.CPUs = cpus
	s.Cgroups = slices.Clone(s.Cgroups)
	for i := range s.Cgroups {
		cgroup := &s.Cgroups[i]
		cgroup.Limit = bandwidth.Limit{Quota: bandwidth.NoQuota, Period: period}
		if cgroup.CPUs.Size() >= all {
			cgroup.CPUs = cpuset.New()
		}
	}
	// The kernel bounds a quota by none of these CPUs' time, and a group without one has no periods.
	s.Cgroups[l.container].Limit.Quota = 2 * time.Duration(cpus) * period
	s.Workloads = s.Workloads[:l.own]
	threads := 0
	for i := range s.Workloads {
		threads += s.Workloads[i].Threads
	}
	replay.Threads = slices.Clone(replay.Threads[:threads])
	for i := range replay.Threads {
		if t := &replay.Threads[i]; t.Allowed.Size() >= all {
			t.Allowed = cpuset.New()
		}
	}
	replay.Phase = nil
	r, err := simulate.RunReplay(s, &replay, simulate.Options{Seed: seed, Timeline: MostPeriods})
	if err != nil {
		return nil, err
	}
	var wants []Demand
	for _, line := range r.Timeline {
		if line.Cgroup != s.Cgroups[l.container].Name {
			continue
		}
		for cells := range slices.Chunk(line.Cells, simulate.CellsPerPeriod) {
			if line.Start+time.Duration(len(wants)+1)*period > l.window {
				break // the recording ended before this period did
			}
			wants = append(wants, l.demandOf(cells, period/simulate.CellsPerPeriod))
		}
	}
	return wants, nil
}

// demandOf adds up the cells of one period.
func (l *Load) demandOf(cells []simulate.TimelineCell, length time.Duration) (d Demand) {
	const exact = 1e-6 // cells are not a whole number of nanoseconds
	for _, c := range cells {
		d.Work += l.chargedFor(c.Used)
		d.Width = max(d.Width, int(math.Ceil(float64(c.Used)/float64(length)-exact)))
	}
	return d
}
