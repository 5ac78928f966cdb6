package forecast

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/bandwidth"
	"github.com/unthrottle/unthrottle/internal/scenario"
	"github.com/unthrottle/unthrottle/internal/see/recording"
	"github.com/unthrottle/unthrottle/internal/sim/simulate"
	"github.com/unthrottle/unthrottle/topology"
)

// maxOwners is how many other owners of CPU time get a cgroup of their own. The rest share one.
const maxOwners = 64

// maxPlaces bounds the pairs of a pool and a cgroup that become workloads of their own.
const maxPlaces = 512

// assembly turns a recording into a scenario with a replay.
type assembly struct {
	*builder
	l       *Load
	index   map[int]int // the simulator's number, by the host's number of a CPU
	paths   []string    // by cgroup of the scenario
	ids     map[uint64]int
	threads map[int]int // index in the replay, by index in the recording
}

func (b *builder) assemble(l *Load) error {
	host, err := hostOf(&b.h)
	if err != nil {
		return err
	}
	a := &assembly{builder: b, l: l, index: map[int]int{}, ids: map[uint64]int{}, threads: map[int]int{}}
	for i, c := range b.h.Host.CPUs.List() {
		a.index[c] = i
	}
	if b.h.Host.HZ == nil {
		l.note("the recording has no ticks per second: assumed %d", usualHZ)
	}
	l.recordedScenario = scenario.Scenario{Duration: l.window, Host: host}
	if err := a.cgroups(); err != nil {
		return err
	}
	a.container()
	a.arrivals()
	for _, p := range b.pools.all() {
		if p.threads > 0 {
			l.Pools = append(l.Pools, p)
		}
	}
	markRuntime(l.Pools)
	a.neighbours()
	a.noteUnreplayed()
	return nil
}

// mapped translates the host's CPU numbers to the simulator's. It drops CPUs that the recording does not
// have.
func (a *assembly) mapped(set cpuset.CPUSet) cpuset.CPUSet {
	var all []int
	for _, c := range set.List() {
		if i, ok := a.index[c]; ok {
			all = append(all, i)
		}
	}
	return cpuset.New(all...)
}

// cgroup adds a cgroup to the scenario, and returns its index.
func (a *assembly) cgroup(parent int, level *recording.Level) (int, error) {
	s := &a.l.recordedScenario
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
	a.l.replay.Phase = append(a.l.replay.Phase, phase)
	a.paths = append(a.paths, level.Path)
	a.ids[level.ID] = len(s.Cgroups) - 1
	return len(s.Cgroups) - 1, nil
}

// cgroups adds the container's cgroup with its ancestors, and the descendants that have a quota.
func (a *assembly) cgroups() error {
	levels := slices.Clone(a.h.Levels)
	if len(levels) == 0 {
		levels = []recording.Level{{Path: a.h.Target.Path, ID: a.h.Target.ID}}
	}
	parent, least := -1, 0.0
	for i := len(levels) - 1; i >= 0; i-- {
		level := &levels[i]
		if level.Path == "/" && i > 0 || len(a.l.recordedScenario.Cgroups) >= scenario.MaxDepth-1 && i > 0 {
			continue
		}
		at, err := a.cgroup(parent, level)
		if err != nil {
			return err
		}
		parent, a.l.container = at, at
		if i > 0 && isPod(level.Path) {
			a.l.pods = append(a.l.pods, at)
		}
		if limit := a.l.recordedScenario.Cgroups[at].Limit; limit.Limited() && (least == 0 || limit.CPUs() <= least) {
			least, a.l.binding = limit.CPUs(), at
		}
	}
	if least == 0 {
		return errNoLimit
	}
	own := &a.l.recordedScenario.Cgroups[a.l.container]
	own.CPUs = a.mapped(a.h.CPUsAllowed)
	a.l.limit = least
	below := slices.Clone(a.h.SubLevels)
	slices.SortStableFunc(below, func(x, y recording.Level) int { return cmp.Compare(len(x.Path), len(y.Path)) })
	for i := range below {
		if len(a.l.recordedScenario.Cgroups) >= scenario.MaxCgroups-maxOwners-2 {
			a.l.note("%d cgroups below the container are replayed without their own quota", len(below)-i)
			break
		}
		if _, err := a.cgroup(a.above(below[i].Path, a.l.container), &below[i]); err != nil {
			return err
		}
	}
	return nil
}

// above returns the nearest cgroup above a path, or otherwise if the scenario has none.
func (a *assembly) above(path string, otherwise int) int {
	best := otherwise
	for i, up := range a.paths {
		if up != "/" && strings.HasPrefix(path, strings.TrimSuffix(up, "/")+"/") &&
			(best < 0 || best == otherwise || len(up) > len(a.paths[best])) {
			best = i
		}
	}
	return best
}

