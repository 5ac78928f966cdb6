package simulate

import (
	"math/bits"
	"math/rand/v2"
	"time"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/bandwidth"
	"github.com/unthrottle/unthrottle/internal/scenario"
)

// mask is a set of CPUs.
type mask []uint64

func newMask(cpus int) mask { return make(mask, (cpus+63)/64) }

func (m mask) has(c int) bool { return m[c>>6]>>(c&63)&1 == 1 }
func (m mask) add(c int)      { m[c>>6] |= 1 << (c & 63) }
func (m mask) drop(c int)     { m[c>>6] &^= 1 << (c & 63) }

func maskOf(set cpuset.CPUSet, cpus int) mask {
	m := newMask(cpus)
	for _, c := range set.UnsortedList() {
		m.add(c)
	}
	return m
}

// firstCommon returns the first CPU in both sets, from a given one on and round; -1: there is none.
func firstCommon(a, b mask, from int) int {
	words := len(a)
	for i := range words + 1 {
		w := (from>>6 + i) % words
		both := a[w] & b[w]
		if i == 0 {
			both &= ^uint64(0) << (from & 63)
		}
		if i == words {
			both &= 1<<(from&63) - 1
		}
		if both != 0 {
			return w<<6 + bits.TrailingZeros64(both)
		}
	}
	return -1
}

// cpu is one CPU.
type cpu struct {
	cur     int           // running thread; -1: idle
	last    time.Duration // charged up to here
	picked  time.Duration // the time since which cur runs
	worked  time.Duration // cur's work is up to date up to here, if CPUs are unequal
	speed   float64       // of cur on this CPU
	phase   time.Duration // of its ticks
	balance int           // ticks until it looks for work elsewhere
	threads int           // runnable threads, held ones too
	marked  []mark        // the way to cur
	other   []mark        // room for the next one
}

// group is a cgroup; the first is the root.
type group struct {
	parent  int
	weight  int64            // 1024: cpu.weight 100
	bw      *bandwidth.Group // nil: no quota
	threads int              // runnable and not held below this level, on all CPUs
	allowed mask

	running  int // CPUs in use
	held     int // threads that a quota holds
	since    time.Duration
	width    []time.Duration // by CPUs in use
	stopped  time.Duration
	timeline *Timeline // nil: no timeline
	narrow   *narrow   // nil: no bound of its width
}

// entity is what competes in a run queue: a thread, or a group on one CPU.
type entity struct {
	vruntime, deadline int64
	lag                int64 // the lag with which it left the queue, in virtual time
	slept              time.Duration
	protected          int64 // with EEVDF, as long as it runs: see first
	delayed            bool  // asleep, and still in its queue: see delayed
}

// nobody is no member of a queue.
const nobody = -1

// mark is a member that runs in the queue of a group.
type mark struct{ group, member int }

// rq is a group's run queue on one CPU, and the group's entity in the queue of its parent.
type rq struct {
	list    []int // threads, and child groups as ^group
	delayed []delayed
	runs    int // the member that runs, or nobody
	entity  entity
	queued  bool // in the parent's list: neither empty nor throttled
	threads int  // runnable and not held below this level
	parking int  // of threads, those not yet parked: see comeBackIn
	late    bool // some threads came late: see comeBackIn
	floor   int64
}

// host is the state of a run.
type host struct {
	scenario *scenario.Scenario
	rng      *rand.Rand
	now      time.Duration
	queue    queue
	slots    slots
	ncpu     int
	cpus     []cpu
	idle     mask
	woke     []time.Duration // by cache: see lastWake
	crowded  int             // CPUs with two or more runnable threads
	groups   []group
	rqs      []rq // of group g on CPU c: g*ncpu+c
	threads  []thread
	works    []work
	streams  []stream // of all services
	calling  []int    // threads in a system call
	speeds   *speeds  // nil: all CPUs are equal
	bounded  bool     // some group has a bound of its width
	freed    []int
	toRepick []int // CPUs that choose again after the event: see charge
	parked   []int // members of queues on their way back: see comeBackIn
	late     []int // threads of one queue: see takeLate
	events   uint64
	replay   *replayer                                 // nil: there is no replay
	gate     *gate                                     // nil: no work is held back
	times    func(workload string, took time.Duration) // nil: no caller asks for times

	eevdf, delay, looks               bool // delay: see delayed; looks: see unprotected
	slice, latency, granularity, tick time.Duration
}

// slots are the beginnings of each sort of event in the queue. Events at one time come in the order of the
// sorts.
type slots struct {
	period, slack, credit, ipi, work, arrive, timeout, retry, gate, done, account, tick, wake, end int
}

func (h *host) rq(g, c int) *rq { return &h.rqs[g*h.ncpu+c] }

