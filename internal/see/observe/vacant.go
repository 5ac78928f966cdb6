package observe

import (
	"bytes"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
)

const (
	// vacantAfter is how many rounds a container must be there before it may count as vacant: a runtime makes a cgroup
	// before it moves the first process there. A container is looked at for it in one of as many rounds.
	vacantAfter = 10
	// vacantTurn is in how many rounds a vacant container is looked at once. A process that is written into cgroup.procs
	// shows at once by inotify. One that clone3(2) makes there (CLONE_INTO_CGROUP) does not.
	vacantTurn = 30
)

// vacate decides whether a container is left out of this round, because no process is in it.
func (w *Watcher) vacate(t *track, prev *Sample) bool {
	if !w.opt.LeaveVacant {
		return false
	}
	t.rounds++
	turn := uint64(vacantAfter)
	if t.vacant {
		turn = vacantTurn
	}
	switch {
	case t.entered:
		t.vacant, t.entered = false, false
	case (t.rounds+t.number)%turn != 0 || t.rounds < vacantAfter:
	case t.vacant || t.taken && idle(&t.samples[1-t.latest], prev):
		t.vacant = w.sampler.empty(t.container.Group)
	}
	if t.vacant {
		t.taken = false // its next window begins when a process is there
	}
	return t.vacant
}

// idle reports whether two samples show the same CPU time.
func idle(before, last *Sample) bool {
	return before.HasUsage && last.HasUsage && before.Usage == last.Usage
}

// empty reports whether a cgroup has no process, and none below it. What cannot be read is not empty.
func (s *Sampler) empty(g cgroup.Group) bool {
	below, err := s.host.Children(cgroup.CPU, g.Path)
	if err != nil || len(below) > 0 {
		return false
	}
	var h handle
	defer s.files.close(&h)
	text, err := s.files.read(&h, s.host.Dir(cgroup.CPU, g.Path), cgroup.FileProcs)
	return err == nil && len(bytes.TrimSpace(text)) == 0
}

// enter notes that processes were written into these cgroups.
func (w *Watcher) enter(paths []string) {
	for _, path := range paths {
		if t := w.byPath[path]; t != nil {
			t.entered = true
		}
	}
}
