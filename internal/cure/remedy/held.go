package remedy

import (
	"fmt"
	"strings"

	"github.com/unthrottle/unthrottle/internal/cure/hoststate"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/internal/txn/change"
	"github.com/unthrottle/unthrottle/topology"
)

// Held is a transaction in force whose notes were decoded.
type Held struct {
	txn.InForce
	Notes
}

// facts are the state of a host as the planners read it: every transaction in force is readable.
type facts struct {
	hoststate.Facts
	Held []Held
}

// Unreadable says that a transaction in force has a parameter or a change that this version cannot read. Its CPUs are
// then unknown, and a plan could give them to another container, so that nothing is planned.
type Unreadable struct {
	ID, Remedy, Target string
	// File is that of the journal; "": not known.
	File string
	// Name is the parameter or the setting, Value what stands there.
	Name, Value string
	Err         error
}

// Error names the transaction and the way out.
func (e *Unreadable) Error() string {
	in := ""
	if e.File != "" {
		in = " in " + text.Name(e.File)
	}
	return fmt.Sprintf("transaction %s%s (%s of %s): %s %.80q cannot be read: %v; nothing is planned, because "+
		"its CPUs are not known; use the version of unthrottle that wrote it, or run unthrottle restore %s",
		e.ID, in, text.Sanitize(e.Remedy, 40), text.Name(e.Target), e.Name, e.Value, e.Err, e.ID)
}

func (e *Unreadable) Unwrap() error { return e.Err }

// decode reads every transaction in force. The error is an *Unreadable.
func decode(host hoststate.Facts) (facts, error) {
	f := facts{Facts: host, Held: make([]Held, len(host.Held))}
	for i, h := range host.Held {
		var err error
		if f.Held[i], err = Decode(h, host.Journal); err != nil {
			return facts{}, err
		}
	}
	return f, nil
}

// Decode reads a transaction in force. The error is an *Unreadable, which names the journal's file; "": not known.
func Decode(h txn.InForce, journal string) (Held, error) {
	notes, name, err := notesOf(Kind(h.Remedy), h.Parameters)
	if err != nil {
		value := h.Parameters[strings.TrimPrefix(name, "parameter ")]
		return Held{}, &Unreadable{ID: h.ID, Remedy: h.Remedy, Target: h.Target, File: journal, Name: name, Value: value, Err: err}
	}
	for _, c := range h.Changes {
		if c.Op != change.OpRemoveCPUs && c.Op != change.OpAddCPUs {
			continue
		}
		if _, err := topology.ParseList(c.To); err != nil {
			return Held{}, &Unreadable{ID: h.ID, Remedy: h.Remedy, Target: h.Target, File: journal, Name: "setting " +
				c.Key().String(), Value: c.To, Err: err}
		}
	}
	return Held{InForce: h, Notes: notes}, nil
}
