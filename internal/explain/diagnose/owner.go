package diagnose

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/unthrottle/unthrottle/internal/see/recording"
	"github.com/unthrottle/unthrottle/internal/text"
)

// Indices of the owners that always exist, equal to their numbers in events.
const (
	idleOwner   = int(recording.Idle)
	kernelOwner = int(recording.Kernel)
	rootOwner   = int(recording.Root)
)

// owner is an owner of CPU time other than the container.
type owner struct {
	number uint32
	kind   recording.OwnerKind
	name   string
	cgroup uint64
	cpu    int64 // on the CPUs that the container may use
	onAll  int64 // CPU time on all CPUs
	waited int64 // thread time for which it made the container wait
	// waitedWall is the wall time of that, counted up to waitedAt.
	waitedWall, waitedAt int64
	wakes                int  // of the container's threads
	recorder             bool // it made the recording

	width timeHistogram
	at    int64 // the time up to which width is counted
	swing int   // how often it went from no CPU to at least half of its largest width
	most  int
	low   bool // it has held no CPU since it last was wide
}

// ownerTable holds a bounded number of owners.
type ownerTable struct {
	all    []*owner
	number map[uint32]int
	// recorder is the process that recorded; 0: not known.
	recorder uint32
}

func newOwnerTable(recorder uint32) ownerTable {
	t := ownerTable{number: map[uint32]int{}, recorder: recorder}
	for i, o := range []owner{
		{kind: recording.OwnerIdle, name: "idle"}, {kind: recording.OwnerKernel, name: "kernel"},
		{kind: recording.OwnerRoot, name: "root"},
	} {
		o.number = uint32(i)
		t.all = append(t.all, &o)
		t.number[uint32(i)] = i
	}
	return t
}

// index returns the owner with a number. An undefined number is a process without a name.
func (t *ownerTable) index(number uint32) int {
	if i, ok := t.number[number]; ok {
		return i
	}
	if len(t.all) >= maxOwners-1 {
		i := len(t.all) - 1
		if len(t.all) == maxOwners-1 {
			t.all = append(t.all, &owner{kind: recording.OwnerProcess, name: "others", number: number})
			i++
		}
		return i
	}
	t.all = append(t.all, &owner{kind: recording.OwnerProcess, name: "unknown", number: number})
	t.number[number] = len(t.all) - 1
	return len(t.all) - 1
}

func (t *ownerTable) define(e *recording.Event) {
	if e.Owner < recording.FirstOwner {
		return
	}
	i := t.index(e.Owner)
	o := t.all[i]
	if o.number != e.Owner {
		return // beyond the bound
	}
	if e.OwnerKind == recording.OwnerContainer || e.OwnerKind == recording.OwnerProcess ||
		e.OwnerKind == recording.OwnerRoot || e.OwnerKind == recording.OwnerKernel {
		o.kind = e.OwnerKind
	}
	o.name = text.Sanitize(e.Text, 0)
	o.cgroup = e.Cgroup
	o.recorder = e.OwnerKind == recording.OwnerProcess && e.TGID != 0 && e.TGID == t.recorder
}

func (o *owner) count(now int64) {
	o.width.n = max(0, o.width.n)
	o.width.add(now - o.at)
	o.at = now
}

// take counts one CPU more for an owner, leave one less.
func (t *ownerTable) take(i int, now int64) {
	o := t.all[i]
	o.count(now)
	o.width.n++
	if o.width.n > o.most {
		o.most = o.width.n
	}
	if o.low && o.width.n*2 >= o.most {
		o.low = false
		o.swing++
	}
}

func (t *ownerTable) leave(i int, now int64) {
	o := t.all[i]
	o.count(now)
	o.width.n--
	o.low = o.low || o.width.n <= 0
}

// togglesFrom is the least share of its time for which a swinging owner holds no CPU; it holds some for that
// share too. minToggles is how often per second it must swing. In the article a throttled neighbour goes
// between many CPUs and none.
const (
	togglesFrom = 0.1
	minToggles  = 1
)

// toggles reports whether an owner swings between two or more CPUs and none.
func (o *owner) toggles(window int64) bool {
	all := total(o.width.time)
	if all <= 0 || len(o.width.time) == 0 || window <= 0 {
		return false
	}
	none := float64(o.width.time[0]) / all
	active := (all - float64(o.width.time[0]))
	if active <= 0 || none < togglesFrom || none > 1-togglesFrom {
		return false
	}
	return integral(o.width.time)/active >= 1.5 && float64(o.swing) >= minToggles*float64(window)/1e9
}

const (
	// clientWakes is how many wake-ups of the container's threads make an owner a client, and clientShare of all
	// such wake-ups from outside. clientTurn is how long a client runs per wake-up at most, on the mean: one that
	// runs longer is busy with its own.
	clientWakes = 20
	clientShare = 0.1
	clientTurn  = int64(5 * time.Millisecond)
)

// client reports whether an owner is a client of the container: it wakes its threads, and runs by turns with them.
func (t *ownerTable) client(o *owner) bool {
	all := 0
	for _, o := range t.all {
		all += o.wakes
	}
	return (o.kind == recording.OwnerProcess || o.kind == recording.OwnerContainer) && o.wakes >= clientWakes &&
		float64(o.wakes) >= clientShare*float64(all) && o.cpu <= clientTurn*int64(o.wakes)
}

// blameless reports whether waiting for an owner is no finding: it is a client, or there would be none without a recording.
func (t *ownerTable) blameless(o *owner) bool { return o.recorder || t.client(o) }

// blamelessWaited is the thread time for which the container waited while such owners held the CPUs.
func (t *ownerTable) blamelessWaited() (sum int64) {
	for _, o := range t.all {
		if t.blameless(o) {
			sum += o.waited
		}
	}
	return sum
}

// throttledShare is the share of a neighbour's own periods from which on it counts as throttled.
const throttledShare = 0.05

// neighbours returns the owners that ran on the container's CPUs, those that it waited for most first.
func (t *ownerTable) neighbours(f *recording.Footer, now int64) []NeighbourUse {
	byOwner := map[uint32]*recording.Neighbour{}
	for i := range f.Neighbours {
		byOwner[f.Neighbours[i].Owner] = &f.Neighbours[i]
	}
	uses := []NeighbourUse{}
	for i, o := range t.all {
		if i == idleOwner || o.cpu <= 0 {
			continue
		}
		o.count(now)
		u := NeighbourUse{Name: o.name, Waited: span(o.waited), CPU: span(o.cpu), Client: t.client(o), Recorder: o.recorder}
		if o.kind == recording.OwnerContainer || o.kind == recording.OwnerProcess {
			u.Toggling = new(o.toggles(now))
		}
		if n := byOwner[o.number]; n != nil && i > rootOwner {
			if n.Name != "" {
				u.Name = text.Sanitize(n.Name, 0)
			}
			if n.Periods != nil && n.ThrottledPeriods != nil {
				u.Throttled = new(*n.Periods > 0 && float64(*n.ThrottledPeriods) >= throttledShare*float64(*n.Periods))
			}
		}
		uses = append(uses, u)
	}
	slices.SortStableFunc(uses, func(a, b NeighbourUse) int {
		return cmp.Or(cmp.Compare(b.Waited, a.Waited), cmp.Compare(b.CPU, a.CPU), strings.Compare(a.Name, b.Name))
	})
	return uses[:min(len(uses), maxNeighbours)]
}

// maxNeighbours bounds the neighbours of an Explanation.
const maxNeighbours = 64
