// Package objective reads and writes a bound on a latency in the one form that every --slo and every rule has: "p99<20ms".
//
// # Rule
//
// A percentile above p0 and below p100, or "max"; "<" or "="; a number above 0 with its unit (us, ms, s, m). Blanks
// around the parts are allowed. What can be measured differs by command, so a caller may refuse some percentiles.
//
// # Worked example
//
//	o, err := objective.Parse("p99.9 < 1.5s")
//
// gives Quantile 0.999 and Bound 1.5 s; o.String() is "p99.9<1.5s".
package objective

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/unthrottle/unthrottle/internal/text"
)

// Objective is a bound on one quantile of a latency.
type Objective struct {
	// Quantile is above 0 and up to 1; 1 is the longest.
	Quantile float64
	// Bound is above 0.
	Bound time.Duration
}

// DefaultQuantile is what is judged where nobody asks for another one.
const DefaultQuantile = P99

// P99 is the quantile of what is called p99 in JSON, in the journal and on pages, whatever is judged.
const P99 = 0.99

// MaxBound is the longest bound that can be written.
const MaxBound = time.Hour

// Parse reads "p99<20ms" or "p99=20ms". Errors say which part is wrong, and show the form.
func Parse(s string) (Objective, error) {
	wrong := func(why string) (Objective, error) {
		return Objective{}, fmt.Errorf("%.60q: %s: write it as p99<20ms", s, why)
	}
	at := strings.IndexAny(s, "<=")
	if at < 0 {
		return wrong(`there is no "<"`)
	}
	name, rest := strings.TrimSpace(s[:at]), s[at+1:]
	if s[at] == '<' {
		rest = strings.TrimPrefix(rest, "=")
	}
	o := Objective{Quantile: 1}
	if name != "max" {
		number, isP := strings.CutPrefix(name, "p")
		percent, err := text.ParseDecimal(number)
		if err != nil || !isP || !(percent > 0 && percent < 100) {
			return wrong("the percentile is none of p50, p90, p95, p99, p99.9, max or another between p0 and p100")
		}
		o.Quantile = math.Round(percent*1e6) / 1e8
	}
	rest = strings.TrimSpace(rest)
	for _, unit := range []struct {
		name string
		is   time.Duration
	}{{"us", time.Microsecond}, {"ms", time.Millisecond}, {"s", time.Second}, {"m", time.Minute}} {
		number, ok := strings.CutSuffix(rest, unit.name)
		if !ok {
			continue
		}
		n, err := text.ParseDecimal(strings.TrimSpace(number))
		bound := n * float64(unit.is)
		switch {
		case err != nil:
			return wrong(fmt.Sprintf("%.30q is no number", number))
		case bound < float64(time.Microsecond) || bound > float64(MaxBound):
			return wrong("the bound is not within 1us to 1h")
		}
		o.Bound = time.Duration(bound)
		return o, nil
	}
	return wrong("the bound has none of the units us, ms, s, m")
}

// Percentile is the quantile as Parse reads it: "p99.9", "max".
func Percentile(quantile float64) string {
	if quantile == 1 {
		return "max"
	}
	return "p" + strconv.FormatFloat(math.Round(quantile*1e8)/1e6, 'f', -1, 64)
}

// InWords is the quantile in a sentence: "p99.9", "the longest".
func InWords(quantile float64) string {
	if quantile >= 1 {
		return "the longest"
	}
	return Percentile(quantile)
}

// Met tells whether a quantile in ms keeps the bound.
func (o Objective) Met(ms float64) bool { return ms < float64(o.Bound)/float64(time.Millisecond) }

// String is what Parse reads; "" for the zero value.
func (o Objective) String() string {
	if o == (Objective{}) {
		return ""
	}
	if o.Bound >= time.Second && o.Bound%(10*time.Millisecond) == 0 {
		return Percentile(o.Quantile) + "<" + strconv.FormatFloat(o.Bound.Seconds(), 'f', -1, 64) + "s"
	}
	return Percentile(o.Quantile) + "<" + strconv.FormatFloat(float64(o.Bound)/float64(time.Millisecond), 'f', -1, 64) + "ms"
}
