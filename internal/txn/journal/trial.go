package journal

import "time"

// Process is one process of this machine, told apart from a later one with the same number.
type Process struct {
	PID int `json:"pid"`
	// Started is the start time in clock ticks after boot (proc_pid_stat(5), field 22); 0: not known.
	Started uint64 `json:"started,omitempty"`
	// Namespace is the inode of the PID namespace that PID is of; 0: not known.
	Namespace uint64 `json:"pid_namespace,omitempty"`
}

// Trial says which process judges a transaction, and until when. If that process ends first, the transaction is to be
// rolled back.
type Trial struct {
	// Of is the transaction that is judged. Transactions that belong to it, or that took its place, share its trial.
	Of string `json:"of"`
	Process
	// Until is when the judgement is due.
	Until time.Time `json:"until"`
}

// Kept ends a trial: its transactions are in force from now on.
type Kept struct {
	// Trial is Trial.Of.
	Trial string    `json:"trial"`
	Time  time.Time `json:"time"`
	By    string    `json:"by,omitempty"`
}

// OnTrial lists the open transactions whose trial is that of id, oldest first.
func (s *State) OnTrial(id string) []*Txn {
	var txns []*Txn
	for _, t := range s.Open() {
		if t.Phase == OnTrial && t.Trial.Of == id {
			txns = append(txns, t)
		}
	}
	return txns
}

// Held reports whether everything that the transaction wanted is written: it is in force, or on trial.
func (t *Txn) Held() bool { return t.Phase == InForce || t.Phase == OnTrial }

func (s *State) foldKept(k Kept, lineNo int) {
	for _, t := range s.OnTrial(k.Trial) {
		s.mark(t.Txn, lineNo)
		t.Phase = InForce
	}
}
