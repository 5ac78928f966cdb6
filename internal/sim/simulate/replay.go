package simulate

import (
	"fmt"
	"time"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/bandwidth"
	"github.com/unthrottle/unthrottle/internal/sim/scenario"
)

// Replayed is the kind of workload whose threads do what a Replay has for them.
// No scenario file has it.
const Replayed scenario.Kind = "replayed"

// StepKind is what a replayed thread does next.
type StepKind uint8

// The kinds of steps. All but StepRun and StepWake put the thread to sleep.
const (
	StepRun   StepKind = iota // uses For of CPU time
	StepWake                  // wakes Thread, once
	StepAwait                 // until a StepWake of another one names it; at once if one already has. For: when that was, for who asks
	StepUntil                 // until For since the beginning; at once if that is past
	StepSleep                 // for For
	StepTake                  // until its workload's Queue has something, and runs that
	StepEnd                   // for ever
)

// ReplayStep is one thing that a thread does.
type ReplayStep struct {
	Kind StepKind
	// Idle: a StepAwait or StepUntil for want of work, or a StepWake out of one, whose For is then how many the thread
	// had slept before. Of use in a Crew.
	Idle   bool
	Thread int32 // StepWake: index in Replay.Threads
	For    time.Duration
}

// Endless is the For of a run that does not stop.
const Endless = endless

// ReplayThread is one thread. After its last step it sleeps; a run that is the
// last step was cut off there, and is not measured.
type ReplayThread struct {
	CPU int // where it was when it began
	// Home: it wakes on CPU, if that is one of its own, and not where it last ran.
	Home    bool
	Allowed cpuset.CPUSet // its own affinity; empty: its cgroup's
	Steps   []ReplayStep
	// Again: after the last step it begins again, with its first StepSleep or StepAwait.
	Again bool
}

// QueuedRun is work that one of several threads takes: For of CPU time, from At on.
type QueuedRun struct{ At, For time.Duration }

// Crew says whether the threads of a workload share their work: what each did between
// two idle sleeps can be done by any of them. One that is through takes the next that
// has come, and sleeps only if there is none; who of those that sleep is woken goes by
// their order.
type WakeOrder uint8

// The kinds of crews.
const (
	NotShared   WakeOrder = iota // each thread does what is its own
	OldestFirst                  // who has slept longest is woken
	NewestFirst                  // who fell asleep last is
)

// Replay is what the threads of a scenario's workloads of kind Replayed do:
// those of the first one first, and so on. It is not changed by a run, so that
// several can share it.
type Replay struct {
	Threads []ReplayThread
	// Queues of the workloads, by index in the scenario, in order of At; nil: none has one.
	Queues [][]QueuedRun
	// Crews of the workloads, by index in the scenario; nil: there is none.
	WakeOrders []WakeOrder
	// Phase is when a period of that cgroup begins, by index in the scenario;
	// bandwidth.Never, or not there: left to chance.
	Phase []time.Duration
}

// Times is a distribution of times, each off by less than 1 %.
type Times struct{ histogram }

// NewTimes is an empty distribution.
func NewTimes() *Times { return &Times{newHistogram()} }

// Add counts a time, at least 0.
func (t *Times) Add(d time.Duration) { t.add(max(0, d)) }

// Count of all times.
func (t *Times) Count() uint64 { return t.n }

// Quantile in milliseconds: the time that a share p of all does not exceed; nil: there are none.
func (t *Times) Quantile(p float64) *float64 { return t.quantile(p) }

// Max in milliseconds; nil: there are none.
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
	for i, n := range o.counts {
		t.counts[i] += n
	}
}

// ReplayTimes of one workload. Both begin when the cause came: the moment that
// was slept for, the wake-up by another thread; late where the thread was still
// busy with what came before.
type ReplayTimes struct {
	Delay    *Times // to the first CPU time
	Response *Times // to the next sleep
	// Unfinished is how much CPU time was still to come of what had begun or should have.
	Unfinished time.Duration
}

// ReplayResult of a RunReplay.
type ReplayResult struct {
	Outcome scenario.Outcome
	Times   []ReplayTimes // by workload
	Events  uint64
}

