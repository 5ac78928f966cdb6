package placement

import "k8s.io/utils/cpuset"

// Budget bounds a repair.
type Budget struct {
	Moves int // at most so many; 0: none
	// PerCrossing is how many moves one recovered crossing may take; 0:
	// DefaultPerCrossing.
	PerCrossing int
}

// DefaultPerCrossing is how many moves a recovered crossing may take.
const DefaultPerCrossing = 4

// Move is one container's change of CPUs. After each the state is valid; while
// one is under way the container has both sets, so that no thread is without a
// CPU.
type Move struct {
	Container string
	From, To  cpuset.CPUSet // exclusive CPUs
	Idle      cpuset.CPUSet // threads that idle for it afterwards
	// Gain is how many fewer groups (sockets, NUMA nodes, L3s together) the
	// container touches beyond what it must; below 0 where it makes way.
	Gain int
	Cost int // CPUs that it did not have before
	// Repair numbers the repair that the move is part of, from 0: the moves of
	// one make sense together only.
	Repair int
	// Step tells that the container stops here on its way to another place.
	Step bool
	// Overlaps tells that no free CPU was left to step aside to: while the move
	// is under way, and until the next is done, two containers share CPUs.
	Overlaps bool
}

// Repair moves containers so that crossings are recovered at the fewest moved
// CPUs, and returns the moves in order. Containers that stay are not moved.
func (n *Node) Repair(b Budget) []Move {
	if b.PerCrossing == 0 {
		b.PerCrossing = DefaultPerCrossing
	}
	r := repairer{n: n, budget: b}
	for r.once() {
	}
	n.refloat()
	return r.moves
}
