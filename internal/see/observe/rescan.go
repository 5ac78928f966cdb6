package observe

import (
	"errors"
	"time"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
)

// A scan that inotify asks for waits scanShare times as long as the last scan took, but at most maxScanDelay. The first
// bound keeps us from scanning all the time while programs make and remove cgroups without end. The second one keeps a
// new container visible within a second.
const (
	scanShare    = 10
	maxScanDelay = 400 * time.Millisecond
	rewatchEvery = 6 // rescans
	// mostRescans bounds how many times RescanInterval a long scan delays the next one that nothing asks for.
	mostRescans = 6
)

// rescan lists the containers and updates the tracks.
func (w *Watcher) rescan(now time.Time) {
	// The watches come before the list. The list then has cgroups made in between, and inotify reports later ones.
	// Without a new cgroup no watch is missing, but every sixth rescan sets them in any case.
	if w.dirty || w.unwatched <= 0 {
		w.unwatched = rewatchEvery
		if err := w.notifier.watch(w.host, w.opt.Scope); err != nil && !errors.Is(err, cgroup.ErrNoCgroup) {
			w.opt.Log.Debug("not every cgroup is watched", "err", err)
		}
	}
	w.unwatched--
	w.dirty, w.inside = false, true
	defer func() {
		took := w.now().Sub(now)
		w.earliestScan = w.now().Add(min(scanShare*took, maxScanDelay))
		w.nextRescan = now.Add(min(max(w.opt.RescanInterval, lookShare*took), mostRescans*w.opt.RescanInterval))
	}()
	list, err := w.opt.List()
	if err != nil {
		w.listFailed(err)
		return
	}
	w.listErr = false
	w.take(list)
}

func (w *Watcher) listFailed(err error) {
	level := w.opt.Log.Warn
	if w.listErr || errors.Is(err, cgroup.ErrNoCgroup) {
		level = w.opt.Log.Debug
	}
	w.listErr = true
	level("cannot list the containers; those known before are still watched", "err", err)
}

// take makes the list the set of watched containers.
func (w *Watcher) take(list []container.Container) {
	w.left = max(0, len(list)-w.opt.MaxContainers)
	list = list[:len(list)-w.left]
	for _, t := range w.tracks {
		t.listed = false
	}
	var came, gone []container.Container
	tracks := make([]*track, 0, len(list))
	for _, c := range list {
		t := w.byPath[c.Group.Path]
		if t == nil || !t.vacant {
			w.findCounterparts(&c, t != nil && t.outdated)
		}
		switch {
		case t == nil:
			t = &track{number: w.numbers}
			w.numbers++
			w.byPath[c.Group.Path] = t
			came = append(came, c)
		case t.listed: // twice in the list
			continue
		}
		t.container, t.listed, t.outdated = c, true, t.vacant
		tracks = append(tracks, t)
	}
	for _, t := range w.tracks {
		if !t.listed {
			delete(w.byPath, t.container.Group.Path)
			gone = append(gone, t.container)
		}
	}
	w.tracks = tracks
	w.changed(came, gone)
}

// findCounterparts looks up a container's cgroups in the other hierarchies again, on separate v1 hierarchies. It does
// so where an ancestor's cgroup serves or a cgroup is gone. Right after its creation a container may lack the others.
// Its own cpuset may appear at any time; a remedy may make it.
func (w *Watcher) findCounterparts(c *container.Container, outdated bool) {
	g := c.Group
	if outdated || inherits(g.Path, g.CPUSetPath) || inherits(g.Path, g.CPUAcctPath) {
		if now, err := w.host.Group(g.Path); err == nil {
			c.Group = now
		}
	}
}

// inherits reports whether a counterpart is an ancestor's.
func inherits(path, counterpart string) bool {
	return counterpart != "" && counterpart != path && cgroup.Below(path, counterpart)
}

func (w *Watcher) changed(came, gone []container.Container) {
	if len(came)+len(gone) > 0 {
		w.opt.Log.Debug("containers changed", "came", len(came), "gone", len(gone), "now", len(w.tracks))
		w.opt.Changed(came, gone)
	}
}

// sample reads all containers and makes the observations.
func (w *Watcher) sample(now time.Time) Snapshot {
	snapshot := Snapshot{At: now, Left: w.left, Observations: make([]Observation, 0, len(w.tracks))}
	var came, gone []container.Container
	w.sampler.begin()
	looks := (w.inside || w.written) && !now.Before(w.earliestLook)
	if w.inside = (w.inside || w.written) && !looks; looks {
		w.sampler.look, w.sampler.looking = w.sampler.round, 0
	}
	w.sampler.unwritten, w.written = w.notifier.whole && !w.written, false
	for _, t := range w.tracks {
		if !w.vacate(t, &t.samples[t.latest]) {
			w.sampler.greet(&t.container)
		}
	}
	kept := w.tracks[:0]
	for _, t := range w.tracks {
		if t.vacant {
			kept = append(kept, t)
			snapshot.Vacant++
			continue
		}
		prev := &t.samples[t.latest]
		cur := &t.samples[1-t.latest]
		w.sampler.fill(cur, &t.container)
		if cur.Gone {
			delete(w.byPath, t.container.Group.Path)
			gone = append(gone, t.container)
			continue
		}
		kept = append(kept, t)
		if t.taken && prev.Levels[0].ID != cur.Levels[0].ID {
			gone, came = append(gone, prev.Container), append(came, t.container)
			t.taken = false
			t.outdated = true
		}
		if t.outdated = t.outdated || cur.counterpartGone; t.outdated {
			w.dirty = true // its counterparts may have changed
		}
		if t.taken {
			snapshot.Observations = append(snapshot.Observations, Delta(prev, cur))
		}
		t.latest, t.taken = 1-t.latest, true
	}
	clear(w.tracks[len(kept):])
	w.tracks = kept
	if looks {
		w.earliestLook = now.Add(lookShare * w.sampler.looking)
	}
	w.sampler.sweep()
	w.changed(came, gone)
	snapshot.Containers, snapshot.Hot = len(w.tracks), w.sampler.Hot()
	snapshot.Handles, snapshot.Reads = w.sampler.Handles(), w.sampler.Reads()
	return snapshot
}
