package canary

import (
	"crypto/sha256"
	"encoding/binary"
	"time"
)

const (
	// LeastPods is how many pods a canary needs: with one treated, three others show how much pods vary.
	LeastPods = 4
	// MostShare is the largest share that is treated before it is known to be better: with as many treated as not the difference
	// is known best.
	MostShare = 0.5
	// Cooldown is for how long nothing is tried after a remedy was taken back.
	Cooldown = 24 * time.Hour
	// grace is how much longer than it may take to judge a step agents let it be in force.
	grace = 10 * time.Minute
)

// Plan is what a canary may do.
type Plan struct {
	// Share of the pods is treated at first, above 0 and at most MostShare.
	Share float64
	// Watch is how long each step is watched. A longer one counts from the next step on.
	Watch time.Duration
	// Nodes is on how many nodes that had no treated pod a step may begin; 0: any number.
	Nodes int
	// Bound is the largest value of the guard that is no harm.
	Bound float64
}

// Pod is one that runs or is about to, as it was seen.
type Pod struct {
	UID, Name string
	// Node is where it is; "": nowhere yet.
	Node string
	// Pending: it does not run yet. A draw that takes it counts it, because it is treated when it runs; a share is one of those that run.
	Pending bool
	// Workload is what made it, for people, such as "Deployment cart".
	Workload string
	Created  time.Time
	// Budget is the PodDisruptionBudget that protects it; "": none.
	Budget string
	// Before and After are its judged quantile at State.Begun and now, in any unit; nil: not measured.
	Before, After *float64
}

// Seen is what Next decides by.
type Seen struct {
	Now time.Time
	// Chance is a random number, which a draw takes as its seed.
	Chance int64
	Pods   []Pod
	// Disruptions are how many pods each PodDisruptionBudget lets be disrupted now.
	Disruptions map[string]int
	// Guard is its value; nil: it could not be read.
	Guard *float64
}

// The phases of a canary.
const (
	// Waits: nothing is in force.
	Waits = "Waits"
	// Watches: a share of the pods has the remedy.
	Watches = "Watches"
	// Finishes: it was shown to be better, and the other pods get it.
	Finishes = "Finishes"
	// Kept: all pods have it, also those to come.
	Kept = "Kept"
	// Reverted: it was taken back from all.
	Reverted = "Reverted"
)

// State is a canary as it is kept between two decisions. The zero value is one that was never begun.
type State struct {
	// Tried names what is tried: another one begins anew.
	Tried string `json:"tried"`
	Phase string `json:"phase"`
	// Why is the last decision's reason, in a sentence.
	Why string `json:"why"`
	// Step is how often the share doubled.
	Step int64 `json:"step"`
	// Seed orders the pods. Those up to Below in the order that were made by Newest are treated; of pods of one second the order
	// says which were made first.
	Seed   int64     `json:"seed"`
	Below  int64     `json:"below"`
	Newest time.Time `json:"newest,omitzero"`
	// Pods and Treated are how many there were at the last draw, with those that did not run yet.
	Pods    int64 `json:"pods"`
	Treated int64 `json:"treated"`
	// Begun is when the first pods were drawn, Drawn when the last ones were.
	Begun time.Time `json:"begun,omitzero"`
	Drawn time.Time `json:"drawn,omitzero"`
	// Until is when agents take back by themselves what was not judged.
	Until time.Time `json:"until,omitzero"`
	// Again is before which nothing is drawn.
	Again time.Time `json:"again,omitzero"`
}

// places is how many places the order of pods has: whole numbers that JSON keeps.
const places = 1 << 53

// place is a pod's in the order of a seed, from 1 on.
func place(seed int64, uid string) int64 {
	sum := sha256.Sum256(append(binary.BigEndian.AppendUint64(nil, uint64(seed)), uid...))
	return 1 + int64(binary.BigEndian.Uint64(sum[:8])%places)
}

// made is when a pod was created, apart from others of the same second: all pods of a Deployment that grows are of one second, and a
// step may be allowed some of them alone.
func (s State) made(p Pod) time.Time {
	return p.Created.UTC().Add(time.Duration(place(s.Seed, p.UID) >> 24)) // of 2^53, in nanoseconds: about half a second
}

// Treats tells whether a pod has the remedy.
func (s State) Treats(p Pod) bool {
	switch s.Phase {
	case Kept:
		return true
	case Watches, Finishes:
		return place(s.Seed, p.UID) <= s.Below && !s.made(p).After(s.Newest)
	}
	return false
}

// Trying tells whether a step is being watched.
func (s State) Trying() bool { return s.Phase == Watches || s.Phase == Finishes }

// Due tells whether a step's watch is over, so that Next wants the pods' quantiles.
func (s State) Due(p Plan, now time.Time) bool {
	return s.Trying() && !now.Before(s.Drawn.Add(s.watch(p)))
}

// lasts is for how long a step that is watched for so long may be in force.
func lasts(watch time.Duration) time.Duration { return 2*watch + grace }

// watch is how long the step is watched: no longer than it was planned for when it was drawn, since agents know when that is over.
func (s State) watch(p Plan) time.Duration {
	return min(p.Watch, (s.Until.Sub(s.Drawn)-grace)/2)
}