// RunReplay is Run for a scenario whose workloads of kind Replayed do what r
// says. Errors also are a replay that does not fit the scenario.
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
	h.run()
	for t := range h.replay.threads {
		h.replayUnfinished(t)
	}
	return ReplayResult{Outcome: h.outcome(), Times: h.replay.times, Events: h.events}, nil
}

func (r *Replay) check(s *scenario.Scenario) error {
	n := 0
	for _, w := range s.Workloads {
		if w.Kind != Replayed {
			return fmt.Errorf("replay: workload %s is of kind %s", w.Name, w.Kind)
		}
		n += w.Threads
	}
	if len(r.WakeOrders) > len(s.Workloads) {
		return fmt.Errorf("replay: crews of %d workloads for %d", len(r.WakeOrders), len(s.Workloads))
	}
	if n != len(r.Threads) {
		return fmt.Errorf("replay: %d threads for workloads with %d", len(r.Threads), n)
	}
	idle := make([]time.Duration, len(r.Threads))
	for i := range r.Threads {
		for _, step := range r.Threads[i].Steps {
			if step.idles() {
				idle[i]++
			}
		}
	}
	for i := range r.Threads {
		for _, step := range r.Threads[i].Steps {
			if step.For < 0 || step.Kind > StepEnd || step.Kind == StepWake && (step.Thread < 0 || int(step.Thread) >= n || step.Idle && step.For >= idle[step.Thread]) {
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
	// scripts are what there is to do: first those of the threads, then what crews share. items is where the shared ones
	// of each thread begin, calls who wakes a thread for what is its own.
	scripts []replayScript
	items   []int
	calls   []replayCalls
	threads []replayThread
	queues  []replayQueue // by workload
	crews   []workQueue   // by workload
	times   []ReplayTimes // by workload
}

// replayScript is some of the steps of a thread.
type replayScript struct {
	of    int
	steps []ReplayStep
	again bool
}

// replayCalls are wake-ups of a thread by others.
type replayCalls struct {
	early  ring[time.Duration] // that nobody waited for yet
	waiter ring[int]           // threads that wait for the next ones
}

// replayThread is what a thread is doing.
type replayThread struct {
	script int           // its own, or one of its crew's
	at     int           // the step that comes next
	came   time.Duration // the cause of what it does; never: it began before the replay
	fresh  bool          // has not run since
	sleeps bool
	taken  bool // what it does came from the queue
}

// replayQueue is how far a workload's queue is.
type replayQueue struct {
	next    int
	waiting ring[QueuedRun]
	idle    ring[int]
}

func (h *host) addReplay(r *Replay) error {
	h.replay = &replayer{
		Replay: r, scripts: make([]replayScript, len(r.Threads)), items: make([]int, len(r.Threads)), calls: make([]replayCalls, len(r.Threads)),
		threads: make([]replayThread, len(r.Threads)), queues: make([]replayQueue, len(h.works)), crews: make([]workQueue, len(h.works)),
	}
	for range h.works {
		h.replay.times = append(h.replay.times, ReplayTimes{Delay: NewTimes(), Response: NewTimes()})
	}
	for t := range r.Threads {
		spec, th := &r.Threads[t], &h.threads[t]
		th.fresh, th.cpu = false, spec.CPU
		h.replay.threads[t].script = t
		h.replay.scripts[t] = replayScript{of: t, steps: spec.Steps, again: spec.Again}
		if !spec.Allowed.IsEmpty() {
			of := th.allowed // what its workload may use
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
	for i, crew := range r.WakeOrders {
		if crew != NotShared {
			h.shareSteps(i, crew)
		}
	}
	for i, phase := range r.Phase {
		if i+1 >= len(h.groups) || phase < 0 || h.groups[i+1].bw == nil {
			continue
		}
		g := &h.groups[i+1]
		bw, err := bandwidth.New(&h.scenario.Host.Rules, h.ncpu, g.bw.Limit(), phase%g.bw.Limit().Period)
		if err != nil {
			return err
		}
		g.bw = bw
		h.queue.set(h.slots.period+i+1, bw.PeriodAt())
	}
	return nil
}
