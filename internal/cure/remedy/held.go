package remedy

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/unthrottle/unthrottle/internal/cure/hoststate"
	"github.com/unthrottle/unthrottle/internal/cure/txn"
	"github.com/unthrottle/unthrottle/internal/cure/txn/change"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/topology"
)

// The parameters that a plan stores with its transaction and reads again.
const (
	paramCPUs      = "cpus"                    // the exclusive CPUs, a kernel list
	paramSet       = "cpuset"                  // the path of the cpuset that holds them
	paramFor       = "upkeep"                  // the id of the transaction that this one belongs to
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
	// The CPUs of a pin that shares them, revoked from the secondaries for now.
	paramRevoked = "withheld"
)

// listParams are the parameters whose value is a kernel list.
var listParams = []string{paramCPUs, paramPool, paramMems, paramBorrowed, paramIdle, paramRevoked}

// facts are the state of a host as the planners read it: every parameter of a transaction in force is readable.
type facts struct{ hoststate.Facts }

// Unreadable says that a transaction in force has a parameter or a change that this version cannot read. Its CPUs are
// then unknown, and a plan could give them to another container, so that nothing is planned.
type Unreadable struct {
	ID, Remedy, Target string
	// Name is the parameter or the setting, Value what stands there.
	Name, Value string
	Err         error
}

// Error names the transaction and the way out.
func (e *Unreadable) Error() string {
	return fmt.Sprintf("transaction %q (%s of %s) is in force and its %s %.80q cannot be read: %v; nothing is planned, because "+
		"its CPUs are not known; use the version of unthrottle that wrote it, or run unthrottle restore %s",
		e.ID, e.Remedy, text.Name(e.Target), e.Name, e.Value, e.Err, e.ID)
}

func (e *Unreadable) Unwrap() error { return e.Err }

// decode checks that every transaction in force can be read. The error is an *Unreadable.
func decode(host hoststate.Facts) (facts, error) {
	for _, h := range host.Held {
		if name, value, err := readable(h); err != nil {
			return facts{}, &Unreadable{ID: h.ID, Remedy: h.Remedy, Target: h.Target, Name: name, Value: value, Err: err}
		}
	}
	return facts{host}, nil
}

// readable names the first parameter or setting of a transaction that cannot be read.
func readable(h txn.InForce) (name, value string, err error) {
	for _, name := range listParams {
		value, ok := h.Parameters[name]
		if _, err := topology.ParseList(value); ok && err != nil {
			return "parameter " + name, value, err
		}
	}
	needsCPUs := h.Remedy == string(Pin) || h.Remedy == string(Narrow)
	if needsCPUs && h.Parameters[paramFor] == "" && h.Parameters[paramCPUs] == "" {
		return "parameter " + paramCPUs, "", errors.New("it is empty")
	}
	if value, ok := h.Parameters[paramLimit]; ok {
		limit, err := strconv.ParseFloat(value, 64)
		if err == nil && (math.IsNaN(limit) || math.IsInf(limit, 0) || limit <= 0) {
			err = errors.New("it is no number of CPUs")
		}
		if err != nil {
			return "parameter " + paramLimit, value, err
		}
	}
	for _, c := range h.Changes {
		if c.Op != change.OpRemoveCPUs && c.Op != change.OpAddCPUs {
			continue
		}
		if _, err := topology.ParseList(c.To); err != nil {
			return "setting " + c.Key().String(), c.To, err
		}
	}
	return "", "", nil
}
