package placement

import (
	"fmt"
	"math"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/topology"
)

// Class says what kind of CPUs a container gets.
type Class string

// The classes.
const (
	Exclusive Class = "exclusive" // CPUs that no other container may use
	Hybrid    Class = "hybrid"    // the whole part of its CPUs exclusively, and the shared pool for the fraction
	Floating  Class = "floating"  // as many CPUs as its limit rounded up, which others may use too
	Secondary Class = "secondary" // what the others leave idle: the shared pool, and CPUs that their owners lend
)

// Container is what one container asks for, and what it has.
type Container struct {
	Name  string
	CPUs  float64 // wanted: above 0; of an exclusive container rounded up
	Class Class   // empty: Exclusive
	// FullCores asks for whole cores: it is refused if the number is none of
	// whole cores. IdleSiblings asks for one thread per core, whose other
	// threads stay idle.
	FullCores, IdleSiblings bool
	// SharesIdle lets secondary containers use its exclusive CPUs while they idle.
	SharesIdle bool
	// Immovable says why it must not be moved; empty: it may be.
	Immovable string
	// Quota is what its quota lets it use, in CPUs; nil: it has none, or that is
	// not known.
	Quota *float64
	// Current are the CPUs it has: of an exclusive or hybrid container its own
	// ones, of a floating one those it may use. Empty: none yet.
	Current cpuset.CPUSet
	// Idle are the threads beside Current that are kept idle for it.
	Idle cpuset.CPUSet
}

// own is how many exclusive CPUs it is to have.
func (c *Container) own() int {
	switch c.Class {
	case Floating, Secondary:
		return 0
	case Hybrid:
		return int(math.Floor(c.CPUs + tiny))
	}
	return up(c.CPUs)
}

// tiny forgives what arithmetic does to a limit of 3 CPUs.
const tiny = 1e-9

func up(cpus float64) int { return int(math.Ceil(cpus - tiny)) }

// mostWanted bounds what a container may ask for.
const mostWanted = topology.MaxCPUs

func (c *Container) check() error {
	switch c.Class {
	case "", Exclusive, Hybrid, Floating, Secondary:
	default:
		return fmt.Errorf("class %.20q: choose from exclusive, hybrid, floating, secondary", string(c.Class))
	}
	if !(c.CPUs >= 1e-6 && c.CPUs <= mostWanted) {
		return fmt.Errorf("%v CPUs wanted: ask for more than 0, at most %d", c.CPUs, mostWanted)
	}
	if (c.FullCores || c.IdleSiblings) && c.own() == 0 {
		return fmt.Errorf("whole cores and idle siblings are for containers with CPUs of their own: this one has none")
	}
	if c.FullCores && c.IdleSiblings {
		return fmt.Errorf("whole cores and idle siblings at once: with idle siblings no other container is on its cores anyway")
	}
	return nil
}

// State is a node: its machine, what of it may not be given, and its containers.
type State struct {
	Machine topology.Machine
	// Reserved are kept for the system; Unavailable belong to another program, such
	// as those of the kubelet's static policy. Neither is ever given, and
	// neither is in the shared pool.
	Reserved, Unavailable cpuset.CPUSet
	Containers            []Container // in the order of arrival
	// Load is how busy each CPU was, 0 to 1; those that are missing were not
	// measured.
	Load  map[int]float64
	Order Order // nil: DefaultOrder
}

// Placed is where a container goes.
type Placed struct {
	Name  string
	Class Class
	// CPUs are those it may use: a hybrid one's include the shared pool, a
	// secondary one's are the pool and what is lent.
	CPUs cpuset.CPUSet
	Own  cpuset.CPUSet // those that are its alone
	Idle cpuset.CPUSet // threads kept idle for it
	// Groups that Own touches (of a floating or secondary one: CPUs), 0 where
	// the kernel does not tell the machine's groups at that level.
	Sockets, NUMANodes, L3s int
	// CoresShared counts the cores of which another container has a part too.
	CoresShared int
	// Avoidable tells that it crosses more groups than it had to when it came.
	Avoidable bool
	// QuotaBinds tells whether its quota can stop it on these CPUs; nil: not known.
	QuotaBinds *bool
	Why        string
}

// Refused is a container that gets nothing.
type Refused struct {
	Name string
	Err  error
}

// Place finds the CPUs for one more container, leaving all others where they
// are. The error is a *TooFewError if the node has not got them.
func Place(s State, c Container) (Placed, error) {
	n, _, err := NewNode(s)
	if err != nil {
		return Placed{}, err
	}
	c.Current, c.Idle = cpuset.New(), cpuset.New()
	h, err := n.Arrive(c)
	if err != nil {
		return Placed{}, err
	}
	return n.Placed(h), nil
}
