package agreement

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/unthrottle/unthrottle/internal/scenario"
	"github.com/unthrottle/unthrottle/internal/stats"
)

// MostApart bounds the distance of a simulated median from the real one on a kernel
// of the lab. It is 5 points of the periods, or of the quota.
const MostApart = 0.05

// AllCPUs is the comparison on all CPUs of one kernel.
type AllCPUs struct {
	Release string       `json:"release"`
	CPUs    int          `json:"cpus"`
	HZ      int          `json:"hz"`
	Rows    []AllCPUsRow `json:"rows"`
}

// AllCPUsRow is one figure of one cgroup, as shares of its periods or of its quota.
type AllCPUsRow struct {
	Scenario  string  `json:"scenario"`
	Cgroup    string  `json:"cgroup"`
	Figure    Figure  `json:"figure"`
	Simulated float64 `json:"simulated"`
	// Real are those of the real runs, sorted.
	Real []float64 `json:"real"`
}

// Apart tells whether the medians are further apart than MostApart.
func (r AllCPUsRow) Apart() bool { return r.apart() > MostApart }

func (r AllCPUsRow) apart() float64 { return math.Abs(r.Simulated - stats.Median(r.Real)) }

func (r AllCPUsRow) String() string {
	return fmt.Sprintf("%s: %s of %s: simulated %.1f %%, real %.1f %%", r.Scenario, r.Figure, r.Cgroup, 100*r.Simulated,
		100*stats.Median(r.Real))
}

// CompareShares compares runs of a scenario, at least one of each: throttled periods
// and CPU use of every cgroup with a quota.
func CompareShares(name string, s scenario.Scenario, simulated, real []scenario.Outcome) (rows []AllCPUsRow) {
	for i := range s.Cgroups {
		c := &s.Cgroups[i]
		if !c.Limit.Limited() {
			continue
		}
		quota := float64(c.Limit.Quota) / float64(c.Limit.Period)
		for _, f := range []Figure{ThrottledPeriods, Use} {
			shares := func(outcomes []scenario.Outcome) (of []float64) {
				for _, o := range outcomes {
					at := o.Cgroups[c.Name]
					if f == Use {
						of = append(of, at.UsageSeconds/(o.Seconds*quota))
					} else {
						of = append(of, float64(at.ThrottledPeriods)/float64(max(1, at.Periods)))
					}
				}
				slices.Sort(of)
				return of
			}
			rows = append(rows, AllCPUsRow{name, c.Name, f, stats.Median(shares(simulated)), shares(real)})
		}
	}
	return rows
}

// Within is how many figures are not apart.
func (a AllCPUs) Within() (n int) {
	for _, r := range a.Rows {
		if !r.Apart() {
			n++
		}
	}
	return n
}

// Worst is the figure that is furthest apart.
func (a AllCPUs) Worst() AllCPUsRow {
	if len(a.Rows) == 0 {
		return AllCPUsRow{}
	}
	return slices.MaxFunc(a.Rows, func(a, b AllCPUsRow) int { return cmp.Compare(a.apart(), b.apart()) })
}
