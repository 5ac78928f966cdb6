// Package scenariorun has the figures of a scenario that was run, for real or simulated, and
// the tables that both views share.
package scenariorun

import "github.com/unthrottle/unthrottle/internal/scenario"

// Run is a scenario that was run once or more often, for real or simulated. JSON has
// the same keys for both, null where they say nothing of one.
type Run struct {
	Scenario  string  `json:"scenario"` // the file's name
	About     string  `json:"about"`
	Simulated bool    `json:"simulated"`
	Kernel    string  `json:"kernel"`      // uname -r, or the release whose rules were simulated
	Era       *string `json:"era"`         // bandwidth.Release.Letter of those rules; nil: real
	HZ        *int    `json:"hz"`          // simulated ticks per second, 0: continuous; nil: real
	Mode      *string `json:"cgroup_mode"` // v1, v2 or mixed; nil: simulated
	Fair      *bool   `json:"fair"`        // its cgroups' parent had the ordinary weight; nil: simulated
	CPUs      int     `json:"cpus"`        // of the scenario
	Seed      uint64  `json:"seed"`        // the first
	Repeat    int     `json:"repeat"`      // runs, with seeds from Seed on
	// Outcome has the median of each figure over the runs; with an even number
	// of them the lower of the two in the middle.
	scenario.Outcome
	// Lowest and Highest of each figure; nil for a single run.
	Lowest  *scenario.Outcome `json:"lowest"`
	Highest *scenario.Outcome `json:"highest"`
	// Notes on what may have disturbed it, and what of the file did not matter.
	Notes []string `json:"notes"`
}

// Summarize fills a run's figures from its repeats, at least one.
func (t *Run) Summarize(runs []scenario.Outcome) {
	t.Repeat = len(runs)
	t.Outcome = scenario.Quantile(runs, 0.5)
	if len(runs) > 1 {
		low, high := scenario.Quantile(runs, 0), scenario.Quantile(runs, 1)
		t.Lowest, t.Highest = &low, &high
	}
	if t.Notes == nil {
		t.Notes = []string{}
	}
}
