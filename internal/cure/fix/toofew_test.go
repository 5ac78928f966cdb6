package fix

import (
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/objective"
)

// Too few latencies: the error says how many there are and are needed, and what to type instead.
func TestTooFew(t *testing.T) {
	p99 := objective.Objective{Quantile: 0.99, Bound: 20 * time.Millisecond}
	for name, test := range map[string]struct {
		n                int
		of               objective.Objective
		window, lookBack time.Duration
		want             string
	}{
		"a lower percentile, or longer": {120, p99, 5 * time.Second, 0,
			"120 numbers, too few to tell p99<20ms: 500 are needed; give --slo 'p95<20ms', which they tell, or look for 21s (--for 21s)"},
		"it always looks back": {60, p99, 5 * time.Second, 20 * time.Second,
			"60 numbers, too few to tell p99<20ms: 500 are needed; give --slo 'p90<20ms', which they tell, or let it " +
				"look back 2m47s (--slo-look-back 2m47s, look_back)"},
		"too few for any": {9, p99, time.Second, 0,
			"9 numbers, too few to tell p99<20ms: 500 are needed; look for 56s (--for 56s)"},
		"too long a look": {1, p99, 5 * time.Second, 0,
			"1 numbers, too few to tell p99<20ms: 500 are needed; let it look back further (--slo-look-back, look_back)"},
		"rarer still": {4999, objective.Objective{Quantile: 0.999, Bound: time.Second},
			10 * time.Second, 0, "give --slo 'p99<1s', which they tell, or look for 11s (--for 11s)"},
	} {
		r := &run{}
		r.o.Objective, r.o.Window, r.o.LookBack = test.of, test.window, test.lookBack
		if got := r.tooFew(test.n).Error(); !strings.HasSuffix(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
