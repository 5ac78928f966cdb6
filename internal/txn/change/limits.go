package change

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
)

// values lets cgroup.ReadLimit read from a State, so that the meaning of the limit files stands in one place.
type values struct {
	cgroup.FS
	state State
	with  map[Setting]string
}

func (v values) Version(c cgroup.Controller) (cgroup.Version, bool) {
	version, ok := v.state.Versions[c]
	return version, ok
}

func (v values) Read(c cgroup.Controller, path, file string) (string, error) {
	key := Setting{c, path, file}
	if value, ok := v.with[key]; ok {
		return value, nil
	}
	if value, ok := v.state.Values[key]; ok {
		return value, nil
	}
	return "", &cgroup.Error{Op: cgroup.OpRead, Path: path, File: file, Kind: cgroup.ErrNoFile}
}

// level is one cgroup whose limit changes.
type level struct {
	path       string
	cur, want  cgroup.Limit
	present    map[Setting]string
	why        string
	controller cgroup.Controller
	// limitedBelow: a cgroup below it has a quota, which may go after its own is written, or gets one.
	limitedBelow bool
}

// orderLimits groups the changes by cgroup, lets cgroup.LimitWrites order the files within one, and orders the
// cgroups: those whose limit falls child first, the others parent first.
func orderLimits(s State, changes []Change) (falling, rising []Change, err error) {
	levels := map[string]*level{}
	wanted := map[string]map[Setting]string{}
	for _, c := range changes {
		l := levels[c.Path]
		if l == nil {
			l = &level{path: c.Path, present: map[Setting]string{}, why: c.Why, controller: c.Controller}
			levels[c.Path], wanted[c.Path] = l, map[Setting]string{}
		}
		key := Setting{c.Controller, c.Path, c.File}
		l.present[key] = c.From
		wanted[c.Path][key] = c.To
	}
	var down, up []*level
	for path, l := range levels {
		if l.cur, err = cgroup.ReadLimit(values{state: s, with: l.present}, path); err != nil {
			return nil, nil, err
		}
		if l.want, err = cgroup.ReadLimit(values{state: s, with: wanted[path]}, path); err != nil {
			return nil, nil, err
		}
		if err = l.want.CheckBounds(); err != nil {
			return nil, nil, fmt.Errorf("cgroup %q: %w", path, err)
		}
	}
	for _, l := range levels {
		l.limitedBelow = s.LimitedBelow[l.path]
		for path, below := range levels {
			l.limitedBelow = l.limitedBelow || path != l.path && cgroup.Below(path, l.path) &&
				(below.cur.Limited() || below.want.Limited())
		}
		cur := ratio(levels, l, func(l *level) cgroup.Limit { return l.cur })
		if ratio(levels, l, func(l *level) cgroup.Limit { return l.want }) < cur {
			down = append(down, l)
		} else {
			up = append(up, l)
		}
	}
	byDepth := func(a, b *level) int {
		return cmp.Or(cmp.Compare(depth(a.path), depth(b.path)), cmp.Compare(a.path, b.path))
	}
	slices.SortFunc(up, byDepth)
	slices.SortFunc(down, func(a, b *level) int { return byDepth(b, a) })
	for _, l := range down {
		falling = append(falling, l.steps(s)...)
	}
	for _, l := range up {
		rising = append(rising, l.steps(s)...)
	}
	return falling, rising, nil
}

// steps are the single writes of one cgroup, each with the value it finds.
func (l *level) steps(s State) []Change {
	var steps []Change
	for _, w := range cgroup.LimitWrites(s.Versions[l.controller], l.cur, l.want, l.limitedBelow) {
		key := Setting{l.controller, l.path, w.File}
		from, ok := l.present[key]
		if !ok {
			from = s.Values[key]
		}
		l.present[key] = w.Value
		steps = append(steps, Change{Kind: KindFile, Op: OpSet, Controller: l.controller, Path: l.path, File: w.File,
			From: from, To: w.Value, Why: l.why})
	}
	return steps
}

// ratio is the CPUs that a cgroup's limit comes to: its own, or, where it has none, what it inherits from the nearest
// ancestor that changes too (tg_cfs_schedulable_down gives an unlimited child its parent's ratio). Ancestors that do
// not change are the same before and after, and need no look.
func ratio(levels map[string]*level, l *level, pick func(*level) cgroup.Limit) float64 {
	for path := l.path; ; path = cgroup.Parent(path) {
		if at := levels[path]; at != nil {
			if cpus, limited := pick(at).Bound(); limited {
				return cpus
			}
		}
		if path == "/" {
			return math.Inf(1)
		}
	}
}

// microseconds reads systemd's quota; "infinity" and anything else that is no number is no limit.
func microseconds(value string) float64 {
	us, err := strconv.ParseUint(value, 10, 64)
	if err != nil {
		return math.Inf(1)
	}
	return float64(us)
}
