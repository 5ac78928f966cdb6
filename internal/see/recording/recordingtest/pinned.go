package recordingtest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/bandwidth"
	"github.com/unthrottle/unthrottle/internal/see/recording"
)

// Pinned is a load of one thread per CPU, as in fibtest (seed 001, part two). No thread competes for a CPU, so all that
// happens is the effect of the kernel's bandwidth control.
type Pinned struct {
	// Kernel is the release whose rules apply, such as "4.19".
	Kernel        string
	CPUs, HZ      int
	Quota, Period time.Duration
	// Fast threads burn; the others run for Run and sleep for Sleep, in turn.
	Fast       int
	Run, Sleep time.Duration
	Seed       uint64
}

// Record simulates the load with package bandwidth, and marks the recording as simulated. It fails for an unknown
// release and for a limit that the kernel refuses.
func (p Pinned) Record(length time.Duration) (recording.Recording, error) {
	rules, err := bandwidth.For(p.Kernel)
	if err != nil {
		return recording.Recording{}, fmt.Errorf("pinned: %s: %w", p.Kernel, err)
	}
	group, err := bandwidth.New(&rules, p.CPUs, bandwidth.Limit{Quota: p.Quota, Period: p.Period}, 0)
	if err != nil {
		return recording.Recording{}, err
	}
	s := New(p.CPUs).Limit(p.Quota, p.Period).Process("fibtest")
	h := s.Header()
	h.Host.Kernel, h.Host.HZ = p.Kernel, &p.HZ
	h.Target = recording.Target{Path: "/parent/container", ID: ContainerID, Name: "simulated fibtest"}
	h.CPUsAllowed = cpuset.New(h.Host.CPUs.UnsortedList()...)
	h.Features = recording.Features{Mark: recording.MarkQueue, Periods: true}
	h.NotMeasured = []string{"everything: simulated by the rules of Linux " + p.Kernel + ", not recorded on a kernel"}
	fast, slow := s.Threads("fast", p.Fast), s.Threads("slow", p.CPUs-p.Fast)
	for i := range h.Threads {
		if n := i - 1; n >= 0 {
			h.Threads[i].CPU, h.Threads[i].Allowed = int32(n), decimal(n)
		}
	}
	run := &pinnedRun{Pinned: p, group: group, tick: time.Second / time.Duration(p.HZ)}
	rng := rand.New(rand.NewPCG(p.Seed, 0))
	for i, tid := range append(fast, slow...) {
		c := pinnedCPU{tid: tid, fast: i < p.Fast}
		if !c.fast {
			c.wake = time.Duration(rng.Int64N(int64(p.Sleep)))
		}
		run.cpus = append(run.cpus, c)
		run.tell(0, recording.Event{Kind: recording.Switch, CPU: int32(i)})
	}
	run.until(length)
	usage := group.Stat(length)
	return recording.Recording{Header: *h, Events: run.events, Footer: recording.Footer{
		EndNS: length.Nanoseconds(), UsageNS: new(usage.Usage.Nanoseconds()), StealNS: map[int]int64{},
		Periods: new(usage.Periods), ThrottledPeriods: new(usage.ThrottledPeriods), ThrottledNS: new(usage.Throttled.Nanoseconds()),
	}}, nil
}

// pinnedRun is a run of a Pinned.
type pinnedRun struct {
	Pinned
	group  *bandwidth.Group
	tick   time.Duration
	cpus   []pinnedCPU
	events []recording.Event
}

type pinnedCPU struct {
	tid           uint32
	fast          bool
	running, held bool
	wake          time.Duration // while it sleeps
	end           time.Duration // of its run, while it runs
	charged       time.Duration // up to this time
	left          time.Duration // of its run, while it is held
}

func (r *pinnedRun) tell(now time.Duration, e recording.Event) {
	e.AtNS = now.Nanoseconds()
	r.events = append(r.events, e)
}

