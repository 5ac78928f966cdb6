package forecast

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/bandwidth"
	"github.com/unthrottle/unthrottle/internal/see/recording"
	"github.com/unthrottle/unthrottle/internal/sim/scenario"
	"github.com/unthrottle/unthrottle/internal/sim/simulate"
	"github.com/unthrottle/unthrottle/topology"
)

// maxOwners is how many others have a cgroup of their own; the rest share one.
const maxOwners = 64

// maxPlaces bounds the pools of cgroups below the container that are told apart.
const maxPlaces = 512

// assembly is a recording on its way to a scenario with a replay.
type assembly struct {
	*Builder
	l       *Load
	index   map[int]int // by CPU as the host numbers them
	paths   []string    // by cgroup of the scenario
	ids     map[uint64]int
	threads map[int]int // by thread of the recording: of the replay
}

func (b *Builder) assemble(l *Load) error {
	host, err := hostOf(&b.h)
	if err != nil {
		return err
	}
	a := &assembly{Builder: b, l: l, index: map[int]int{}, ids: map[uint64]int{}, threads: map[int]int{}}
	for i, c := range b.h.Host.CPUs.List() {
		a.index[c] = i
	}
	if b.h.Host.HZ == nil {
		l.note("ticks per second were not recorded: %d are taken", usualHZ)
	}
	l.Scenario = scenario.Scenario{Duration: l.Window, Host: host}
	if err := a.cgroups(); err != nil {
		return err
	}
	a.container()
	for _, p := range b.measured {
		if p.Threads > 0 {
			l.Pools = append(l.Pools, p)
		}
	}
	a.neighbours()
	a.tell()
	return nil
}

// mapped are the simulator's numbers of CPUs.
func (a *assembly) mapped(set cpuset.CPUSet) cpuset.CPUSet {
	var all []int
	for _, c := range set.List() {
		if i, ok := a.index[c]; ok {
			all = append(all, i)
		}
	}
	return cpuset.New(all...)
}

// cgroup adds one.
func (a *assembly) cgroup(parent int, level *recording.Level) (int, error) {
	s := &a.l.Scenario
	c := scenario.Cgroup{Name: fmt.Sprintf("%d", len(s.Cgroups)), Parent: parent, Limit: limitOf(level), Weight: scenario.DefaultWeight}
	if level.Weight > 0 {
		c.Weight = min(10_000, level.Weight)
	}
	if err := c.Limit.Check(&s.Host.Rules); err != nil {
		return 0, fmt.Errorf("the recording's cgroup %q: %w", level.Path, err)
	}
	phase := bandwidth.Never
	if at, ok := a.phases[level.ID]; ok {
		phase = time.Duration(at) % c.Limit.Period
	}
	s.Cgroups = append(s.Cgroups, c)
	a.l.Replay.Phase = append(a.l.Replay.Phase, phase)
	a.paths = append(a.paths, level.Path)
	a.ids[level.ID] = len(s.Cgroups) - 1
	return len(s.Cgroups) - 1, nil
}

// cgroups are the container's with its ancestors, and those below it that have a quota.
func (a *assembly) cgroups() error {
	levels := slices.Clone(a.h.Levels)
	if len(levels) == 0 {
		levels = []recording.Level{{Path: a.h.Target.Path, ID: a.h.Target.ID}}
	}
	parent, least := -1, 0.0
	for i := len(levels) - 1; i >= 0; i-- {
		level := &levels[i]
		if level.Path == "/" && i > 0 || len(a.l.Scenario.Cgroups) >= scenario.MaxDepth-1 && i > 0 {
			continue
		}
		at, err := a.cgroup(parent, level)
		if err != nil {
			return err
		}
		parent, a.l.Container = at, at
		if limit := a.l.Scenario.Cgroups[at].Limit; limit.Limited() && (least == 0 || limit.CPUs() <= least) {
			least, a.l.Binding = limit.CPUs(), at
		}
	}
	if least == 0 {
		return ErrNoLimit
	}
	own := &a.l.Scenario.Cgroups[a.l.Container]
	own.CPUs = a.mapped(a.h.CPUsAllowed)
	a.l.Limit = least
	below := slices.Clone(a.h.SubLevels)
	slices.SortStableFunc(below, func(x, y recording.Level) int { return cmp.Compare(len(x.Path), len(y.Path)) })
	for i := range below {
		if len(a.l.Scenario.Cgroups) >= scenario.MaxCgroups-maxOwners-2 {
			a.l.note("%d cgroups below the container are taken as without a quota of their own", len(below)-i)
			break
		}
		if _, err := a.cgroup(a.above(below[i].Path, a.l.Container), &below[i]); err != nil {
			return err
		}
	}
	return nil
}

// above is the nearest cgroup above a path; otherwise if there is none.
func (a *assembly) above(path string, otherwise int) int {
	best := otherwise
	for i, up := range a.paths {
		if up != "/" && strings.HasPrefix(path, strings.TrimSuffix(up, "/")+"/") && (best < 0 || best == otherwise || len(up) > len(a.paths[best])) {
			best = i
		}
	}
	return best
}

