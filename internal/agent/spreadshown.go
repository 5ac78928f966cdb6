package agent

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/unthrottle/unthrottle/internal/cure/switchback"
	"github.com/unthrottle/unthrottle/internal/text"
)

// SpreadTrial is a trial that is spread over hours, or what it kept, as `status` shows it.
type SpreadTrial struct {
	Container string    `json:"container"`
	Cgroup    string    `json:"cgroup"`
	Began     time.Time `json:"began"`
	// NextBlock is when the next block is due; it waits for a quiet time, another trial or a resize to end.
	NextBlock time.Time `json:"next_block"`
	// AA: it is an A/A test, in which no remedy is in force.
	AA bool `json:"aa"`
	// Blocks is how many there were, of the trial or since a remedy was kept.
	Blocks int `json:"blocks"`
	// Remedied counts the requests in the trial's blocks with a remedy, LeftAlone those in its other blocks.
	Remedied  switchback.Counted `json:"remedied"`
	LeftAlone switchback.Counted `json:"left_alone"`
	Variants  []SpreadVariant    `json:"variants"` // those of the trial; none once a remedy is kept
	Kept      *SpreadKept        `json:"kept"`     // null: remedies are tried still
}

// SpreadVariant is a remedy that is tried.
type SpreadVariant struct {
	Name string `json:"name"`
	switchback.Compared
	Out *string `json:"out"` // why it is not tried any more; null: it is
}

// SpreadKept is a remedy that was kept, compared with the blocks for which the container was left alone since.
type SpreadKept struct {
	Transaction string `json:"transaction"`
	// Promised is how many times as long as without it requests took in the trial.
	Promised float64 `json:"promised_times"`
	switchback.Compared
	Helps bool `json:"still_helps"` // false: there is enough evidence that it brings less than half of that
}

// SpreadTrials are those that the agent of a state directory has, by cgroup. A file that cannot be read is left out: the next agent removes
// it, and begins that trial anew.
func SpreadTrials(stateDir string) ([]SpreadTrial, error) {
	read, _, err := readSpread(stateDir)
	all := []SpreadTrial{}
	for _, s := range read {
		shown := SpreadTrial{Container: s.Name, Cgroup: text.EscapePath(s.Cgroup), Began: s.State.Began, NextBlock: s.Next, AA: s.AA,
			Blocks:   len(s.State.Blocks),
			Remedied: s.State.Count(switchback.Remedied), LeftAlone: s.State.Count(switchback.LeftAlone), Variants: []SpreadVariant{}}
		if k := s.Kept; k != nil {
			shown.Blocks = k.Blocks
			shown.Kept = &SpreadKept{s.Transaction, math.Exp(k.Promised), k.Compared(), k.Still()}
		} else {
			for i, name := range s.Names {
				v := SpreadVariant{Name: name, Compared: s.State.Compared(i + 1)}
				if out := s.State.Out[i+1]; out != "" {
					v.Out = &out
				}
				shown.Variants = append(shown.Variants, v)
			}
		}
		all = append(all, shown)
	}
	slices.SortFunc(all, func(a, b SpreadTrial) int { return strings.Compare(a.Cgroup, b.Cgroup) })
	return all, err
}
