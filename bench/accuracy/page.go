package accuracy

import (
	"cmp"
	_ "embed"
	"fmt"
	"math"
	"slices"
	"strings"
	"text/template"
	"time"

	"github.com/unthrottle/unthrottle/internal/scenario"
	"github.com/unthrottle/unthrottle/internal/sim/agreement"
	"github.com/unthrottle/unthrottle/internal/stats"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/test/study"
)

//go:embed page.md
var pageText string

// Required of the simulator, as shares of the draws.
const (
	wantedEach = 0.9 // each figure
	wantedAll  = 0.7 // all figures of a draw together
)

// Beside is what the page has beside the draws: what the simulator makes of published
// figures, and comparisons on kernels of the lab.
type Beside struct {
	Published []Claim
	OnAllCPUs []agreement.AllCPUs
}

// page is what its template is filled in with.
type page struct {
	*Study
	Judged                       []agreement.Judgement
	Waiting                      []string // draws that are not judged
	Beside                       Beside
	MostSteal, MostOthers        float64
	MostApart                    float64
	CalibrateEvery, LeastRepeats int
}

// Markdown is the page. simulated gives a draw's simulated runs. Draws with fewer
// real runs than wanted are judged from three on, and said to have fewer.
func (s *Study) Markdown(simulated func(agreement.Draw) []scenario.Outcome, beside Beside) string {
	p := page{s, nil, nil, beside, agreement.MostSteal, agreement.MostOthers, agreement.MostApart, CalibrateEvery, leastRepeats}
	for _, d := range s.draws {
		if real := s.outcomes(d); len(real) < leastRepeats {
			p.Waiting = append(p.Waiting, fmt.Sprintf("%d (%d)", d.Seed, len(real)))
		} else {
			p.Judged = append(p.Judged, agreement.Judge(d, simulated(d), real))
		}
	}
	return study.Fill(pageText, template.FuncMap{
		"percent": func(share float64) float64 { return 100 * share },
		"met":     func(met bool) string { return text.Either(met, "met", "**missed**") },
		"join":    func(all []string) string { return strings.Join(all, ", ") },
		"sorted": func(all []agreement.AllCPUs) []agreement.AllCPUs {
			return slices.SortedFunc(slices.Values(all), func(a, b agreement.AllCPUs) int { return cmp.Compare(a.Release, b.Release) })
		},
	}, p)
}

// leastRepeats is from how many real runs on a draw is judged.
const leastRepeats = 3

// PublishedText is the page's part of published figures; "": they were not simulated.
func (p page) PublishedText() string {
	if len(p.Beside.Published) == 0 {
		return ""
	}
	return PublishedSection(p.Beside.Published, p.About.ClaimSeeds)
}

// Draws is how many there are to judge, Release the kernel's.
func (p page) Draws() int      { return len(p.draws) }
func (p page) Release() string { return strings.TrimSpace(p.About.Release) }

// Costs are from what to what each cost of a wake-up was; none: they were not measured.
func (p page) Costs() (spans []string) {
	for i := range agreement.Parts(&scenario.WakeCosts{}) {
		low, high := time.Duration(math.MaxInt64), time.Duration(0)
		for _, c := range p.costs {
			low, high = min(low, *agreement.Parts(&c)[i]), max(high, *agreement.Parts(&c)[i])
		}
		if len(p.costs) > 0 {
			spans = append(spans, fmt.Sprintf("%d to %d us", low.Microseconds(), high.Microseconds()))
		}
	}
	return spans
}

// score is the share of draws that agree on a figure, and how often real runs do.
type score struct {
	Of, Bound           string
	Agree, Self, Wanted float64
}

// Met tells whether enough draws agree.
func (s score) Met() bool { return s.Agree >= s.Wanted-1e-9 }

var bounds = map[agreement.Figure]string{
	agreement.ThrottledPeriods: "3 points", agreement.Use: "2 %", agreement.ThrottledTime: "10 %",
	agreement.P50: "15 % or a tick", agreement.P95: "15 % or a tick",
}

// Misses are the rows of all figures that do not agree.
func (p page) Misses() (rows []string) {
	for _, j := range p.Judged {
		for _, v := range j.Misses() {
			low, high := v.Range()
			shown := func(value float64) string { return withUnit(v.Figure, value) }
			rows = append(rows, study.Row(j.Seed, v.Figure, v.Of, shown(v.Simulated), shown(stats.Median(v.Real)),
				shown(low)+" to "+shown(high), shown(v.Bound)))
		}
	}
	return rows
}

// withUnit is a value of a figure; CPU use is in CPUs, throttled time in CPU-seconds per second.
func withUnit(f agreement.Figure, v float64) string {
	switch {
	case math.IsNaN(v):
		return "none"
	case f == agreement.ThrottledPeriods:
		return fmt.Sprintf("%.1f %%", 100*v)
	case f == agreement.P50, f == agreement.P95:
		return fmt.Sprintf("%.1f ms", v)
	}
	return fmt.Sprintf("%.4f", v)
}

// Scores are those of each figure, and of all together.
func (p page) Scores() (scores []score) {
	share := 1 / float64(max(1, len(p.Judged)))
	for _, f := range agreement.Figures() {
		s := score{Of: string(f), Bound: bounds[f], Wanted: wantedEach}
		for _, j := range p.Judged {
			if j.Agrees(f) {
				s.Agree += share
			}
			s.Self += share * j.Self[f]
		}
		scores = append(scores, s)
	}
	together := score{Of: "all together", Wanted: wantedAll}
	for _, j := range p.Judged {
		if len(j.Misses()) == 0 {
			together.Agree += share
		}
		together.Self += share * j.SelfAll
	}
	return append(scores, together)
}
