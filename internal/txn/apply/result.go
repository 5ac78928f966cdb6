package apply

import (
	"encoding/json"
	"time"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/internal/txn/change"
)

// Verdicts of Plan, Apply and Restore; Record adds the callers' own.
const (
	verdictPlanned     = "planned"            // dry run
	verdictUnverified  = "unverified"         // written, effect not proven
	verdictUndone      = "undone"             // failed and rolled back
	verdictHalf        = "half applied"       // failed, and the rollback failed too: run restore
	VerdictNothing     = "nothing to do"      // every value was there already, or nothing was in force
	VerdictRestored    = "restored"           // all put back
	verdictPartly      = "partly restored"    // the settings in Skipped were left alone
	verdictNotRestored = "not restored"       // something was refused and stays in force; Skipped says what and why
	verdictInterrupted = "interrupted"        // Status: the writer died while applying
	verdictReleasing   = "restore unfinished" // Status: the writer died while restoring
	verdictOnTrial     = "on trial"           // Status: written, and a process is judging it
	verdictLost        = "trial abandoned"    // Status: the process that was to judge it ended, or is long overdue
)

// Write is one write to one setting.
type Write struct {
	Path string `json:"path"`
	File string `json:"file"`
	// Before and After are the texts as the kernel shows and takes them. For Kind cgroup: "" and "present"; for Kind
	// task: the cgroups that processes leave and enter.
	Before     string            `json:"before"`
	After      string            `json:"after"`
	Done       bool              `json:"done"`
	Kind       change.Kind       `json:"kind"`
	Controller cgroup.Controller `json:"controller,omitempty"`
	Unit       string            `json:"unit,omitempty"`
	Why        string            `json:"why,omitempty"`
}

// MarshalJSON escapes names that are not UTF-8.
func (w Write) MarshalJSON() ([]byte, error) {
	type plain Write
	w.Path, w.Unit = text.EscapePath(w.Path), text.EscapePath(w.Unit)
	w.Before, w.After = text.EscapePath(w.Before), text.EscapePath(w.After)
	return json.Marshal(plain(w))
}

// Result is what was, or would be, done.
type Result struct {
	ID       string     `json:"id,omitempty"`
	Writes   []Write    `json:"writes"`
	Skipped  []txn.Skip `json:"skipped"`
	Verdict  string     `json:"verdict"`
	Warnings []string   `json:"warnings,omitempty"`
	// IDs are all transactions of Replace, in the order of its parts.
	IDs []string `json:"-"`
	// Took is the time from before the first write to after the last.
	Took time.Duration `json:"-"`
}

// newResult has empty arrays rather than nulls in its JSON.
func newResult() Result { return Result{Writes: []Write{}, Skipped: []txn.Skip{}} }

func writeOf(c change.Change) Write {
	return Write{Path: c.Path, File: c.File, Before: c.From, After: c.To, Kind: c.Kind, Controller: c.Controller,
		Unit: c.Unit, Why: c.Why}
}
