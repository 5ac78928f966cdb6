package diagnose

import (
	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/see/recording"
	"github.com/unthrottle/unthrottle/internal/see/schedule"
)

// cpu is the state of one CPU: its holder, and the container's threads that wait for it.
type cpu struct {
	known  bool // an event named the holder
	ours   bool
	thread *thread // the container's thread that holds it; nil: unknown or not ours
	owner  int     // index in the table of owners if not ours
	since  int64   // the time from which on the holder's time is not counted yet

	onCPU   int64 // time that the container held it
	busy    int64 // time that any owner held it
	allowed bool

	waiters []waiters
	waitAt  int64 // the time up to which the waiters' time is counted
	waited  int64 // time of threads that waited for nothing but this CPU
}

// waiters are threads of one pool that may run on the same CPUs, wait for this one, and are not held back.
type waiters struct {
	pool, class int
	n           int
	idle        float64 // class.idleTime up to which their waiting is counted
}

// class is a set of CPUs to which threads are bound.
type class struct {
	list    string
	cpus    cpuset.CPUSet // empty: all
	member  []bool        // by number, of the CPUs seen so far
	idle    int           // CPUs of the class that are idle now
	waiting int           // threads that wait and are not held back
	// idleTime is the time for which a waiting thread could have had an idle CPU. If n threads wait and m
	// CPUs are idle, it grows by m/n of each thread's waiting.
	idleTime float64
}

// has reports whether a CPU is in the class. It caches the set's answers, because the set is a map.
func (c *class) has(cpu int) bool {
	for len(c.member) <= cpu {
		c.member = append(c.member, c.cpus.IsEmpty() || c.cpus.Contains(len(c.member)))
	}
	return c.member[cpu]
}

func (c *class) add(d int64) {
	if c.idle <= 0 || c.waiting <= 0 {
		return
	}
	c.idleTime += float64(d) * min(1, float64(c.idle)/float64(c.waiting))
}

// cpu returns a CPU's state.
func (a *Analysis) cpu(n int32) *cpu {
	for int(n) >= len(a.cpus) {
		a.cpus = append(a.cpus, &cpu{allowed: a.classes[0].has(len(a.cpus))})
	}
	return a.cpus[n]
}

func (a *Analysis) idles(c *cpu) bool { return c.known && !c.ours && c.owner == idleOwner }

// setHolder takes a CPU from its holder and gives it to another one.
func (a *Analysis) setHolder(n int32, to schedule.Holder) {
	c := a.cpu(n)
	a.countHolder(c)
	a.countWaiters(c)
	wasIdle := a.idles(c)
	if c.ours && !to.Container {
		a.width.n--
	} else if !c.ours && to.Container {
		a.width.n++
	}
	if c.known && !c.ours {
		a.owners.leave(c.owner, a.now)
	}
	c.known, c.ours, c.thread, c.owner = true, to.Container, nil, 0
	switch {
	case to.Thread != nil:
		c.thread = a.threads[to.Thread.Index]
	case !to.Container:
		c.owner = a.owners.index(to.Owner)
		a.owners.take(c.owner, a.now)
	}
	if isIdle := a.idles(c); isIdle != wasIdle {
		d := -1
		if isIdle {
			d = 1
		}
		for _, k := range a.classes {
			if k.has(int(n)) {
				k.idle += d
			}
		}
	}
}

// countHolder counts the holder's time up to now.
func (a *Analysis) countHolder(c *cpu) {
	d := a.now - c.since
	c.since = a.now
	if d <= 0 || !c.known {
		return
	}
	if c.ours {
		c.onCPU += d
		c.busy += d
		if c.thread != nil {
			a.pools.all[c.thread.pool].ran(d)
		}
		return
	}
	if c.owner != idleOwner {
		c.busy += d
	}
	a.owners.all[c.owner].onAll += d
	if c.allowed {
		a.owners.all[c.owner].cpu += d
	}
}

// countWaiters counts the waiting of threads on a CPU up to now. Time in which they could have had an idle
// CPU counts as such, the rest by the holder of this CPU.
func (a *Analysis) countWaiters(c *cpu) {
	d := a.now - c.waitAt
	c.waitAt = a.now
	if d <= 0 {
		return
	}
	for i := range c.waiters {
		w := &c.waiters[i]
		all := int64(w.n) * d
		class := a.classes[w.class]
		idle := min(all, int64(float64(w.n)*(class.idleTime-w.idle)+0.5))
		w.idle = class.idleTime
		p := a.pools.all[w.pool]
		p.waiting.add(byIdle, idle)
		p.waiting.add(a.reason(c), all-idle)
		c.waited += all - idle
		if c.known && !c.ours {
			a.owners.all[c.owner].waited += all - idle
		}
	}
}

// reason returns why a thread waits on a CPU: by its holder.
func (a *Analysis) reason(c *cpu) int {
	switch {
	case c.ours:
		return byOwnThreads
	case !c.known:
		return byHost
	}
	switch a.owners.all[c.owner].kind {
	case recording.OwnerIdle:
		return byIdle
	case recording.OwnerContainer, recording.OwnerProcess:
		return byNeighbour
	}
	return byHost
}

// addWaiters adds a thread to those that wait on a CPU (by is 1), or takes it from them (-1).
func (a *Analysis) addWaiters(n int32, t *thread, by int) {
	if n < 0 || n >= schedule.MaxCPUs {
		n = 0
	}
	c := a.cpu(n)
	a.countWaiters(c)
	a.classes[t.class].waiting += by
	for i := range c.waiters {
		if w := &c.waiters[i]; w.pool == t.pool && w.class == t.class {
			w.n += by
			if w.n <= 0 {
				c.waiters[i] = c.waiters[len(c.waiters)-1]
				c.waiters = c.waiters[:len(c.waiters)-1]
			}
			return
		}
	}
	if by > 0 {
		c.waiters = append(c.waiters, waiters{pool: t.pool, class: t.class, n: by, idle: a.classes[t.class].idleTime})
	}
}
