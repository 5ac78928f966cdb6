package threadpool

import "strings"

const (
	// Other is the pool of all threads whose names exceed the bound of their process.
	Other = "other"
	// maxProcesses is how many processes [Names] keeps apart. Later ones share one set of names.
	maxProcesses = 1024
)

// Names names pools, and bounds how many there are: so many per process, and after [MaxProcesses] processes
// so many for all further ones together. Its memory is bounded whatever names threads choose and however
// often. It is not safe for concurrent use.
//
// A name that a newer JDK shortened loses a letter for each further digit ("nioEven..up-2-1",
// "nioEven..p-2-10"). Names of one process that can be of one pool get the first of them, or the full name if
// a JVM gave it before.
type Names struct {
	most      int
	processes map[uint32]*namesOf
	further   *namesOf // of all processes after MaxProcesses
}

// namesOf has one process's pools.
type namesOf struct {
	pools map[string]string // by the folded name of their threads
	order []string          // pools, in the order of appearance
}

// NewNames returns a Names with at most max pool names per process, and at least one.
func NewNames(max int) *Names {
	if max < 1 {
		max = 1
	}
	return &Names{most: max, processes: map[uint32]*namesOf{}}
}

// Of returns the name of the pool of a thread of process tgid with that comm: see [Fold]. It returns [Other]
// if the process has reached its bound.
func (n *Names) Of(tgid uint32, comm string) string {
	return n.process(tgid).of(Fold(comm), n.most)
}

func (n *Names) process(tgid uint32) *namesOf {
	if p, ok := n.processes[tgid]; ok {
		return p
	}
	if len(n.processes) >= maxProcesses {
		if n.further == nil {
			n.further = newNamesOf()
		}
		return n.further
	}
	p := newNamesOf()
	n.processes[tgid] = p
	return p
}

func newNamesOf() *namesOf { return &namesOf{pools: map[string]string{}} }

func (p *namesOf) of(folded string, most int) string {
	if pool, ok := p.pools[folded]; ok {
		return pool
	}
	if len(p.pools) >= most {
		return Other
	}
	pool := strings.Clone(folded)
	for _, known := range p.order {
		if samePool(known, pool) {
			p.pools[pool] = known
			return known
		}
	}
	p.pools[pool] = pool
	p.order = append(p.order, pool)
	return pool
}

// samePool reports whether one of two folded names is a shortened form of the other. It also holds for
// shortened forms of one name with numbers of different lengths.
func samePool(a, b string) bool {
	headA, tailA, shortA := shortened(a)
	headB, tailB, shortB := shortened(b)
	switch {
	case shortA && shortB:
		return headA == headB && (strings.HasSuffix(tailA, tailB) || strings.HasSuffix(tailB, tailA))
	case shortA:
		return len(b) >= len(headA)+len(tailA) && strings.HasPrefix(b, headA) && strings.HasSuffix(b, tailA)
	case shortB:
		return samePool(b, a)
	}
	return false
}

const (
	dots      = ".."
	headBytes = 7
	tailBytes = 6
)

// shortened splits a folded name that was shortened to 7 bytes, two dots and 6 bytes that end in a number.
// Only numbers at the end make such names differ.
func shortened(folded string) (head, tail string, ok bool) {
	head, tail, ok = strings.Cut(folded, dots)
	return head, tail, ok && head != "" && len(head) <= headBytes && len(tail) <= tailBytes &&
		strings.Contains(tail, "*") && strings.HasSuffix(strings.TrimRight(tail, ")]"), "*")
}
