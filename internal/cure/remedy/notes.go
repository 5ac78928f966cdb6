package remedy

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"path"
	"slices"
	"strconv"
	"time"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/cure/hoststate"
	"github.com/unthrottle/unthrottle/internal/widthcap"
	"github.com/unthrottle/unthrottle/topology"
)

// The parameters that a plan stores with its transaction and reads again.
const (
	paramCPUs = "cpus"   // the exclusive CPUs, a kernel list
	paramSet  = "cpuset" // the path of the cpuset that holds them
	// ParamUpkeep is the id of the transaction that this one belongs to.
	ParamUpkeep    = "upkeep"
	paramPool      = "pool"                    // of a hybrid: the shared CPUs that it may use
	paramLimit     = "limit"                   // of a hybrid: its limit in CPUs
	paramMems      = "mems"                    // the memory nodes that a target's CPUs want
	paramShares    = "lends"                   // "yes": secondary containers may use its CPUs
	paramBorrowed  = "lent"                    // of a secondary: the CPUs shared with it, a kernel list
	paramImmovable = "stays"                   // "yes": the target is never moved to other CPUs
	paramIRQs      = hoststate.ParamInterrupts // of pin, "yes": interrupts are kept off its CPUs
	paramCores     = "cores"                   // of pin, "full": whole cores only
	paramIdle      = "idle"                    // of pin: the threads beside its CPUs that idle for it, a kernel list
	paramAsked     = "asked"                   // of system, "yes": the CPUs were asked for and follow no use
	paramTo        = "to"                      // of raise and cap: the new limit in CPUs
	paramSibling   = "sibling"                 // of cap: the path of the cgroup that is held
	paramCap       = "cap"                     // of narrow by sched_ext: the cap as package widthcap spells it
	// ParamStartup is for how long it is in force at most, as it is for a container's start.
	ParamStartup = "startup"
	// The CPUs of a pin that shares them, revoked from the secondaries for now.
	paramRevoked = "withheld"
)

const (
	yes  = "yes"
	full = "full" // of paramCores
)

// Notes are what a transaction in force notes of itself, beside its settings: the parameters of its plan, decoded.
type Notes struct {
	// For is the id of the transaction that this one looks after; "": it stands for itself.
	For string
	// CPUs are those that pin, narrow or system chose, CPUSet the path of the cpuset that holds them.
	CPUs   cpuset.CPUSet
	CPUSet string
	// Pool and Limit (in CPUs) are those of a hybrid pin; empty and 0: it is none.
	Pool  cpuset.CPUSet
	Limit float64
	// Mems are the memory nodes that were set. Nil: none were.
	Mems *cpuset.CPUSet
	// Idle are the threads beside a pin's CPUs that idle for it. Nil: none were asked to.
	Idle *cpuset.CPUSet
	// Borrowed are the CPUs that a secondary was lent, Revoked those of a pin that its secondaries lost for now.
	Borrowed, Revoked cpuset.CPUSet
	// To is the limit in CPUs that raise gave, or cap gave the sibling; 0: none.
	To float64
	// Startup is how long it is in force at most while its container starts; 0: it is for good.
	Startup time.Duration
	// Cap is that of a narrow by sched_ext, which has no CPUs of its own; nil: it is none.
	Cap *widthcap.Cap
	// Shares, Immovable, Interrupts and FullCores are settings of a pin, Asked is one of system.
	Shares, Immovable, Interrupts, FullCores, Asked bool
}

// upkeep are the parameters of a transaction that looks after another one.
var upkeep = []string{ParamUpkeep, paramCPUs, paramSet, paramMems, paramBorrowed, paramRevoked}

// codec reads one parameter.
type codec func(s *Notes, value string) error

// codecs are those of all parameters.
var codecs = map[string]codec{
	ParamUpkeep: func(s *Notes, v string) error { s.For = v; return nil },
	paramCPUs:   listOf(func(s *Notes) *cpuset.CPUSet { return &s.CPUs }),
	paramSet:    cpusetPath,
	paramPool:   listOf(func(s *Notes) *cpuset.CPUSet { return &s.Pool }),
	paramLimit:  cpusOf(func(s *Notes) *float64 { return &s.Limit }),
	paramCap: func(s *Notes, v string) error {
		c, err := widthcap.Parse(v)
		s.Cap = &c
		return err
	},
	ParamStartup: func(s *Notes, v string) (err error) {
		s.Startup, err = time.ParseDuration(v)
		return err
	},
	paramSibling:   func(*Notes, string) error { return nil },
	paramTo:        cpusOf(func(s *Notes) *float64 { return &s.To }),
	paramMems:      listOf(func(s *Notes) *cpuset.CPUSet { s.Mems = new(cpuset.CPUSet); return s.Mems }),
	paramIdle:      listOf(func(s *Notes) *cpuset.CPUSet { s.Idle = new(cpuset.CPUSet); return s.Idle }),
	paramBorrowed:  listOf(func(s *Notes) *cpuset.CPUSet { return &s.Borrowed }),
	paramRevoked:   listOf(func(s *Notes) *cpuset.CPUSet { return &s.Revoked }),
	paramShares:    exactly(yes, func(s *Notes) *bool { return &s.Shares }),
	paramImmovable: exactly(yes, func(s *Notes) *bool { return &s.Immovable }),
	paramIRQs:      exactly(yes, func(s *Notes) *bool { return &s.Interrupts }),
	paramAsked:     exactly(yes, func(s *Notes) *bool { return &s.Asked }),
	paramCores:     exactly(full, func(s *Notes) *bool { return &s.FullCores }),
}

func listOf(field func(*Notes) *cpuset.CPUSet) codec {
	return func(s *Notes, value string) error {
		set, err := topology.ParseList(value)
		*field(s) = set
		return err
	}
}

func cpusOf(field func(*Notes) *float64) codec {
	return func(s *Notes, value string) error {
		n, err := strconv.ParseFloat(value, 64)
		if err == nil && (math.IsNaN(n) || math.IsInf(n, 0) || n <= 0) {
			err = errors.New("it is no number of CPUs")
		}
		*field(s) = n
		return err
	}
}

func exactly(want string, field func(*Notes) *bool) codec {
	return func(s *Notes, value string) error {
		if value != want {
			return fmt.Errorf("it is not %q", want)
		}
		*field(s) = true
		return nil
	}
}

func cpusetPath(s *Notes, value string) error {
	if value != "" && (!path.IsAbs(value) || path.Clean(value) != value) {
		return errors.New("it is no path of a cgroup")
	}
	s.CPUSet = value
	return nil
}

// notesOf decodes parameters. Every one must be readable, and one that the remedy of that kind has. On an error, name
// says what cannot be read.
func notesOf(kind Kind, parameters map[string]string) (s Notes, name string, err error) {
	r, known := Find(kind)
	if kind == System {
		r = system
	} else if !known {
		return s, "remedy", errors.New("this version does not know it")
	}
	own, needs := r.parameters, r.needs
	if _, looksAfter := parameters[ParamUpkeep]; looksAfter {
		own, needs = upkeep, nil
	}
	for _, name := range slices.Sorted(maps.Keys(parameters)) {
		if !slices.Contains(own, name) {
			return s, "parameter " + name, errors.New("this version does not know it")
		}
		if err := codecs[name](&s, parameters[name]); err != nil {
			return s, "parameter " + name, err
		}
	}
	if s.Cap != nil {
		needs = nil
	}
	for _, name := range needs {
		if parameters[name] == "" {
			return s, "parameter " + name, errors.New("it is empty")
		}
	}
	return s, "", nil
}
