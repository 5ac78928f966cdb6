package diagnose

import (
	"cmp"
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/internal/see/recording"
	"github.com/unthrottle/unthrottle/internal/see/schedule"
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
func (a *Analysis) endSpell(t *thread, was schedule.Doing) {
	from := t.since
	t.since = a.now
	if a.o.Spells == nil || from == a.now || !was.Wants() {
		return
	}
	s := Spell{From: span(from), To: span(a.now), TID: t.TID, TGID: t.TGID, Comm: t.comm, State: recording.Runnable, CPU: was.CPU}
	switch was.State {
	case schedule.Running:
		s.State = recording.Running
	case schedule.Held:
		s.HeldBy = a.levels.all[was.Level].Path
	}
	a.o.Spells(s)
}

// endStop tells that a level holds no thread back any longer, or that the recording ends.
func (a *Analysis) endStop(l *level) {
	if a.o.Stops != nil && l.heldAt < a.now {
		a.o.Stops(Stop{From: span(l.heldAt), To: span(a.now), Cgroup: l.Path, Own: l.Own})
	}
}

// endSpells tells of all that goes on, in the order of the threads' numbers.
func (a *Analysis) endSpells() {
	if a.o.Spells != nil {
		there := slices.DeleteFunc(slices.Clone(a.threads), func(t *thread) bool { return t == nil })
		slices.SortFunc(there, func(x, y *thread) int { return cmp.Compare(x.TID, y.TID) })
		for _, t := range there {
			a.endSpell(t, t.Doing)
		}
	}
	for i := range a.levels.all {
		if l := &a.levels.all[i]; l.held > 0 {
			a.endStop(l)
		}
	}
}
