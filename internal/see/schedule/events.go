package schedule

import (
	"cmp"
	"maps"
	"slices"

	"github.com/unthrottle/unthrottle/internal/see/recording"
)

// Add takes the next event.
func (r *Reader) Add(e *recording.Event) {
	r.now = max(r.now, min(e.AtNS, MaxAtNS))
	for _, w := range r.watchers {
		w.Event(r.now, e)
	}
	r.event = e
	switch e.Kind {
	case recording.Switch:
		r.onSwitch(e)
	case recording.Wakeup:
		r.onWakeup(e)
	case recording.Migrate:
		r.onMigrate(e)
	case recording.Exit:
		if t := r.threads[e.Thread]; t != nil && t.State == Running {
			t.dying = true
		} else if t != nil {
			r.end(t)
		}
	case recording.Name, recording.Enter:
		r.onName(e)
	case recording.Leave:
		r.onLeave(e)
	case recording.Hold:
		r.onHold(e)
	case recording.Release:
		if t := r.threads[e.Thread]; t != nil && t.State == Held {
			r.set(t, Did, Doing{State: Runnable, CPU: t.CPU}, nil)
		}
	case recording.Receive:
		r.onReceive(e)
	case recording.Send:
		r.onSend(e)
	}
}

// Finish ends the recording: no more is written to any request.
func (r *Reader) Finish() {
	r.event = nil
	byIndex := func(x, y *Connection) int { return cmp.Compare(x.Index, y.Index) }
	for _, c := range slices.SortedFunc(maps.Values(r.connections), byIndex) {
		r.over(c)
	}
}

func (r *Reader) onSwitch(e *recording.Event) {
	c := r.cpu(e.CPU)
	if c == nil {
		return
	}
	prev := r.thread(e.Thread)
	if lost := c.Thread; lost != nil && lost != prev {
		// The recording missed its switch, and whether it still wants a CPU.
		r.tell(Change{Kind: Contradicted})
		r.set(lost, Did, Doing{CPU: e.CPU}, nil)
	}
	if prev != nil {
		if prev.State == Running && c.Thread != prev {
			r.leftUnseen(prev)
		}
		next := Doing{CPU: e.CPU}
		if e.Flags&recording.PrevRunnable != 0 && !prev.dying {
			next = r.waits(e, e.CPU)
		}
		r.set(prev, Did, next, nil)
	}
	switch next := r.thread(e.NextThread); {
	case e.NextThread == 0:
		r.take(e.CPU, Holder{Owner: e.NextOwner})
	case next == nil:
		r.take(e.CPU, Holder{Container: true})
	default:
		r.run(next, e.CPU)
	}
	if prev != nil && prev.dying && prev.State != Running {
		r.end(prev)
	}
}

// waits is what a thread does that wants a CPU, by the event's mark.
func (r *Reader) waits(e *recording.Event, cpu int32) Doing {
	if e.Flags&recording.Throttled != 0 {
		return Doing{State: Held, CPU: cpu, Level: r.levels.Of(e.Cgroup)}
	}
	return Doing{State: Runnable, CPU: cpu}
}

func (r *Reader) onWakeup(e *recording.Event) {
	if t := r.thread(e.Thread); t != nil && t.State == Sleeping && !t.dying {
		r.set(t, Woke, r.waits(e, e.CPU), r.threads[e.Waker])
	}
}

func (r *Reader) onMigrate(e *recording.Event) {
	t := r.threads[e.Thread]
	if t == nil || t.State == Running || e.CPU < 0 || e.CPU >= MaxCPUs {
		return
	}
	next := t.Doing
	next.CPU = e.CPU
	r.set(t, Did, next, nil)
}

func (r *Reader) onName(e *recording.Event) {
	if e.Thread != 0 && e.Thread == e.TGID {
		r.nameProcess(e.TGID, e.Text)
	}
	t := r.thread(e.Thread)
	if t == nil {
		return
	}
	if e.Cgroup != 0 {
		t.Cgroup = e.Cgroup
	}
	r.name(t, e.TGID, e.Text)
}

// onLeave handles a thread that leaves the container while it runs or waits.
func (r *Reader) onLeave(e *recording.Event) {
	t := r.threads[e.Thread]
	if t == nil {
		return
	}
	if n := t.CPU; t.State == Running {
		r.set(t, Did, Doing{CPU: n}, nil)
		r.take(n, Holder{Owner: e.Owner})
	}
	r.end(t)
}

func (r *Reader) onHold(e *recording.Event) {
	t := r.threads[e.Thread]
	if t == nil || t.State != Runnable && t.State != Held {
		r.tell(Change{Kind: Contradicted})
		return
	}
	r.set(t, Did, Doing{State: Held, CPU: t.CPU, Level: r.levels.Of(e.Cgroup)}, nil)
}
