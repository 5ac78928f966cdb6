package explain

import (
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/explain/requests"
)

// Why responses are those of threads is said, also where requests were read and not answered.
func TestOfThreads(t *testing.T) {
	for want, r := range map[string]*requests.Requests{
		"no reads and writes of sockets":                                     {},
		"no requests of clients outside were seen":                           {Seen: true, Unanswered: requests.Least - 1},
		"5 requests of clients outside, and 20 are needed":                   {Seen: true, Count: 5},
		"300 requests of clients outside were read, and hardly any was answ": {Seen: true, Unanswered: 300},
		"hardly any was answered on its connection or socket":                {Seen: true, Count: 3, Unanswered: 300},
	} {
		if got := ofThreads(r); !strings.Contains(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for _, r := range []*requests.Requests{nil, {Seen: true, Count: requests.Least, Unanswered: 300}} {
		if got := ofThreads(r); got != "" {
			t.Errorf("%+v: %q", r, got)
		}
	}
}

// Of so few requests that they tell no p99 the sentence has the quantile that a fix would judge by.
func TestTheQuantileThatRequestsTell(t *testing.T) {
	few := requests.Requests{Count: 30, P50: time.Millisecond, P99: 90 * time.Millisecond, Max: 90 * time.Millisecond,
		Quantile: 0.95, High: 40 * time.Millisecond}
	if got := requestsText(&few); !strings.Contains(got, "p95 40 ms") || strings.Contains(got, "p99") {
		t.Error(got)
	}
	few.Quantile, few.High = 0.99, 90*time.Millisecond
	if got := requestsText(&few); !strings.Contains(got, "p99 90 ms") {
		t.Error(got)
	}
}
