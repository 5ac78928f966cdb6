package diagnose

// wallTimes are the wall times in which at least one thread of the container waited for a CPU, by who held that CPU: what
// the waiting cost, in the unit of stopped time. Thread time counts each waiting thread.
type wallTimes struct {
	others, own int64 // behind other owners and the kernel; behind threads of its own
}

// countBehind counts a stretch of time without a change. A thread that could have had an idle CPU waits for none.
func (a *Analysis) countBehind(d int64) {
	if a.wanted.n-a.width.n-a.held <= 0 {
		return
	}
	others, own := false, false
	for _, c := range a.cpus {
		if !a.blocked(c) {
			continue
		}
		switch a.reason(c) {
		case byOwnThreads:
			own = true
		case byNeighbour, byHost:
			others = true
			if c.known && !c.ours {
				a.owners.all[c.owner].madeWait(a.now, d)
			}
		}
	}
	if others {
		a.behind.others += d
	}
	if own {
		a.behind.own += d
	}
}

// blocked reports whether a thread waits on a CPU while too few others are idle.
func (a *Analysis) blocked(c *cpu) bool {
	for i := range c.waiters {
		if of := a.classes[c.waiters[i].class]; of.idle < of.waiting {
			return true
		}
	}
	return false
}

// madeWait counts the wall time once, on however many CPUs threads wait for the owner.
func (o *owner) madeWait(now, d int64) {
	if o.waitedAt != now {
		o.waitedAt = now
		o.waitedWall += d
	}
}

// behindOthers is the wall time of waiting for CPUs that others held. Where blameless ones are among them it is a bound: at most
// the sum over the others, whose times overlap.
func (a *Analysis) behindOthers() int64 {
	sum, blameless := int64(0), false
	for _, o := range a.owners.all {
		if a.owners.blameless(o) {
			blameless = true
		} else {
			sum += o.waitedWall
		}
	}
	if !blameless {
		return a.behind.others
	}
	return min(a.behind.others, sum)
}
