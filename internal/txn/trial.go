package txn

import (
	"fmt"
	"time"
)

// Trial says who judges a transaction whose effect is not known yet.
type Trial struct {
	// Of is the transaction that is judged: this one, or the one that it belongs to.
	Of string `json:"of"`
	// PID is the process that judges it, in that process's PID namespace.
	PID int `json:"pid"`
	// Until is when the judgement is due.
	Until time.Time  `json:"until"`
	State TrialState `json:"state"`
}

// TrialState says whether the transaction will still be judged.
type TrialState string

// The states of a trial. The next writer rolls back a transaction whose trial is abandoned or overdue.
const (
	// TrialRunning: the process that judges it runs, or whether it does is not known and the time is not over.
	TrialRunning TrialState = "running"
	// TrialAbandoned: the process ended before the judgement.
	TrialAbandoned TrialState = "abandoned"
	// TrialOverdue: the judgement was due long ago.
	TrialOverdue TrialState = "overdue"
)

// Lost reports whether nothing will judge the transaction any more.
func (t *Trial) Lost() bool { return t != nil && t.State != TrialRunning }

// Why says in words why nothing will judge the transaction any more; "" while the trial runs.
func (t *Trial) Why() string {
	switch {
	case !t.Lost():
		return ""
	case t.State == TrialOverdue:
		return fmt.Sprintf("process %d was to judge it by %s", t.PID, t.Until.Format(time.RFC3339))
	}
	return fmt.Sprintf("process %d, which was to judge it, has ended", t.PID)
}

// Judged says who judges it, for as long as its trial runs; "": it is not on trial, or nothing will judge it any more.
func (f InForce) Judged() string {
	if f.Trial == nil || f.Trial.Lost() {
		return ""
	}
	return fmt.Sprintf("%s %s is on trial: process %d tries remedies on it, and judges this one by %s", f.Remedy, f.ID, f.Trial.PID,
		f.Trial.Until.Format(time.RFC3339))
}

// AwaitTrial is the way out while a trial runs.
const AwaitTrial = "wait until it has ended, or end that process, which undoes what it tries"