// container makes a workload of each pool in each cgroup.
func (a *assembly) container() {
	type place struct {
		pool   *Pool
		cgroup int
	}
	members := map[place][]*thread{}
	var places []place
	for _, t := range a.order {
		at := place{t.pool, a.l.Container}
		if id, ok := a.ids[t.cgroup]; ok && id >= a.l.Container {
			at.cgroup = id
		}
		if members[at] == nil && len(places) >= maxPlaces {
			at.cgroup = a.l.Container
		}
		if members[at] == nil {
			places = append(places, at)
		}
		members[at] = append(members[at], t)
	}
	idle := map[int][]int{}
	for _, at := range places {
		at.pool.Workloads = append(at.pool.Workloads, a.workload(at.cgroup, len(members[at])))
		crew := a.crewed(at.pool, members[at])
		a.l.Replay.Crews = append(a.l.Replay.Crews, crew)
		for _, t := range members[at] {
			idle[t.index] = t.settle(crew)
			a.threads[t.index] = len(a.l.Replay.Threads)
			at.pool.Threads++
			spec := simulate.ReplayThread{Steps: t.steps, Again: t.again()}
			if c, ok := a.index[int(t.first)]; ok {
				spec.CPU = c
			}
			if set, err := topology.ParseList(t.allowed); err == nil && !set.IsEmpty() {
				spec.Allowed = a.mapped(set)
			}
			a.l.Replay.Threads = append(a.l.Replay.Threads, spec)
		}
	}
	a.l.own = len(a.l.Scenario.Workloads)
	for _, t := range a.l.Replay.Threads {
		for i := range t.Steps {
			s := &t.Steps[i]
			if s.Kind != simulate.StepWake {
				continue
			}
			which := -1
			if s.Idle {
				which = idle[int(s.Thread)][s.For]
			}
			s.Idle, s.For = which >= 0, time.Duration(max(0, which))
			s.Thread = int32(a.threads[int(s.Thread)])
		}
	}
}

func (a *assembly) workload(cgroup, threads int) int {
	s := &a.l.Scenario
	s.Workloads = append(s.Workloads, scenario.Workload{
		Name: fmt.Sprintf("%d", len(s.Workloads)), Kind: simulate.Replayed, Cgroup: cgroup, Threads: threads,
	})
	return len(s.Workloads) - 1
}

// neighbours makes a workload of each other owner: the kernel's threads and those of the root stay in the root, the
// others get a cgroup each, below the ancestor that they share with the container.
func (a *assembly) neighbours() {
	all := a.sortedOthers()
	sums := map[uint32]int64{}
	for _, o := range all {
		a.endOther(o)
		sums[o.owner] += o.sum
	}
	var owners []uint32
	for owner := range sums {
		owners = append(owners, owner)
	}
	slices.SortFunc(owners, func(x, y uint32) int { return cmp.Or(cmp.Compare(sums[y], sums[x]), cmp.Compare(x, y)) })
	paths := map[uint32]string{}
	for _, n := range a.footer.Neighbours {
		paths[n.Owner] = n.Path
	}
	// One workload each, and one for all that come after maxOwners.
	var shares [][]uint32
	for _, owner := range owners {
		if len(shares) <= maxOwners {
			shares = append(shares, nil)
		}
		last := &shares[len(shares)-1]
		*last = append(*last, owner)
	}
	for i, share := range shares {
		cgroup := -1
		if share[0] >= recording.FirstOwner {
			up := -1
			if i < maxOwners {
				up = a.above(paths[share[0]], -1)
			}
			cgroup = a.neighbour(up)
		}
		var of []*other
		for _, o := range all {
			if slices.Contains(share, o.owner) && len(o.steps) > 0 {
				of = append(of, o)
			}
		}
		if len(of) > 0 {
			a.l.others = append(a.l.others, a.workload(cgroup, len(of)))
			a.replayOthers(of)
		}
	}
}

func (a *assembly) replayOthers(of []*other) {
	for _, o := range of {
		c := a.index[int(o.cpu)]
		spec := simulate.ReplayThread{CPU: c, Home: true, Steps: append(o.steps, simulate.ReplayStep{Kind: simulate.StepEnd})}
		if o.owner == recording.Kernel {
			spec.Allowed = cpuset.New(c) // most of the kernel's threads are bound to theirs
		}
		a.l.Replay.Threads = append(a.l.Replay.Threads, spec)
		a.l.OthersUsed += time.Duration(o.sum)
	}
}

// neighbour adds a cgroup without a limit.
func (a *assembly) neighbour(parent int) int {
	s := &a.l.Scenario
	s.Cgroups = append(s.Cgroups, scenario.Cgroup{
		Name: fmt.Sprintf("%d", len(s.Cgroups)), Parent: parent, Weight: scenario.DefaultWeight,
		Limit: bandwidth.Limit{Quota: bandwidth.NoQuota, Period: 100 * time.Millisecond},
	})
	a.l.Replay.Phase = append(a.l.Replay.Phase, bandwidth.Never)
	return len(s.Cgroups) - 1
}

// tell notes what the replay cannot have.
func (a *assembly) tell() {
	if a.h.Features.Mark == "" {
		a.l.note("the kernel did not show who was held back: stopped time was not recorded, and the self-check is without it")
	}
	for i := range a.h.Threads {
		if a.h.Threads[i].Nice != 0 {
			a.l.note("threads have a nice value: replayed as if they had none")
			break
		}
	}
	if a.h.Host.SchedExt != "" {
		a.l.note("a sched_ext scheduler was loaded: replayed under the kernel's own")
	}
}
