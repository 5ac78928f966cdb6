package accuracy

import (
	"fmt"

	"github.com/unthrottle/unthrottle/internal/scenario"
	"github.com/unthrottle/unthrottle/internal/sim/agreement"
)

// About is what a study is of.
type About struct {
	Machine agreement.Machine
	Release string  // of the kernel, in full
	Seconds float64 // of each run
	Repeats int     // real runs of each draw
	Seeds   int     // simulated runs of each draw
	// ClaimSeeds are the simulated runs of each published figure.
	ClaimSeeds int
}

// Study collects the real runs of some draws.
type Study struct {
	About About
	draws []agreement.Draw
	good  map[string][]agreement.Result // that are compared, by draw
	noisy map[string][]agreement.Result
	costs []scenario.WakeCosts // by sitting
	// costsOf are those of the sittings of a draw's runs.
	costsOf map[string][]scenario.WakeCosts
}

// NewStudy has no draws and no runs yet.
func NewStudy(about About) *Study {
	return &Study{About: about, good: map[string][]agreement.Result{}, noisy: map[string][]agreement.Result{},
		costsOf: map[string][]scenario.WakeCosts{}}
}

// Expect adds a draw.
func (s *Study) Expect(d agreement.Draw) { s.draws = append(s.draws, d) }

// Add adds a real run. Those of other draws, machines or durations do not count;
// nor do more than are wanted.
func (s *Study) Add(r agreement.Result) {
	switch {
	case r.Machine != s.About.Machine || r.Seconds != s.About.Seconds:
	case r.Noise.TooMuch() != "":
		s.noisy[r.Key] = append(s.noisy[r.Key], r)
	case len(s.good[r.Key]) < s.About.Repeats:
		s.good[r.Key] = append(s.good[r.Key], r)
		if n := len(s.costs); n > 0 {
			s.costsOf[r.Key] = append(s.costsOf[r.Key], s.costs[n-1])
		}
	}
}

// AddWakeCosts adds a calibration, which is of the runs that are added after it. One
// of another machine does not count.
func (s *Study) AddWakeCosts(m agreement.Machine, costs scenario.WakeCosts) {
	if m == s.About.Machine {
		s.costs = append(s.costs, costs)
	}
}

// WakeCosts are the medians of the calibrations of a draw's runs, of all where it has
// none, 0 without any.
func (s *Study) WakeCosts(d agreement.Draw) scenario.WakeCosts {
	if costs := s.costsOf[d.Key()]; len(costs) > 0 {
		return agreement.MedianCosts(costs)
	}
	return agreement.MedianCosts(s.costs)
}

// CalibrateEvery is how many runs share a calibration: what a wake-up costs drifts.
const CalibrateEvery = 20

// block is how many draws are made at a time.
const block = 8

// Next returns a draw with the fewest runs, of the first unfinished block of [block].
// The runs of one draw are thereby spread over time. Draws of which tries times as
// many runs as wanted were too noisy are given up. False: nothing is missing.
func (s *Study) Next(tries int) (agreement.Draw, bool) {
	best, found := agreement.Draw{}, false
	for i, d := range s.draws {
		if found && i%block == 0 {
			break
		}
		n := len(s.good[d.Key()])
		if n >= s.About.Repeats || len(s.noisy[d.Key()]) >= tries*s.About.Repeats {
			continue
		}
		if !found || s.Runs(d) < s.Runs(best) {
			best, found = d, true
		}
	}
	return best, found
}

// Runs is how many runs of a draw there are, noisy ones too.
func (s *Study) Runs(d agreement.Draw) int { return len(s.good[d.Key()]) + len(s.noisy[d.Key()]) }

// Progress in words.
func (s *Study) Progress() string {
	done, noisy := 0, 0
	for _, d := range s.draws {
		done += len(s.good[d.Key()])
		noisy += len(s.noisy[d.Key()])
	}
	return fmt.Sprintf("%d of %d runs, %d more were too noisy", done, len(s.draws)*s.About.Repeats, noisy)
}

// outcomes of a draw's real runs that are compared.
func (s *Study) outcomes(d agreement.Draw) (all []scenario.Outcome) {
	for _, r := range s.good[d.Key()] {
		all = append(all, r.Outcome)
	}
	return all
}
