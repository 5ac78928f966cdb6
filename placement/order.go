package placement

import (
	"fmt"
	"slices"
	"strings"

	"github.com/unthrottle/unthrottle/topology"
)

// Objective is one thing that a placement is judged by; less of it is better.
type Objective string

// The objectives.
const (
	// Spans stands for the groups touched at every level, the widest first.
	// Which level is wider is found per machine.
	Spans   Objective = "spans"
	Sockets Objective = "sockets"
	NUMA    Objective = "numa_nodes"
	L3s     Objective = "l3s"
	// Kind prefers performance cores, then efficiency cores, then both at once:
	// work spread over fast and slow cores waits for the slow ones.
	Kind     Objective = "kind"
	Split    Objective = "split"    // cores of which the container has only a part
	Shared   Objective = "shared"   // cores of which another container has a part
	Stranded Objective = "stranded" // cores that are partly taken and partly free, on the whole machine
	Room     Objective = "room"     // by how much the largest request that fits in one group shrinks, the widest level first
	Distance Objective = "distance" // distances between all pairs of NUMA nodes touched, added up
	Changes  Objective = "changes"  // CPUs that the container did not have before
)

// Order is the objectives in the order in which they decide.
type Order []Objective

// DefaultOrder returns the order of who asks for none.
func DefaultOrder() Order {
	return Order{Spans, Kind, Split, Stranded, Shared, Room, Distance, Changes}
}

// ParseOrder reads objectives with commas between them, as in
// "stranded,spans". Those left out follow in the default order.
func ParseOrder(text string) (Order, error) {
	var o Order
	for word := range strings.SplitSeq(text, ",") {
		o = append(o, Objective(strings.TrimSpace(word)))
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	return o.complete(), nil
}

var objectives = []Objective{Spans, Sockets, NUMA, L3s, Kind, Split, Shared, Stranded, Room, Distance, Changes}

func (o Order) check() error {
	for i, objective := range o {
		if !slices.Contains(objectives, objective) {
			var words []string
			for _, known := range objectives {
				words = append(words, string(known))
			}
			return fmt.Errorf("order: %.40q is no objective: choose from %s", string(objective), strings.Join(words, ", "))
		}
		if slices.Contains(o[:i], objective) {
			return fmt.Errorf("order: %s is there twice", objective)
		}
	}
	return nil
}

func (o Order) complete() Order {
	out := slices.Clone(o)
	for _, objective := range DefaultOrder() {
		if !slices.Contains(out, objective) {
			out = append(out, objective)
		}
	}
	return out
}

// String is the form that ParseOrder reads.
func (o Order) String() string {
	words := make([]string, len(o))
	for i, objective := range o {
		words[i] = string(objective)
	}
	return strings.Join(words, ",")
}

// fields are the objectives of one machine, each with its place in a cost.
type fields struct {
	span     []cost // per level of the tree: one more group touched
	left     []cost // per level: one more CPU left free in the groups touched
	room     []cost // per level: the largest request that fits shrinks by one
	kind     cost
	split    cost
	shared   cost
	stranded cost
	distance cost
	changes  cost
	// spansFirst: the spans decide before all else, the widest level first.
	spansFirst bool
	// lastSpan is the narrowest level that counts as a crossing; -1: none does.
	lastSpan int
}

// newFields gives each objective as many bits as it can need on this machine.
// Of machines so large that a cost is full, the last ones do not decide.
func newFields(l *layout, o Order) fields {
	depth := len(l.levels)
	f := fields{span: make([]cost, depth), left: make([]cost, depth), room: make([]cost, depth), spansFirst: true, lastSpan: -1}
	var p packer
	cpus, cores := len(l.ids), len(l.kinds)
	spanned := make([]bool, depth)
	span := func(level int) {
		if !spanned[level] {
			spanned[level] = true
			f.span[level] = p.field(len(l.at[level]))
		}
	}
	others := false
	named := func(name topology.Level) {
		for level := range l.levels {
			if l.isSpan(level) && !spanned[level] && l.machine.Alike(l.levels[level], name) {
				for wider := range level {
					f.spansFirst = f.spansFirst && (!l.isSpan(wider) || spanned[wider])
				}
				f.spansFirst = f.spansFirst && !others
				span(level)
			}
		}
	}
	for level := range l.levels {
		if l.isSpan(level) {
			f.lastSpan = level
		}
	}
	for _, objective := range o.complete() {
		switch objective {
		case Spans:
			for level := range l.levels {
				if l.isSpan(level) {
					f.spansFirst = f.spansFirst && (spanned[level] || !others)
					span(level)
				}
			}
			continue
		case Sockets:
			named(topology.LevelSocket)
			continue
		case NUMA:
			named(topology.LevelNUMANode)
			continue
		case L3s:
			named(topology.LevelL3)
			continue
		case Kind:
			f.kind = p.field(2)
			continue // decided between choices that the other objectives made
		case Split:
			f.split = p.field(cores)
		case Shared:
			f.shared = p.field(cores)
		case Stranded:
			f.stranded = p.field(cores)
		case Room:
			for level := range l.levels {
				if l.isSpan(level) {
					f.room[level] = p.field(cpus)
				}
			}
		case Distance:
			most := 0
			for _, row := range l.distance {
				for _, d := range row {
					most += int(d)
				}
			}
			f.distance = p.field(most)
		case Changes:
			f.changes = p.field(cpus)
		}
		others = true
	}
	for level := range l.levels {
		if !l.isSpan(level) {
			f.span[level] = p.field(len(l.at[level]))
		}
	}
	for level := range l.levels {
		f.left[level] = p.field(cpus)
	}
	return f
}
