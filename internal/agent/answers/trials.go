package answers

import "time"

// TrialsSchema is that of Trials.
const TrialsSchema = "agent_trials"

// MaxTrialEnds is how many ends of trials the agent remembers, the last ones.
const MaxTrialEnds = 64

// Trials answers GET /trials: what came of the trials of pods that the agent spread over hours. It is forgotten when the agent ends.
type Trials struct {
	Schema  string     `json:"schema"`
	Version int        `json:"version"`
	Ended   []TrialEnd `json:"ended"` // oldest first
}

// What came of a trial: a remedy was kept; none was; or one that was kept no longer helped, and was taken back.
const (
	TrialKept    = "kept"
	TrialNone    = "none"
	TrialUseless = "no_longer_helps"
)

// TrialEnd is one of them.
type TrialEnd struct {
	Namespace string    `json:"namespace"`
	Pod       string    `json:"pod"`
	UID       string    `json:"uid"`
	Container string    `json:"container"`
	At        time.Time `json:"at"`
	Outcome   string    `json:"outcome"`
	Says      string    `json:"says"` // what was measured, in words
}
