package placement

import (
	"fmt"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/topology"
)

// Request is what one container asks for.
type Request struct {
	CPUs int // exclusive CPUs wanted, from 1
	// Prefer is the kind of cores to try first, on machines that have two;
	// KindUnknown means performance cores.
	Prefer topology.Kind
}

// Host is a machine and the part of it that may be given away.
type Host struct {
	Machine topology.Machine
	// Free holds the CPUs that may be chosen: allowed, and neither reserved nor
	// another container's own. Those that the machine lacks, that are offline
	// or isolated are never chosen even if they are in it.
	Free cpuset.CPUSet
}

// Choice is where a container goes. The counts are groups touched, 0 where the
// kernel does not tell the machine's groups at that level.
type Choice struct {
	CPUs      cpuset.CPUSet
	Sockets   int
	NUMANodes int
	L3s       int
	// CoresShared counts the cores of which only some online threads are in
	// CPUs: others can run on the rest of them.
	CoresShared int
	Why         string // one line for people
}

// Placer chooses CPUs. It is a function of its arguments alone: the same host
// and request give the same choice.
type Placer interface {
	// Place chooses the CPUs for one request. The error is a *TooFewError if
	// the host has not got them.
	Place(Host, Request) (Choice, error)
}

// TooFewError tells that fewer CPUs are free than were asked for.
type TooFewError struct {
	Wanted, Free, Online int
	// PoolKeeps is how many more are free that the shared pool must keep.
	PoolKeeps int
	// WholeCores, Idle: there are enough, but not as whole cores, or not on
	// cores that are wholly free.
	WholeCores, Idle bool
}

func (e *TooFewError) Error() string {
	switch {
	case e.WholeCores:
		return fmt.Sprintf("%d CPUs wanted as whole cores: no whole cores that are free make that number (%d free of %d online): ask for another number, or without whole cores", e.Wanted, e.Free, e.Online)
	case e.Idle:
		return fmt.Sprintf("%d CPUs wanted on cores of their own: so many cores are not wholly free (%d CPUs free of %d online): ask for fewer, or let siblings be used", e.Wanted, e.Free, e.Online)
	case e.PoolKeeps > 0:
		return fmt.Sprintf("%d CPUs wanted, %d free of %d online, beside %d that the shared pool keeps: ask for fewer, or give exclusive CPUs back first", e.Wanted, e.Free, e.Online, e.PoolKeeps)
	}
	return fmt.Sprintf("%d CPUs wanted, %d free of %d online: ask for fewer, or give exclusive CPUs back first", e.Wanted, e.Free, e.Online)
}
