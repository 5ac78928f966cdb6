package simulate

import (
	"fmt"
	"time"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/bandwidth"
	"github.com/unthrottle/unthrottle/internal/scenario"
)

// Replayed is the kind of workload whose threads follow a Replay. No scenario file has it.
const Replayed scenario.Kind = "replayed"

// StepKind says what a replayed thread does next.
type StepKind uint8

// The kinds of steps. All after StepRead put the thread to sleep.
const (
	StepRun   StepKind = iota // uses For of CPU time
	StepWake                  // wakes Thread, once
	StepReply                 // ends the request with index Thread in Replay.Requests
	// reads what arrived at For since the beginning. A thread that is there earlier than it was when recorded has nothing to read yet,
	// and sleeps until then
	StepRead
	// until a StepWake of another thread names it, or at once if one already has; For is the recorded time of that
	StepAwait
	StepUntil // until For since the beginning; at once if that is past
	StepSleep // for For
	StepTake  // until its workload's Queue has a run, and does that
	StepEnd   // for ever
)

// ReplayStep is one step of a thread.
type ReplayStep struct {
	Kind StepKind
	// Idle marks a StepAwait or StepUntil in which the thread waits for work, or a StepWake out of one. The
	// For of a StepWake is how many StepAwait the thread had before the one that it ends. Both matter only with a
	// shared work queue: other threads are woken as often as they await, in any order.
	Idle bool
	// Thread of a StepWake is an index in Replay.Threads, of a StepReply one in Replay.Requests, or -1 for no request. Of a
	// StepAwait it is how many wake-ups beside the first one must name it, of a thread without a shared queue.
	Thread int32
	For    time.Duration
}

// Endless is the For of a run that does not stop.
const Endless = endless

// ReplayThread is one thread. After its last step it sleeps. If the last step is a run, the recording cut it
// off, and it is not measured.
type ReplayThread struct {
	CPU int // at its beginning
	// Home makes the thread wake on CPU, if its affinity has it, and not where it last ran.
	Home    bool
	Allowed cpuset.CPUSet // its own affinity; empty: its cgroup's
	Steps   []ReplayStep
	// Again makes the thread begin again after the last step, with its first StepSleep or StepAwait.
	Again bool
}

// QueuedRun is work that one of several threads takes: For of CPU time, from At on.
type QueuedRun struct{ At, For time.Duration }

// ReplayRequest is a request whose data arrived at At since the beginning.
type ReplayRequest struct {
	At time.Duration
	// After is how many places before it in Replay.Requests the one is whose answer its client waits for, and Gap later sends this one.
	// 0: it waits for none.
	After int32
	Gap   time.Duration
}

// WakeOrder says whether the threads of a workload share a work queue. With a queue, any thread can do what
// one thread did between two idle sleeps. A thread that is through takes the next work, and sleeps only if
// there is none. The order chooses the sleeping thread to wake.
type WakeOrder uint8

// The orders.
const (
	NotShared   WakeOrder = iota // each thread has its own work
	OldestFirst                  // wakes the thread that has slept longest
	NewestFirst                  // wakes the thread that fell asleep last
)

// Replay has the steps of the threads of all workloads of kind Replayed, in the order of the workloads. A run
// does not change it, so several runs can share it.
type Replay struct {
	Threads []ReplayThread
	// Queues has the workloads' queued runs, by index in the scenario, in order of At; nil: there are none.
	Queues [][]QueuedRun
	// WakeOrders has the workloads' orders, by index in the scenario; nil: no queue is shared.
	WakeOrders []WakeOrder
	Requests   []ReplayRequest // nil: StepReply has no effect
	// Gate holds work back; nil: none is.
	Gate *Gate
	// Phase is the beginning of a period of each cgroup, by index in the scenario. bandwidth.Never or a
	// missing entry: random.
	Phase []time.Duration
	// Holds is what each cgroup's limit, or its credit, holds of CPU time at the beginning, by index in the scenario. bandwidth.Never or
	// a missing entry: all that it can save.
	Holds []time.Duration
}

// Times is a distribution of times, each off by less than 1 %.
type Times struct{ histogram }

// NewTimes returns an empty distribution.
func NewTimes() *Times { return &Times{} }

// Add counts a time, at least 0.
func (t *Times) Add(d time.Duration) { t.add(max(0, d)) }

// Count is the number of times.
func (t *Times) Count() uint64 { return t.n }

// Quantile returns the time in milliseconds that a share p of all does not exceed; nil: there are none.
func (t *Times) Quantile(p float64) *float64 { return t.quantile(p) }

// Max is the longest time in milliseconds; nil: there are none.
func (t *Times) Max() *float64 { return t.maximum() }

// Merge adds all times of another distribution.
func (t *Times) Merge(o *Times) {
	if o.n == 0 {
		return
	}
	if t.n == 0 || o.min < t.min {
		t.min = o.min
	}
	t.max = max(t.max, o.max)
	t.n += o.n
	if len(o.counts) > len(t.counts) {
		t.grow(len(o.counts))
	}
	for i, n := range o.counts {
		t.counts[i] += n
	}
}

