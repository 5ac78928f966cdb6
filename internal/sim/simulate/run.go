package simulate

import (
	"time"

	"github.com/unthrottle/unthrottle/bandwidth"
	"github.com/unthrottle/unthrottle/internal/scenario"
)

// Options of Run beyond the scenario.
type Options struct {
	// Seed of all random choices: phases, arrivals, sleeps.
	Seed uint64
	// Timeline is how many periods of each limited cgroup to return as a timeline; 0: none.
	Timeline int
	// Explain asks for the accounting of one period of each limited cgroup.
	Explain bool
	// Times, if set, receives each time that the outcome's quantiles count, in order, and its workload.
	Times func(workload string, took time.Duration)
	// Responses, if set, receives each response that a replay counts, in order: the index of its workload in the
	// scenario, when its cause came, since the beginning, and how long it took.
	Responses func(workload int, came, took time.Duration)
}

// Result of a run.
type Result struct {
	Outcome  scenario.Outcome
	Timeline []Timeline
	Explain  []Account
	// Events is the number of simulated events.
	Events uint64
}

// Account has the steps of one period of a cgroup: the first throttled one, or else the first that it used,
// or none.
type Account struct {
	Cgroup  string
	Limit   bandwidth.Limit
	Steps   []bandwidth.Step
	Dropped int // steps beyond the bound
}

// maxSteps bounds an Account.
const maxSteps = 400

// MaxTimeline bounds Options.Timeline.
const MaxTimeline = 200

// Run simulates a scenario from its beginning to its end, with its cgroups' remedies in force. The same
// scenario and seed give the same result. It returns an error for a remedy
// that cannot be applied, for a limit that the kernel refuses, and [Unmodelled].
func Run(s scenario.Scenario, o Options) (Result, error) {
	remedied, refused := s.Remedied()
	if refused != nil {
		return Result{}, refused
	}
	if err := unmodelled(&remedied); err != nil {
		return Result{}, err
	}
	h, err := newHost(&remedied, o.Seed)
	if err != nil {
		return Result{}, err
	}
	h.addTimelines(min(o.Timeline, MaxTimeline))
	accounts := h.addAccounts(o.Explain)
	h.times = o.Times
	h.run()
	r := Result{Outcome: h.outcome(), Timeline: h.timelines(), Events: h.events}
	for _, a := range accounts {
		r.Explain = append(r.Explain, a.result())
	}
	return r, nil
}

// run handles events until the scenario's end.
func (h *host) run() {
	s := &h.slots
	for {
		slot, at := h.queue.pop()
		if at == never || at > h.scenario.Duration {
			break
		}
		h.now = at
		h.events++
		switch {
		case slot < s.slack:
			h.onTimer(slot, true)
		case slot < s.credit:
			h.onTimer(slot-s.slack, false)
		case slot < s.ipi:
			h.onCredit(slot - s.credit)
		case slot < s.work:
			h.release((slot-s.ipi)/h.ncpu, (slot-s.ipi)%h.ncpu)
		case slot < s.arrive:
			h.onWork(slot - s.work)
		case slot < s.timeout:
			h.onArrival(slot - s.arrive)
		case slot < s.retry:
			h.onTimeout(slot - s.timeout)
		case slot < s.gate:
			h.onRetry(slot - s.retry)
		case slot < s.done:
			h.openGate()
		case slot < s.account:
			h.onDone(slot - s.done)
		case slot < s.tick:
			h.onTick(slot - s.account)
		case slot < s.wake:
			h.onTick(slot - s.tick)
		default:
			h.onWake(slot - s.wake)
		}
		h.repick()
	}
	h.now = h.scenario.Duration
	for c := range h.cpus {
		h.update(c, true)
	}
}

func (h *host) addTimelines(periods int) {
	if periods <= 0 {
		return
	}
	for i := range h.groups {
		g := &h.groups[i]
		if g.bw == nil {
			continue
		}
		period := g.bw.Limit().Period
		g.timeline = newTimeline(h.scenario.Cgroups[i-1].Name, g.bw.PeriodAt()%period, period,
			min(periods, int(h.scenario.Duration/period)))
	}
}

// timelines are those that addTimelines began.
func (h *host) timelines() (all []Timeline) {
	for _, g := range h.groups {
		if g.timeline != nil {
			all = append(all, *g.timeline)
		}
	}
	return all
}

// account collects the steps of one period at a time, with those of its end.
type account struct {
	kept      Account
	steps     []bandwidth.Step
	dropped   int
	used      bool
	ended     bool
	throttled bool
	full      bool // kept has a throttled period
}

func (h *host) addAccounts(on bool) []*account {
	var accounts []*account
	for i := range h.groups {
		bw := h.groups[i].bw
		if bw == nil || !on {
			continue
		}
		a := &account{kept: Account{Cgroup: h.scenario.Cgroups[i-1].Name, Limit: bw.Limit()}}
		bw.Trace = a.step
		accounts = append(accounts, a)
	}
	return accounts
}

func (a *account) step(s bandwidth.Step) {
	if a.full {
		return
	}
	if a.ended && s.At > a.steps[len(a.steps)-1].At {
		a.close()
	}
	if s.Kind == bandwidth.PeriodEnd {
		a.ended, a.throttled = true, s.Amount > 0
	}
	if len(a.steps) < maxSteps || s.Kind == bandwidth.PeriodEnd {
		a.steps = append(a.steps, s)
	} else {
		a.dropped++
	}
	a.used = a.used || s.Kind == bandwidth.Took
}

// close keeps the period if it is worth it, and begins the next one.
func (a *account) close() {
	if a.throttled || a.used && len(a.kept.Steps) == 0 {
		a.kept.Steps, a.kept.Dropped = append([]bandwidth.Step(nil), a.steps...), a.dropped
		a.full = a.throttled
	}
	a.steps, a.dropped, a.used, a.ended, a.throttled = a.steps[:0], 0, false, false, false
}

func (a *account) result() Account {
	if a.ended && !a.full {
		a.close()
	}
	return a.kept
}
