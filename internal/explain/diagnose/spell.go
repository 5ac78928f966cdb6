package diagnose

import (
	"cmp"
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/internal/see/recording"
)

// Spell is a stretch of time in which a thread of the container did one thing.
type Spell struct {
	From, To  time.Duration // since Explanation.Start
	TID, TGID uint32        // TGID is 0 where the recording never named it
	Comm      string        // raw; "": never named
	State     recording.State
	// CPU is where it ran, or in whose queue it waited last.
	CPU int32
	// HeldBy is the cgroup whose quota held it back; "": none did. It is Runnable then.
	HeldBy string
}

// Stop is a stretch of time in which the quota of one cgroup held back at least one of the container's threads.
type Stop struct {
	From, To time.Duration // since Explanation.Start
	Cgroup   string
	Own      bool // the container's own cgroup, or one below it
}

// endSpell tells what a thread has done up to now; what comes after is another spell.
func (a *Analysis) endSpell(t *thread) {
	from := t.since
	t.since = a.now
	if a.o.Spells == nil || from == a.now || t.state == recording.Sleeping {
		return
	}
	s := Spell{From: span(from), To: span(a.now), TID: t.tid, TGID: t.tgid, Comm: t.comm, State: t.state, CPU: t.cpu}
	if t.heldBy >= 0 {
		s.HeldBy = a.levels.all[t.heldBy].Path
	}
	a.o.Spells(s)
}

// endStop tells that a level holds no thread back any longer, or that the recording ends.
func (a *Analysis) endStop(l *level) {
	if a.o.Stops != nil && l.heldAt < a.now {
		a.o.Stops(Stop{From: span(l.heldAt), To: span(a.now), Cgroup: l.Path, Own: l.own})
	}
}

// endSpells tells of all that goes on, in the order of the threads' numbers.
func (a *Analysis) endSpells() {
	if a.o.Spells != nil {
		all := make([]*thread, 0, len(a.threads))
		for _, t := range a.threads {
			all = append(all, t)
		}
		slices.SortFunc(all, func(x, y *thread) int { return cmp.Compare(x.tid, y.tid) })
		for _, t := range all {
			a.endSpell(t)
		}
	}
	for i := range a.levels.all {
		if l := &a.levels.all[i]; l.held > 0 {
			a.endStop(l)
		}
	}
}
