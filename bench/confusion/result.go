package confusion

import (
	"math"

	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/load/provoke"
)

// What a scored mix must meet.
const (
	Lead      = 2.0
	leastHarm = 0.02 // of the window
)

// Result is one mix, with what its runs gave.
type Result struct {
	Seed        uint64           `json:"seed"`
	Limit       float64          `json:"limit_cpus"` // 0: none
	Ingredients []Ingredient     `json:"ingredients"`
	Named       []diagnose.Cause `json:"named"` // causes of the run with all, ranked
	Window      float64          `json:"window_seconds"`
	Harm        float64          `json:"harm_seconds"` // of the run with all
	// Steal and Strangers are the most of all its runs: of its CPUs, 0 to 1, and waiting for strangers, in seconds.
	Steal     float64 `json:"steal"`
	Strangers float64 `json:"strangers_seconds"`
}

// Ingredient is one ingredient of a mix, with the harm of the run without it.
type Ingredient struct {
	Cause    diagnose.Cause `json:"cause"`
	Strength float64        `json:"strength"`
	Without  float64        `json:"harm_without_seconds"`
}

// Truth is the ingredient whose removal helps most, and how many times as much as the second best; infinite where
// nothing else helps.
func (r Result) Truth() (cause diagnose.Cause, lead float64) {
	best, second := 0.0, 0.0
	for _, i := range r.Ingredients {
		switch helps := r.Harm - i.Without; {
		case helps > best:
			best, second, cause = helps, best, i.Cause
		case helps > second:
			second = helps
		}
	}
	if second <= 0 {
		return cause, math.Inf(1)
	}
	return cause, best / second
}

// Unscored says why a mix is not scored; "" if it is.
func (r Result) Unscored() string {
	cause, lead := r.Truth()
	switch {
	case r.Steal > provoke.MostForeign:
		return "steal"
	case r.Strangers > provoke.MostForeign*max(r.Harm, leastHarm*r.Window):
		return "strangers"
	case cause == "" || r.Harm-r.without(cause) < leastHarm*r.Window:
		return "no removal helps"
	case lead < Lead:
		return "no clear lead"
	}
	return ""
}

func (r Result) without(c diagnose.Cause) float64 {
	for _, i := range r.Ingredients {
		if i.Cause == c {
			return i.Without
		}
	}
	return r.Harm
}

// First is the cause that was named first; "" if none was.
func (r Result) First() diagnose.Cause {
	if len(r.Named) == 0 {
		return ""
	}
	return r.Named[0]
}

// right tells whether a scored mix was named right.
func (r Result) right() bool {
	cause, _ := r.Truth()
	return r.First() == cause
}

// Again tells mixes that others on the machine spoilt: they may be scored when it is quiet.
func (r Result) Again() bool {
	why := r.Unscored()
	return why == "steal" || why == "strangers"
}
