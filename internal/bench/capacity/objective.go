package capacity

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/unthrottle/unthrottle/internal/load/loadgen"
	"github.com/unthrottle/unthrottle/internal/text"
)

// Objective is what a service promises.
type Objective struct {
	Quantile float64       // 0.5 to 0.9999
	Bound    time.Duration // of that quantile
	Errors   float64       // the share of requests that may fail, 0 to 1
}

// DefaultObjective is p99 within 50 ms, and 0.1 % errors.
func DefaultObjective() Objective {
	return Objective{Quantile: 0.99, Bound: 50 * time.Millisecond, Errors: 0.001}
}

// String is as ParseSLO reads it.
func (o Objective) String() string {
	return fmt.Sprintf("p%s=%v", strconv.FormatFloat(100*o.Quantile, 'f', -1, 64), o.Bound)
}

// ParseSLO reads "p99=50ms" into the objective.
func (o *Objective) ParseSLO(s string) error {
	quantile, bound, ok := strings.Cut(s, "=")
	percent, isP := strings.CutPrefix(quantile, "p")
	if !ok || !isP {
		return fmt.Errorf("%.60q: give a quantile and its bound, such as p99=50ms", s)
	}
	q, err := text.ParseDecimal(percent)
	if err != nil || !(q >= 50 && q <= 99.99) {
		return fmt.Errorf("%.60q: give a quantile from p50 to p99.99", s)
	}
	d, err := time.ParseDuration(bound)
	if err != nil {
		return fmt.Errorf("%.60q: give a time with its unit, such as 50ms", s)
	}
	if d <= 0 || d > time.Minute {
		return fmt.Errorf("%.60q: give a bound above 0, at most 1m", s)
	}
	o.Quantile, o.Bound = q/100, d
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
		return fmt.Sprintf("p%s was %v", strconv.FormatFloat(100*o.Quantile, 'f', -1, 64), at.Round(10*time.Microsecond))
	}
	return ""
}

// late is how late the generator may be with a request: a tenth of the bound, at
// least 1 ms. The measured quantile then moves by no more than that.
func (o Objective) late() time.Duration { return max(time.Millisecond, o.Bound/10) }