func newHost(s *scenario.Scenario, seed uint64) (*host, error) {
	h := &host{scenario: s, ncpu: s.Host.CPUs, rng: rand.New(rand.NewPCG(seed, 0x756e7468726f7474))}
	groups, threads, streams := len(s.Cgroups)+1, 0, 0
	for i := range s.Workloads {
		threads += threadsOf(&s.Workloads[i])
		if server := s.Workloads[i].Server; server != nil {
			streams += len(server.Classes)
		}
	}
	works := len(s.Workloads)
	at := 0
	take := func(n int) int { at += n; return at - n }
	h.slots = slots{
		period: take(groups), slack: take(groups), credit: take(groups), ipi: take(groups * h.ncpu), work: take(works),
		arrive: take(streams), timeout: take(works), retry: take(works), gate: take(1),
		done: take(h.ncpu), account: take(h.ncpu), tick: take(h.ncpu), wake: take(threads), end: at,
	}
	h.queue = newQueue(at)
	h.clocks()
	h.rqs = make([]rq, groups*h.ncpu)
	for i := range h.rqs {
		h.rqs[i].runs = nobody
	}
	h.woke = make([]time.Duration, h.ncpu)
	h.freed, h.toRepick = make([]int, 0, h.ncpu), make([]int, 0, h.ncpu)
	root := scenario.Cgroup{Parent: -1, Weight: scenario.DefaultWeight, CPUs: s.Host.All().Difference(s.Host.Reserved)}
	root.Limit = bandwidth.Limit{Quota: bandwidth.NoQuota}
	h.addGroup(-1, &root)
	h.groups[0].allowed = maskOf(root.CPUs, h.ncpu)
	for i := range s.Cgroups {
		if err := h.addGroup(s.Cgroups[i].Parent+1, &s.Cgroups[i]); err != nil {
			return nil, err
		}
	}
	h.addSpeeds()
	h.addWorks(threads, streams)
	return h, nil
}

// clocks draws the phases of the ticks, and sets the scheduler's times.
func (h *host) clocks() {
	s := &h.scenario.Host
	if s.HZ > 0 {
		h.tick = time.Second / time.Duration(s.HZ)
	}
	h.cpus, h.idle = make([]cpu, h.ncpu), newMask(h.ncpu)
	common := time.Duration(0)
	if h.tick > 0 {
		common = time.Duration(h.rng.Int64N(int64(h.tick)))
	}
	for c := range h.cpus {
		h.cpus[c] = cpu{cur: -1, phase: common, balance: c % balanceTicks}
		if s.SpreadTicks && h.tick > 0 {
			h.cpus[c].phase = time.Duration(h.rng.Int64N(int64(h.tick)))
		}
		h.idle.add(c)
	}
	// get_update_sysctl_factor: 1 + log2 of the CPUs, at most 8 of them.
	factor := time.Duration(bits.Len(uint(min(h.ncpu, 8))))
	h.eevdf, h.delay = s.Rules.Has(bandwidth.Since6_6), s.Rules.From(6, 12)
	h.looks = s.Rules.From(6, 17)
	h.granularity = factor * time.Millisecond // of a wake-up's preemption
	h.latency = factor * 6 * time.Millisecond
	h.slice = factor * 750 * time.Microsecond
	if s.Rules.Has(bandwidth.Since6_18) {
		h.slice = factor * 700 * time.Microsecond // since 6.15, "sched: Reduce the default slice to avoid tasks getting an extra tick"
	}
	if s.BaseSlice > 0 {
		h.slice = s.BaseSlice
	}
}

// newBandwidth begins the periods of a limit.
func (h *host) newBandwidth(l bandwidth.Limit, phase time.Duration) (*bandwidth.Group, error) {
	bw, err := bandwidth.New(&h.scenario.Host.Rules, h.ncpu, l, phase)
	if err == nil && l.Burst > 0 { // a group that was idle has saved its burst: a write is one more refill
		_, err = bw.Configure(0, 0, l, nil)
	}
	return bw, err
}

func (h *host) addGroup(parent int, c *scenario.Cgroup) error {
	s := &h.scenario.Host
	g := group{parent: parent, weight: int64(c.Weight) * 1024 / 100, width: make([]time.Duration, h.ncpu+1)}
	g.allowed = maskOf(h.scenario.Effective(c), h.ncpu)
	if g.narrow = newNarrow(c, h.ncpu); g.narrow != nil {
		h.bounded = true
		if g.narrow.credit != nil {
			h.aimCredit(len(h.groups))
		}
	}
	if c.Limit.Limited() {
		phase := time.Duration(0)
		if s.Rules.RandomPhase() && h.tick > 0 {
			phase = time.Duration(h.rng.Int64N(int64(c.Limit.Period)))
		}
		var err error
		if g.bw, err = h.newBandwidth(c.Limit, phase); err != nil {
			return err
		}
		if s.ClockSkew > 0 {
			g.bw.Skew = make([]time.Duration, h.ncpu)
			for i := range g.bw.Skew {
				g.bw.Skew[i] = time.Duration(h.rng.Int64N(int64(s.ClockSkew) + 1))
			}
		}
		h.queue.set(h.slots.period+len(h.groups), g.bw.PeriodAt())
	}
	h.groups = append(h.groups, g)
	return nil
}