// container makes a workload of each pool in each cgroup, and of each event loop.
func (a *assembly) container() {
	type place struct {
		pool   *Pool
		cgroup int
		loop   *thread
	}
	members := map[place][]*thread{}
	var places []place
	for _, t := range a.order {
		at := place{pool: t.pool, cgroup: a.l.container}
		if a.eventLoop(t) {
			at.loop = t
		}
		if id, ok := a.ids[t.Cgroup]; ok && id >= a.l.container {
			at.cgroup = id
		}
		if members[at] == nil && len(places) >= maxPlaces {
			at = place{pool: t.pool, cgroup: a.l.container}
		}
		if members[at] == nil {
			places = append(places, at)
		}
		members[at] = append(members[at], t)
	}
	awaits, older := map[int][]int{}, map[uint32]bool{}
	var wait []*thread // for what they await, and not for whatever comes
	for i := range a.h.Threads {
		older[a.h.Threads[i].TGID] = true
	}
	for _, at := range places {
		at.pool.workloads = append(at.pool.workloads, a.workload(at.cgroup, len(members[at])))
		wakeOrder := a.wakeOrderOf(at.pool, members[at])
		if at.loop != nil {
			wakeOrder = simulate.OldestFirst
			at.loop.makeAbsolute()
		}
		if wakeOrder == simulate.NotShared {
			wait = append(wait, members[at]...)
		}
		a.l.replay.WakeOrders = append(a.l.replay.WakeOrders, wakeOrder)
		for _, t := range members[at] {
			awaits[t.index] = t.markIdleSleeps(wakeOrder, at.loop != nil)
			a.threads[t.index] = len(a.l.replay.Threads)
			at.pool.count(t, older[t.TGID])
			spec := simulate.ReplayThread{Steps: t.steps, Again: t.repeats()}
			if c, ok := a.index[int(t.first)]; ok {
				spec.CPU = c
			}
			if set, err := topology.ParseList(t.Allowed); err == nil && !set.IsEmpty() {
				spec.Allowed = a.mapped(set)
			}
			a.l.replay.Threads = append(a.l.replay.Threads, spec)
		}
	}
	for _, t := range wait {
		t.waitForParts()
	}
	a.l.own = len(a.l.recordedScenario.Workloads)
	for _, t := range a.l.replay.Threads {
		for i := range t.Steps {
			s := &t.Steps[i]
			if s.Kind != simulate.StepWake {
				continue
			}
			wakes, sleep := int(s.Thread), int(s.For)
			s.Idle, s.For = a.order[wakes].steps[sleep].Idle, time.Duration(awaits[wakes][sleep])
			s.Thread = int32(a.threads[wakes])
		}
	}
}

// count adds a thread to the figures of a pool. older says that its process began before the recording.
func (p *Pool) count(t *thread, older bool) {
	p.threads++
	p.cpu += time.Duration(t.total)
	p.woken.add(t.wakes)
	for _, by := range t.wakers {
		if p.wokenBy == nil {
			p.wokenBy = map[*Pool]int{}
		}
		p.wokenBy[by.pool]++
	}
	if older {
		p.older.add(t.wakes)
	}
}

func (a *assembly) workload(cgroup, threads int) int {
	s := &a.l.recordedScenario
	s.Workloads = append(s.Workloads, scenario.Workload{
		Name: fmt.Sprintf("%d", len(s.Workloads)), Kind: simulate.Replayed, Cgroup: cgroup, Threads: threads,
	})
	return len(s.Workloads) - 1
}

// neighbours makes a workload of each other owner of CPU time. Threads of the kernel and of the root cgroup
// stay in the root. Each other owner gets a cgroup below the ancestor that it shares with the container.
func (a *assembly) neighbours() {
	all := a.sortedOthers()
	sums := map[uint32]int64{}
	for _, o := range all {
		a.flushOther(o)
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
	// Each owner gets a workload, and all owners after maxOwners share one.
	var shares [][]uint32
	for _, owner := range owners {
		if len(shares) <= maxOwners {
			shares = append(shares, nil)
		}
		last := &shares[len(shares)-1]
		*last = append(*last, owner)
	}
	used := int64(0) // by neighbours below the binding limit
	for _, owner := range owners {
		if a.sharesQuota(a.above(paths[owner], -1)) {
			used += sums[owner]
		}
	}
	for i, share := range shares {
		cgroup, up := -1, -1
		if share[0] >= recording.FirstOwner {
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
		if len(share) == 1 && a.sharesQuota(up) && a.takesAll(sums[share[0]], used) {
			of = greedy(of, a.widths[share[0]].mean())
		}
		if len(of) > 0 {
			a.l.others = append(a.l.others, a.workload(cgroup, len(of)))
			a.replayOthers(of)
		}
	}
}

func (a *assembly) replayOthers(others []*other) {
	for _, o := range others {
		c := a.index[int(o.cpu)]
		spec := simulate.ReplayThread{CPU: c, Home: true, Steps: o.steps}
		if !o.endless() {
			spec.Steps = append(spec.Steps, simulate.ReplayStep{Kind: simulate.StepEnd})
		}
		if o.owner == recording.Kernel {
			spec.Allowed = cpuset.New(c) // most of the kernel's threads are bound to their CPU
		}
		a.l.replay.Threads = append(a.l.replay.Threads, spec)
		a.l.othersUsed += time.Duration(o.sum)
	}
}

// neighbour adds a cgroup without a limit.
func (a *assembly) neighbour(parent int) int {
	s := &a.l.recordedScenario
	s.Cgroups = append(s.Cgroups, scenario.Cgroup{
		Name: fmt.Sprintf("%d", len(s.Cgroups)), Parent: parent, Weight: scenario.DefaultWeight,
		Limit: bandwidth.Unlimited(),
	})
	a.l.replay.Phase = append(a.l.replay.Phase, bandwidth.Never)
	return len(s.Cgroups) - 1
}

// noteUnreplayed notes which parts of the recording a replay leaves out.
func (a *assembly) noteUnreplayed() {
	if a.h.Features.Mark == "" {
		a.l.note("the kernel did not show which run queues it throttled: the recording has no stopped time, and the " +
			"self-check leaves it out")
	}
	for i := range a.h.Threads {
		if a.h.Threads[i].Nice != 0 {
			a.l.note("threads have a nice value, which the replay ignores")
			break
		}
	}
	if a.h.Host.SchedExt != "" {
		a.l.note("a sched_ext scheduler was loaded: the replay uses the kernel's own scheduler")
	}
}
