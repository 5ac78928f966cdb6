package policy

import (
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/objective"
)

func TestParseObjective(t *testing.T) {
	for text, want := range map[string]objective.Objective{
		"p99<20ms":       {Quantile: 0.99, Bound: 20 * time.Millisecond},
		" p50 < 1.5 s ":  {Quantile: 0.5, Bound: 1500 * time.Millisecond},
		"p99.9<250us":    {Quantile: 0.999, Bound: 250 * time.Microsecond},
		"max<30s":        {Quantile: 1, Bound: 30 * time.Second},
		"p90<1e2ms":      {Quantile: 0.9, Bound: 100 * time.Millisecond},
		"p95<0.001ms":    {Quantile: 0.95, Bound: time.Microsecond},
		"p99<20":         {},
		"p99>20ms":       {},
		"p98<20ms":       {},
		"p99<20m":        {},
		"p99<-1ms":       {},
		"p99<0ms":        {},
		"p99<NaNms":      {},
		"p99<infs":       {},
		"p99<0x1p4ms":    {},
		"p99<31s":        {},
		"":               {},
		"p99<":           {},
		"p99<20ms<30ms":  {},
		"p99<0.0000001s": {},
	} {
		got, err := ParseObjective(text)
		if (err != nil) != (want == objective.Objective{}) || got != want {
			t.Errorf("%q: got %+v, %v, want %+v", text, got, err, want)
		}
		if err != nil && !strings.Contains(err.Error(), "write it as p99<20ms") {
			t.Errorf("%q: no way out in %q", text, err)
		}
	}
}

func FuzzParseObjective(f *testing.F) {
	for _, text := range []string{"p99<20ms", "max<1s", "p99.9 < 250us", "p99<<1ms"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		o, err := ParseObjective(text)
		if err != nil {
			return
		}
		if o.Bound < time.Microsecond || o.Bound > maxBound {
			t.Fatalf("%q: bound %v", text, o.Bound)
		}
		if again, err := ParseObjective(o.String()); err != nil || again.Quantile != o.Quantile ||
			(again.Bound-o.Bound).Abs() > time.Nanosecond {
			t.Fatalf("%q: %s reads as %+v, %v", text, o, again, err)
		}
	})
}