const never = time.Duration(math.MaxInt64)

// due maps a time that is never due to the largest one.
func due(at time.Duration) time.Duration {
	if at == bandwidth.Never {
		return never
	}
	return at
}

// at returns when a CPU's next event is.
func (r *pinnedRun) at(c *pinnedCPU) time.Duration {
	switch {
	case c.held:
		return never
	case !c.running:
		return c.wake
	}
	tick := (c.charged/r.tick + 1) * r.tick
	if c.fast {
		return tick
	}
	return min(tick, c.end)
}

func (r *pinnedRun) until(length time.Duration) {
	for {
		first, now := -1, min(due(r.group.PeriodAt()), due(r.group.SlackAt()))
		for i := range r.cpus {
			if at := r.at(&r.cpus[i]); at < now {
				first, now = i, at
			}
		}
		if now >= length {
			break
		}
		switch {
		case first >= 0:
			r.step(now, first)
		case now == r.group.PeriodAt():
			r.period(now)
		default:
			r.free(now, r.group.SlackTimer(now, nil))
		}
	}
	for i := range r.cpus {
		if c := &r.cpus[i]; c.running {
			r.group.Charge(length, i, length-c.charged, true)
		}
	}
}

// step is a CPU's own event: a wake-up, a tick, or the end of a run.
func (r *pinnedRun) step(now time.Duration, i int) {
	c := &r.cpus[i]
	if !c.running {
		c.left = r.Run
		stopped := r.group.Enqueue(now, i)
		e := recording.Event{Kind: recording.Wakeup, Thread: c.tid, CPU: int32(i)}
		if stopped {
			c.held = true
			e.Flags, e.Cgroup = recording.Throttled, ContainerID
		}
		r.tell(now, e)
		if !stopped {
			r.run(now, i)
		}
		return
	}
	done := !c.fast && now >= c.end
	empty := r.group.Charge(now, i, now-c.charged, !done)
	c.charged = now
	e := recording.Event{Kind: recording.Switch, CPU: int32(i), Thread: c.tid}
	switch {
	case done:
		r.group.Dequeue(now, i)
		r.group.Check(now, i, false)
		c.running, c.wake = false, now+r.Sleep
	case empty && r.group.Check(now, i, true):
		c.running, c.held, c.left = false, true, c.end-now
		e.Flags, e.Cgroup = recording.PrevRunnable|recording.Throttled, ContainerID
	default:
		return
	}
	r.tell(now, e)
}

func (r *pinnedRun) run(now time.Duration, i int) {
	c := &r.cpus[i]
	c.running, c.charged, c.end = true, now, now+c.left
	r.tell(now, recording.Event{Kind: recording.Switch, CPU: int32(i), NextThread: c.tid})
}

func (r *pinnedRun) period(now time.Duration) {
	stopped := uint32(0)
	for i := range r.cpus {
		if r.group.Throttled(i) {
			stopped++
		}
	}
	stat := r.group.Stat(now)
	r.tell(now, recording.Event{Kind: recording.Period, Cgroup: ContainerID, Period: recording.PeriodState{
		QuotaNS: r.Quota.Nanoseconds(), LeftNS: r.group.Pool().Nanoseconds(), Periods: uint32(stat.Periods),
		Throttled: uint32(stat.ThrottledPeriods), StoppedCPUs: stopped,
	}})
	r.free(now, r.group.PeriodTimer(now, nil))
}

// free lets the CPUs run that the group has released.
func (r *pinnedRun) free(now time.Duration, cpus []int) {
	for _, i := range cpus {
		if !r.group.Unthrottle(now, i) || !r.cpus[i].held {
			continue
		}
		if r.group.Enqueue(now, i) {
			continue
		}
		r.cpus[i].held = false
		r.tell(now, recording.Event{Kind: recording.Release, Thread: r.cpus[i].tid, CPU: int32(i)})
		r.run(now, i)
	}
}
