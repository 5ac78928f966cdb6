package forecast

import (
	"slices"
	"strings"
	"testing"
	"time"

	rt "github.com/unthrottle/unthrottle/internal/see/recording/recordingtest"
)

// A replay that is of something else than the recording recommends nothing by its latency, and says so.
func TestFailedSelfCheck(t *testing.T) {
	for name, c := range map[string]struct {
		check SelfCheck
		want  string
	}{
		"as recorded":                   {SelfCheck{Judged: Figure{new(50.0), new(60.0)}}, ""},
		"by less than anyone notices":   {SelfCheck{Judged: Figure{new(0.01), new(0.1)}}, ""},
		"the judged one twice as long":  {SelfCheck{Judged: Figure{new(10.0), new(21.0)}}, "the judged latency"},
		"a pool's, which is not judged": {SelfCheck{P99: Figure{new(10.0), new(21.0)}}, ""},
		"stopped time alone":            {SelfCheck{Stopped: Figure{new(1.0), new(2.5)}, Judged: Figure{new(50.0), new(60.0)}}, ""},
	} {
		if got := c.check.Failed(); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	if got := (SelfCheck{Stopped: Figure{new(1.0), new(2.5)}}).FailedBeside(); len(got) != 1 || got[0] != "stopped time" {
		t.Errorf("beside: %q", got)
	}
	s := rt.New(2).Limit(50*ms, 100*ms).Process("java")
	w := s.Threads("http-worker", 2)
	s.Repeat(100, 20*ms, func(at time.Duration) { s.Work(at, 9*ms, w...) })
	l := loadOf(t, s.Run(2*time.Second))
	l.recorded.cpu *= 3 // the recording is of something else
	f, err := Make(l, Options{Seeds: 1, Seed: 1, Smallest: true})
	if err != nil {
		t.Fatal(err)
	}
	if f.Cheapest != -1 || f.SmallestLimit != nil || len(f.Notes) == 0 ||
		!strings.Contains(f.Notes[len(f.Notes)-1], "differs from the recording in CPU time") {
		t.Errorf("cheapest %d, smallest limit %v, notes %q", f.Cheapest, f.SmallestLimit, f.Notes)
	}
}

// Too few responses: how many there are and are needed, and how long to record.
func TestTooFewResponses(t *testing.T) {
	for name, test := range map[string]struct {
		most uint64
		want string
	}{
		"some":  {7, "20 of one pool are needed, and 7 is the most; record for longer (--for 29s)"},
		"none":  {0, "20 of one pool are needed, and 0 is the most; record for longer (--for)"},
		"batch": {20, "too few wake-ups by clients, devices and timers were recorded to judge latency by; record for longer (--for)"},
	} {
		f := Forecast{Window: 10 * time.Second, MostResponses: test.most}
		if got := f.TooFew(); !strings.HasSuffix(got, test.want) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// The kind that waits is judged, however little a forecast would take off it, and not one of which a turn of a trial has too few.
func TestTheKindThatWaitsIsJudged(t *testing.T) {
	l := &Load{window: 12 * time.Second}
	kind := func(n int, unhindered, slow time.Duration) (k kindOf) {
		for i := range n {
			took := unhindered
			if i%10 == 9 {
				took = slow
			}
			k.requests = append(k.requests, len(l.requests))
			l.requests = append(l.requests, recordedRequest{took: took})
		}
		return k
	}
	exports := kind(100, 300*ms, 500*ms)
	for name, c := range map[string]struct {
		kinds []kindOf
		want  int
	}{
		"pings beside exports":     {[]kindOf{exports, kind(400, 2*ms, 75*ms)}, 1},
		"rare checks that wait":    {[]kindOf{exports, kind(12, 2*ms, 75*ms)}, 0},
		"slow by less than counts": {[]kindOf{kind(400, 20*ms, 25*ms), kind(300, ms/10, ms/2)}, 0},
	} {
		m := &maker{l: l, f: &Forecast{}}
		m.judgeRequests(c.kinds, 0.95)
		if !slices.Equal(m.which, c.kinds[c.want].requests) {
			t.Errorf("%s: of %d requests, want kind %d", name, len(m.which), c.want)
		}
	}
}
