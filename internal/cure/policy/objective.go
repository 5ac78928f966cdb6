package policy

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/unthrottle/unthrottle/internal/text"
)

// Objective is a bound on a quantile of the user's own latency.
type Objective struct {
	// Quantile is 0 to 1; 1 is the longest.
	Quantile float64
	Bound    time.Duration
}

// quantiles are the ones that can be asked for, by name.
var quantiles = map[string]float64{"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p99.9": 0.999, "max": 1}

// maxBound is the longest bound that makes sense: the latency source itself is
// ended after 30 s.
const maxBound = 30 * time.Second

// ParseObjective reads "p99<20ms": a quantile (p50, p90, p95, p99, p99.9, max),
// "<", a positive number and its unit (us, ms, s). Blanks around the parts are
// allowed.
func ParseObjective(s string) (Objective, error) {
	wrong := func(why string) (Objective, error) {
		return Objective{}, fmt.Errorf("slo %.60q: %s: write it as p99<20ms", s, why)
	}
	name, rest, ok := strings.Cut(s, "<")
	if !ok {
		return wrong(`there is no "<"`)
	}
	q, ok := quantiles[strings.TrimSpace(name)]
	if !ok {
		return wrong("the quantile is none of p50, p90, p95, p99, p99.9, max")
	}
	rest = strings.TrimSpace(rest)
	for _, unit := range []struct {
		name string
		is   time.Duration
	}{{"us", time.Microsecond}, {"ms", time.Millisecond}, {"s", time.Second}} {
		number, ok := strings.CutSuffix(rest, unit.name)
		if !ok {
			continue
		}
		n, err := text.ParseDecimal(strings.TrimSpace(number))
		bound := n * float64(unit.is)
		switch {
		case err != nil:
			return wrong(fmt.Sprintf("%.30q is no number", number))
		case bound < float64(time.Microsecond) || bound > float64(maxBound):
			return wrong("the bound is not within 1us to 30s")
		}
		return Objective{q, time.Duration(bound)}, nil
	}
	return wrong("the bound has none of the units us, ms, s")
}

// String is what ParseObjective reads.
func (o Objective) String() string {
	for name, q := range quantiles {
		if q == o.Quantile {
			return name + "<" + strconv.FormatFloat(float64(o.Bound)/float64(time.Millisecond), 'f', -1, 64) + "ms"
		}
	}
	return ""
}

// Met tells whether a quantile in ms keeps the bound.
func (o Objective) Met(ms float64) bool { return ms < float64(o.Bound)/float64(time.Millisecond) }
