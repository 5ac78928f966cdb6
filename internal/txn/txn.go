// Package txn holds the values of a transaction that planners and its executor exchange. It is pure.
//
// Problem: a planner decides what to write, package apply writes it, and both need the same words for a transaction.
// If these were the executor's, every planner would import the code that writes as root.
//
// Rule: [Part] goes from a planner to package apply. [InForce], [DriftItem] and [Past] come back: what is in force,
// where it no longer is as we left it, and what has ended. [Expected] and [Outcome] are the figures of both sides, and
// [Deviations] compares them.
//
// Worked example: a pin of /pods/a is Part{Purpose: {Target: /pods/a, Remedy: "pin"}, Changes: ...}. Package apply
// journals and writes it, and then lists it as InForce{ID: "20260101-120000-a1b2c3", Target: "/pods/a", ...}.
package txn

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/txn/change"
)

// Target is what a transaction changes: the container's cgroup path (cpu hierarchy) and the name that people use.
type Target struct {
	Path string
	Name string
}

// Purpose says what a transaction is for. The journal keeps it with the transaction.
type Purpose struct {
	Target Target
	Remedy string
	// Parameters are the planner's own notes. Package apply stores them and does not read them.
	Parameters map[string]string
	// Expected is the forecast; nil: there is none.
	Expected *Expected
	// Trial is how long the caller needs at most to judge the transaction. Until apply.Keep it is on trial: if the caller
	// ends first, the next writer rolls it back. 0: it is not on trial.
	Trial time.Duration
	// BelongsTo is the transaction that this one looks after, whose trial it shares; "": none.
	BelongsTo string
}

// Part is one transaction, ready to be carried out alone or together with others.
type Part struct {
	Purpose Purpose
	// Changes are the settings to write. The transaction inherits the settings that only the replaced transactions
	// name.
	Changes []change.Change
	// Replaces are the ids of the transactions in force whose place it takes.
	Replaces []string
}

// Skip is a setting or cgroup that was left alone, and why.
type Skip struct {
	Path string `json:"path"`
	File string `json:"file,omitempty"`
	Why  string `json:"why"`
}

// MarshalJSON escapes names that are not UTF-8.
func (s Skip) MarshalJSON() ([]byte, error) {
	type plain Skip
	s.Path = text.EscapePath(s.Path)
	return json.Marshal(plain(s))
}

// InForce is one transaction that has not been rolled back.
type InForce struct {
	ID         string            `json:"id"`
	Target     string            `json:"target"`
	Name       string            `json:"name,omitempty"`
	Remedy     string            `json:"remedy"`
	Since      time.Time         `json:"since"`
	By         string            `json:"by"`
	Verdict    string            `json:"verdict"`
	Parameters map[string]string `json:"parameters,omitempty"`
	Expected   *Expected         `json:"expected,omitempty"`
	Outcome    *Outcome          `json:"outcome,omitempty"`
	// Trial is set while the transaction is on trial.
	Trial *Trial `json:"trial,omitempty"`
	// Narrow is what the scheduler counts of a narrow by sched_ext, where the caller asked for it; nil: it is none.
	Narrow *Narrow `json:"narrow,omitempty"`
	// Stops are those since its outcome was recorded, where the caller asked for them; nil: they are not known.
	Stops *Stops `json:"stops,omitempty"`
	// Unfinished: a process is applying or restoring it, or was when it ended.
	Unfinished bool `json:"-"`
	// Changes are the settings that it holds: From is the original value, To the operand of Op.
	Changes []change.Change `json:"-"`
}

// MarshalJSON escapes names that are not UTF-8, and shows numbers and switches among the parameters as such.
func (f InForce) MarshalJSON() ([]byte, error) { return json.Marshal(f.shown()) }

// shownInForce is InForce as JSON shows it.
type shownInForce struct {
	plainInForce
	Parameters map[string]any `json:"parameters,omitempty"`
}

type plainInForce InForce

func (f InForce) shown() shownInForce {
	f.Target = text.EscapePath(f.Target)
	s := shownInForce{plainInForce: plainInForce(f)}
	for name, value := range f.Parameters {
		if s.Parameters == nil {
			s.Parameters = map[string]any{}
		}
		s.Parameters[name] = typed(name, value)
	}
	return s
}

// Parameters that are numbers, in CPUs or factors, and switches, which are "yes"; all others are text, such as lists of CPUs.
var (
	numbers  = []string{"to", "factor", "limit"}
	switches = []string{"lends", "stays", "asked", "irqs"}
)

// typed is a parameter as what it says.
func typed(name, value string) any {
	number, err := text.ParseDecimal(value)
	switch {
	case slices.Contains(numbers, name) && err == nil:
		return number
	case slices.Contains(switches, name):
		return value == "yes"
	}
	return value
}

// Past is a transaction that has ended.
type Past struct {
	InForce
	Until   time.Time `json:"until"`
	Reason  string    `json:"reason"`
	Skipped []Skip    `json:"skipped,omitempty"`
}

// MarshalJSON keeps the fields of both: the MarshalJSON of InForce would hide the rest.
func (p Past) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		shownInForce
		Until   time.Time `json:"until"`
		Reason  string    `json:"reason"`
		Skipped []Skip    `json:"skipped,omitempty"`
	}{p.InForce.shown(), p.Until, p.Reason, p.Skipped})
}

// DriftItem is a setting whose value is no longer the one that a transaction in force left there.
type DriftItem struct {
	ID      string `json:"id"`
	Target  string `json:"target"`
	Path    string `json:"path"`
	File    string `json:"file"`
	Want    string `json:"want"`
	Current string `json:"current"`
	// Gone: the cgroup does not exist any more, or another one has its path.
	Gone bool `json:"gone,omitempty"`
}

// MarshalJSON escapes names that are not UTF-8.
func (d DriftItem) MarshalJSON() ([]byte, error) {
	type plain DriftItem
	d.Target, d.Path = text.EscapePath(d.Target), text.EscapePath(d.Path)
	return json.Marshal(plain(d))
}
