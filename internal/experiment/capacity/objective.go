package capacity

import (
	"fmt"
	"strings"
	"time"

	"github.com/unthrottle/unthrottle/internal/load/loadgen"
	"github.com/unthrottle/unthrottle/internal/objective"
	"github.com/unthrottle/unthrottle/internal/text"
)

// Objective is what a service promises.
type Objective struct {
	objective.Objective         // the quantile is 0.5 to 0.9999
	Errors              float64 // the share of requests that may fail, 0 to 1
}

// DefaultObjective is p99 within 50 ms, and 0.1 % errors.
func DefaultObjective() Objective {
	return Objective{objective.Objective{Quantile: objective.DefaultQuantile, Bound: 50 * time.Millisecond}, 0.001}
}

// ParseSLO reads "p99<50ms" into the objective, as package objective does: percentiles from p50 to p99.99, bounds up to 1m.
func (o *Objective) ParseSLO(s string) error {
	read, err := objective.Parse(s)
	switch {
	case err != nil:
		return err
	case !(read.Quantile >= 0.5 && read.Quantile <= 0.9999):
		return fmt.Errorf("%.60q: give a percentile from p50 to p99.99", s)
	case read.Bound > time.Minute:
		return fmt.Errorf("%.60q: give a bound above 0, at most 1m", s)
	}
	o.Objective = read
	return nil
}

// ParseErrors reads "0.1%" or "0.001".
func (o *Objective) ParseErrors(s string) error {
	number, percent := strings.CutSuffix(s, "%")
	v, err := text.ParseDecimal(number)
	if percent {
		v /= 100
	}
	if err != nil || !(v >= 0 && v < 1) {
		return fmt.Errorf("%.60q: give a share of requests such as 0.1%%", s)
	}
	o.Errors = v
	return nil
}

// judge says whether a step met the objective, and if not why.
func (o Objective) judge(s loadgen.StreamResult) (why string) {
	if s.Intended == 0 {
		return "no request came"
	}
	if share := float64(s.Errors()) / float64(s.Intended); share > o.Errors {
		return fmt.Sprintf("%.3g %% of the requests failed", 100*share)
	}
	// A proportion needs no sample beyond the quantile to be a yes or no; a figure
	// to print would.
	if at, ok := s.Latency.Quantile(o.Quantile, 0); !ok || at > o.Bound {
		return fmt.Sprintf("%s was %v", objective.Percentile(o.Quantile), at.Round(10*time.Microsecond))
	}
	return ""
}

// late is how late the generator may be with a request: a tenth of the bound, at
// least 1 ms. The measured quantile then moves by no more than that.
func (o Objective) late() time.Duration { return max(time.Millisecond, o.Bound/10) }
