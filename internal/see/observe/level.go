package observe

import (
	"bytes"
	"errors"
	"time"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
)

// level is one cgroup of the cpu hierarchy: a container's own or an ancestor. It lives as long as the Sampler samples a
// container below it. Levels find each other by path, not by pointer, because a cgroup may be removed and made again.
type level struct {
	path, dir   string
	top         bool   // the highest level that we can see
	round       uint64 // of the last full sample
	gone        bool
	stat, local handle
	counters    Counters
	statErr     error
	statRead    bool // the counters belong to this round
	localTime   time.Duration
	localErr    error
	localRound  uint64

	limits     [3]handle
	raw        []byte // the contents of the limit files, joined; nil: not read
	limit      cgroup.Limit
	limitErr   error
	wasLimited bool // in the previous round

	hot         bool
	lastStopped time.Time
	cells       []reading // since the last full sample
	cellsDone   bool      // a full sample has ended them

	threads *threadUse // nil where a file has its CPU time

	sampled uint64 // the last round in which it was a container's own
	below   below

	above  uint64    // the last round in which a container was below it
	number uint64    // spreads the levels over the rounds: see turn
	readAt time.Time // of the counters
}

// level returns the level of a path and makes it if necessary. It returns nil for a path that cannot lie below the
// mount.
func (s *Sampler) level(path string) *level {
	if l, ok := s.levels[path]; ok {
		return l
	}
	dir := s.host.Dir(cgroup.CPU, path)
	if dir == "" {
		return nil
	}
	l := &level{path: path, dir: dir, number: s.made, limit: cgroup.Unlimited(), top: path == "/" || path == s.host.Top(cgroup.CPU)}
	s.levels[path] = l
	s.made++
	return l
}

// readLevel reads a level's limit. It also reads the counters if the level is a container's own or has a quota. It does
// so once per round. The counters of a level that rests are those of the last reading.
func (s *Sampler) readLevel(l *level, now time.Time, own, rests bool) {
	if l.round != s.round {
		l.round, l.statRead, l.gone = s.round, false, false
		l.wasLimited = l.limit.Limited()
		if !s.limitHolds(l) {
			s.readLimit(l)
		}
	}
	if rests && !l.statRead {
		l.statRead, l.localRound = true, s.round
		l.cells = l.cells[:0]
	}
	if !l.statRead && (own || l.wasLimited || l.limit.Limited()) {
		s.readStat(l, now)
		l.statRead, l.cellsDone = true, true
		if l.raw == nil && !l.gone { // the cgroup is new under this path, so its limit may differ
			s.readLimit(l)
		}
	}
	l.hot = l.statRead && !l.lastStopped.IsZero() && now.Sub(l.lastStopped) <= s.opt.HotFor
}

// readStat reads cpu.stat. Another inode under the path is another cgroup, so readStat discards everything it knew
// about the old one.
func (s *Sampler) readStat(l *level, now time.Time) {
	if l.cellsDone {
		l.cells, l.cellsDone = l.cells[:0], false
	}
	inode := l.stat.inode
	text, err := s.files.read(&l.stat, l.dir, cgroup.FileStat)
	if errors.Is(err, errGone) && !l.gone {
		// The cgroup is gone, or was removed and made again. The old handles are useless either way; the path may lead
		// to a new cgroup.
		s.closeLevel(l)
		text, err = s.files.read(&l.stat, l.dir, cgroup.FileStat)
	}
	if errors.Is(err, errGone) {
		s.closeLevel(l)
		l.gone = true
		return
	}
	again := inode != 0 && l.stat.inode != inode
	if again {
		l.lastStopped, l.cells, l.threads = time.Time{}, l.cells[:0], nil
	}
	was, had := l.counters, l.statErr == nil && inode != 0 && !again && !l.readAt.IsZero()
	if err == nil {
		l.counters, err = parseCounters(text)
	}
	l.gone, l.statErr, l.readAt = false, err, now
	if err != nil {
		l.counters = Counters{}
		return
	}
	if had && l.counters.HasBandwidth && was.HasBandwidth && !l.counters.before(was) {
		gained := l.counters.Throttled - was.Throttled
		if gained > 0 {
			l.lastStopped = now
		}
		if l.hot && len(l.cells) < maxCells {
			l.cells = append(l.cells, reading{now, gained})
		}
	}
}

// maxCells bounds the readings between two full samples, at any rates that the caller sets.
const maxCells = 64

// readLocal reads cpu.stat.local once per round, right after cpu.stat: its time includes that of cpu.stat.
func (s *Sampler) readLocal(l *level) {
	if l.localRound == s.round {
		return
	}
	l.localRound = s.round
	text, err := s.files.read(&l.local, l.dir, cgroup.FileStatLocal)
	if err == nil {
		l.localTime, err = parseLocal(text)
	}
	l.localErr = err
}

// readLimit reads the limit files. It has package cgroup parse them only when their content changed.
func (s *Sampler) readLimit(l *level) {
	v, ok := s.host.Version(cgroup.CPU)
	if !ok {
		return
	}
	changed, err := s.limitChanged(l, limitFiles[v])
	if errors.Is(err, errGone) {
		s.closeLevel(l)
		changed, err = s.limitChanged(l, limitFiles[v])
	}
	switch {
	case errors.Is(err, errGone):
		s.closeLevel(l)
		l.gone = true
	case err != nil:
		l.raw, l.limitErr = nil, err
	case changed:
		l.limit, l.limitErr = cgroup.ReadLimit(s.host, l.path)
	}
}

// limitChanged reads the limit files and reports whether they differ from the last read.
func (s *Sampler) limitChanged(l *level, names []string) (changed bool, err error) {
	changed = l.raw == nil
	at := 0
	for i, name := range names {
		text, err := s.files.read(&l.limits[i], l.dir, name)
		if err != nil && !errors.Is(err, errNoFile) {
			return false, err
		}
		if changed || !bytes.HasPrefix(l.raw[at:], text) {
			changed = true
			l.raw = append(l.raw[:at], text...)
		}
		at += len(text)
	}
	if l.raw == nil {
		l.raw = []byte{} // read, but none of the files exists: this is the root
	}
	changed = changed || at != len(l.raw)
	l.raw = l.raw[:at]
	return changed, nil
}

var limitFiles = map[cgroup.Version][]string{
	cgroup.V1: cgroup.LimitFiles(cgroup.V1),
	cgroup.V2: cgroup.LimitFiles(cgroup.V2),
}

// add copies a level's values to the end of a sample's list and reuses its memory where possible.
func (s *Sample) add(list []LevelSample, l *level) []LevelSample {
	n := len(list)
	if n < cap(list) {
		list = list[:n+1]
	} else {
		list = append(list, LevelSample{})
	}
	to := &list[n]
	*to = LevelSample{Level: cgroup.Level{Path: l.path, Limit: l.limit}, ID: l.stat.inode, cells: to.cells[:0]}
	if l.limitErr != nil {
		s.Hidden = true
		s.missing("limit of " + l.path + ": " + l.limitErr.Error())
	}
	if !l.statRead {
		return list
	}
	to.Stat = l.counters
	to.cells = append(to.cells, l.cells...)
	if l.statErr != nil {
		s.missing(note(cgroup.FileStat+" of "+l.path, l.statErr))
	}
	return list
}

func (s *Sampler) closeLevel(l *level) {
	s.files.close(&l.stat)
	s.files.close(&l.local)
	for i := range l.limits {
		s.files.close(&l.limits[i])
	}
	l.raw = nil
}