// ReplayTimes has the times of one workload. They begin with their cause: the end of a timer's sleep, or the
// wake-up by another thread. A cause may come while the thread is still busy with earlier work.
type ReplayTimes struct {
	Delay    *Times // to the first CPU time
	Response *Times // to the next sleep
	// Unfinished is the CPU time still to do of runs that had begun or should have.
	Unfinished time.Duration
}

// ReplayResult of a RunReplay.
type ReplayResult struct {
	Outcome scenario.Outcome
	Times   []ReplayTimes // by workload
	// Requests are how long each of Replay.Requests took, from its arrival to its StepReply or to the end; NotSent: its client still
	// waits for the answer before it.
	Requests []time.Duration
	Timeline []Timeline // of Options.Timeline
	Events   uint64
}

// RunReplay is Run for a scenario whose workloads of kind Replayed follow r. It also returns an error if the
// replay does not fit the scenario.
func RunReplay(s scenario.Scenario, r *Replay, o Options) (ReplayResult, error) {
	remedied, refused := s.Remedied()
	if refused != nil {
		return ReplayResult{}, refused
	}
	if err := unmodelled(&remedied); err != nil {
		return ReplayResult{}, err
	}
	if err := r.check(&remedied); err != nil {
		return ReplayResult{}, err
	}
	h, err := newHost(&remedied, o.Seed)
	if err != nil {
		return ReplayResult{}, err
	}
	h.times = o.Times
	if err := h.addReplay(r); err != nil {
		return ReplayResult{}, err
	}
	h.replay.responses = o.Responses
	h.addTimelines(min(o.Timeline, MaxTimeline))
	h.run()
	for t := range h.replay.threads {
		h.replayUnfinished(t)
	}
	return ReplayResult{Outcome: h.outcome(), Times: h.replay.times, Requests: h.replay.tookUntil(h.now),
		Timeline: h.timelines(), Events: h.events}, nil
}

func (r *Replay) check(s *scenario.Scenario) error {
	for i, q := range r.Requests {
		if q.At < 0 || q.Gap < 0 || q.After < 0 || int(q.After) > i {
			return fmt.Errorf("replay: request %d: %+v", i, q)
		}
	}
	if err := r.Gate.check(len(s.Cgroups), len(s.Workloads)); err != nil {
		return err
	}
	n := 0
	for _, w := range s.Workloads {
		if w.Kind != Replayed {
			return fmt.Errorf("replay: workload %s is of kind %s", w.Name, w.Kind)
		}
		n += w.Threads
	}
	if len(r.WakeOrders) > len(s.Workloads) {
		return fmt.Errorf("replay: wake orders of %d workloads for %d", len(r.WakeOrders), len(s.Workloads))
	}
	if n != len(r.Threads) {
		return fmt.Errorf("replay: %d threads for workloads with %d", len(r.Threads), n)
	}
	awaits := make([]time.Duration, len(r.Threads))
	for i := range r.Threads {
		for _, step := range r.Threads[i].Steps {
			if step.Kind == StepAwait {
				awaits[i]++
			}
		}
	}
	for i := range r.Threads {
		for _, step := range r.Threads[i].Steps {
			if step.For < 0 || step.Kind > StepEnd || step.Kind == StepAwait && step.Thread < 0 ||
				step.Kind == StepWake && (step.Thread < 0 || int(step.Thread) >= n || step.For >= awaits[step.Thread]) {
				return fmt.Errorf("replay: thread %d: step %+v", i, step)
			}
		}
		if c := r.Threads[i].CPU; c < 0 || c >= s.Host.CPUs {
			return fmt.Errorf("replay: thread %d: CPU %d of %d", i, c, s.Host.CPUs)
		}
	}
	return nil
}

// replayer is the state of a replay.
type replayer struct {
	*Replay
	// scripts are the work to do: first those of the threads, then those of shared queues. items is where the
	// shared ones of each thread begin. calls has the wake-ups of threads without a shared queue, awaits where the
	// StepAwait of the others are.
	scripts    []replayScript
	items      []int
	calls      []replayCalls
	awaits     [][]replayAwait
	threads    []replayThread
	queues     []replayQueue   // by workload
	workQueues []workQueue     // by workload
	times      []ReplayTimes   // by workload
	answered   []time.Duration // by request; never: not yet
	responses  func(workload int, came, took time.Duration)
}

// replayScript is a part of the steps of a thread.
type replayScript struct {
	of    int
	steps []ReplayStep
	again bool
	waits []replayWait // of a script of a shared queue: its StepAwait
	next  int          // the next of waits
	came  bool         // it was brought
	begun bool         // a thread has it
	from  int32        // script that brings it; -1: a moment of its own does
}

