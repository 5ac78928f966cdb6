package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/unthrottle/unthrottle/bench/services"
	"github.com/unthrottle/unthrottle/internal/stats"
	"github.com/unthrottle/unthrottle/test/study"
)

// sampledLook is what look said of a case: by samples of counters and threads, without BPF.
type sampledLook struct {
	study.Made
	Case    string  `json:"case"`
	Seconds float64 `json:"seconds"`        // until it ended
	Load    float64 `json:"load,omitempty"` // as that of a caseRun
	Look    look    `json:"look"`
}

// keepSampled keeps what look said of a case, in the place of what it said before.
func keepSampled(have *study.Lines[sampledLook], one sampledLook) error {
	have.All = append(slices.DeleteFunc(have.All, func(l sampledLook) bool { return l.Case == one.Case }), one)
	return have.Write()
}

// sampledTally is the sum of what look said, for docs/results/truth.md.
type sampledTally struct {
	tally
	Median, Most float64 // seconds until it ended
	Scaled       string  // as that of choices
}

// sampledOf is that of all cases that look was tried on; nil: of none.
func sampledOf(testCases []services.Case, all []sampledLook) *sampledTally {
	if len(all) == 0 {
		return nil
	}
	t, took, parts := &sampledTally{}, []float64{}, []string{}
	for _, c := range testCases {
		at := slices.IndexFunc(all, func(l sampledLook) bool { return l.Case == c.Name })
		if at < 0 {
			t.Open = append(t.Open, c.Name)
			continue
		}
		k := caseRun{Case: c.Name, Look: &all[at].Look}
		t.add(c, k)
		took, parts = append(took, all[at].Seconds), appendPart(parts, c.Name, all[at].Load)
		if what := missed(c, k); what != "" {
			t.Wrong = append(t.Wrong, fmt.Sprintf("`%s`: %s", c.Name, what))
		}
	}
	t.Median, t.Most, t.Scaled = stats.Median(took), slices.Max(took), strings.Join(parts, ", ")
	return t
}
