package threadpool

import "strings"

const (
	// Other is the pool of all threads whose names came after the most that their process gets.
	Other = "other"
	// MaxProcesses is how many processes [Names] keeps apart; those that come later share one set of names.
	MaxProcesses = 1024
)

// Names gives pools their names and bounds how many there are: at most so many per process, and after [MaxProcesses]
// processes so many for all further ones together. What it keeps thus has a bound, whatever threads call themselves
// and how often. Not safe for use by several goroutines at once.
//
// Names as newer JDKs shorten them lose a letter for each further digit ("nioEven..up-2-1", "nioEven..p-2-10"): those
// of one process that can be of one pool get the name that came first, the full one included where a JVM told it.
type Names struct {
	most      int
	processes map[uint32]*namesOf
	further   *namesOf // of all processes after MaxProcesses
}

// namesOf is one process's pools.
type namesOf struct {
	pools map[string]string // by what Fold made of the names of their threads
	order []string          // pools, the one that came first before
}

// NewNames keeps at most max pool names per process, and at least one.
func NewNames(max int) *Names {
	if max < 1 {
		max = 1
	}
	return &Names{most: max, processes: map[uint32]*namesOf{}}
}

// Of is the name of the pool that a thread of process tgid is in, given its comm: see [Fold]. [Other] if the process
// has as many pools as it may have.
func (n *Names) Of(tgid uint32, comm string) string {
	return n.process(tgid).of(Fold(comm), n.most)
}

// Forget drops what is kept for a process that ended.
func (n *Names) Forget(tgid uint32) { delete(n.processes, tgid) }

func (n *Names) process(tgid uint32) *namesOf {
	if p, ok := n.processes[tgid]; ok {
		return p
	}
	if len(n.processes) >= MaxProcesses {
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

// samePool reports whether one of two folded names is a shortened form of the other, or both are of one name with
// numbers of different lengths.
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

// shortened takes a folded name apart that was shortened to 7 bytes, two dots and 6 bytes that end in a number. Only
// numbers at the end make such names differ.
func shortened(folded string) (head, tail string, ok bool) {
	head, tail, ok = strings.Cut(folded, dots)
	return head, tail, ok && head != "" && len(head) <= headBytes && len(tail) <= tailBytes &&
		strings.Contains(tail, "*") && strings.HasSuffix(strings.TrimRight(tail, ")]"), "*")
}