// replayCalls are wake-ups of a thread by others.
type replayCalls struct {
	early  ring[time.Duration] // wake-ups that no thread waited for yet
	waiter ring[int]           // threads that wait for the next wake-ups
	// by has the script that ends each StepAwait, -1 once it did; first is where those before are -1. Empty where no queue
	// is shared.
	by    []int32
	first int
	// joins are the StepAwait that wait for several threads, by how many StepAwait come before; joining is the one that the
	// thread is in, nil: none. passed is how many StepAwait the thread has begun.
	joins   map[int]*replayJoin
	joining *replayJoin
	passed  int
}

// replayThread is the state of a thread.
type replayThread struct {
	script int           // its own, or one of its shared queue
	at     int           // the next step
	came   time.Duration // the time of the cause of its work; never: before the replay
	fresh  bool          // has not run since
	sleeps bool
	taken  bool // its work came from the queue
}

// replayQueue is the position in a workload's queue.
type replayQueue struct {
	next    int
	waiting ring[QueuedRun]
	idle    ring[int]
}

func (h *host) addReplay(r *Replay) error {
	h.replay = &replayer{
		Replay: r, scripts: make([]replayScript, len(r.Threads)), items: make([]int, len(r.Threads)),
		calls: make([]replayCalls, len(r.Threads)), awaits: make([][]replayAwait, len(r.Threads)),
		threads: make([]replayThread, len(r.Threads)), queues: make([]replayQueue, len(h.works)),
		workQueues: make([]workQueue, len(h.works)),
	}
	for range r.Requests {
		h.replay.answered = append(h.replay.answered, never)
	}
	for range h.works {
		h.replay.times = append(h.replay.times, ReplayTimes{Delay: NewTimes(), Response: NewTimes()})
	}
	for t := range r.Threads {
		spec, th := &r.Threads[t], &h.threads[t]
		th.fresh, th.cpu = false, spec.CPU
		h.replay.threads[t].script = t
		h.replay.scripts[t] = replayScript{of: t, steps: spec.Steps, again: spec.Again}
		h.replay.calls[t].findJoins(spec.Steps)
		if !spec.Allowed.IsEmpty() {
			of := th.allowed // the CPUs of its workload
			th.allowed = newMask(h.ncpu)
			some := false
			for _, c := range spec.Allowed.UnsortedList() {
				if c < h.ncpu && of.has(c) {
					th.allowed.add(c)
					some = true
				}
			}
			if !some { // cpuset_cpus_allowed_fallback
				th.allowed = of
			}
		}
		if !th.allowed.has(th.cpu) {
			th.cpu = firstCommon(th.allowed, th.allowed, th.cpu)
		}
	}
	for i, order := range r.WakeOrders {
		if order != NotShared {
			h.shareSteps(i, order)
		}
	}
	h.findHolders()
	h.addGate(r.Gate)
	for i := range h.groups {
		if n := h.groups[i].narrow; n != nil && n.credit != nil { // as a burst is: what is replayed began long before
			n.credit.level = n.credit.most
			if held := TimeAt(r.Holds, i-1); held >= 0 {
				n.credit.level = min(n.credit.most, held.Nanoseconds())
			}
			n.credit.settle(0, 0)
		}
	}
	if err := h.beginTogether(); err != nil {
		return err
	}
	for i, phase := range r.Phase {
		if i+1 >= len(h.groups) || phase < 0 || h.groups[i+1].bw == nil {
			continue
		}
		if err := h.beginPeriods(i+1, phase); err != nil {
			return err
		}
	}
	for i := range h.groups {
		if held := TimeAt(r.Holds, i-1); held >= 0 && h.groups[i].bw != nil {
			h.groups[i].bw.Hold(held)
		}
	}
	return nil
}

// TimeAt is the time of a cgroup in a list such as Phase; bandwidth.Never: it has none.
func TimeAt(all []time.Duration, i int) time.Duration {
	if i < 0 || i >= len(all) {
		return bandwidth.Never
	}
	return all[i]
}

// beginPeriods begins the periods of a group's limit anew, one of them at a moment.
func (h *host) beginPeriods(i int, at time.Duration) error {
	g := &h.groups[i]
	bw, err := h.newBandwidth(g.bw.Limit(), at%g.bw.Limit().Period)
	if err != nil {
		return err
	}
	bw.Skew = g.bw.Skew
	g.bw = bw
	h.queue.set(h.slots.period+i, bw.PeriodAt())
	return nil
}

// beginTogether begins the periods of all groups at one drawn moment where the kernel draws none for each: before 6.4 those
// of one length begin on the same ticks of the clock, and where a replay begins on it is not known.
func (h *host) beginTogether() error {
	if h.scenario.Host.Rules.RandomPhase() || h.tick == 0 {
		return nil
	}
	at := time.Duration(h.rng.Int64N(int64(bandwidth.MaxPeriod)))
	for i := range h.groups {
		if h.groups[i].bw == nil {
			continue
		}
		if err := h.beginPeriods(i, at); err != nil {
			return err
		}
	}
	return nil
}
