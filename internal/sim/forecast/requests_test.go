package forecast

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/explain/requests"
	"github.com/unthrottle/unthrottle/internal/see/recording"
	rt "github.com/unthrottle/unthrottle/internal/see/recording/recordingtest"
)

// answered is a thread that runs for 8 ms each 100 ms, and answers a request after 6 ms that arrived some time before the
// run began. It writes twice.
func answered(n int, before time.Duration) recording.Recording {
	s := rt.New(2).Limit(50*ms, 100*ms).Process("server")
	w := s.Threads("server", 1)
	s.Repeat(n, 100*ms, func(at time.Duration) { s.Work(at, 8*ms, w...) })
	r := s.Run(time.Duration(n) * 100 * ms)
	var wakeups []recording.Event
	for _, e := range r.Events {
		if e.Kind == recording.Wakeup {
			wakeups = append(wakeups, e)
		}
	}
	for i, e := range wakeups {
		of := recording.Event{Thread: e.Thread, Socket: uint32(i%4 + 1), CPU: e.CPU}
		for after, kind := range map[time.Duration]recording.Kind{1 * ms: recording.Receive, 3 * ms: recording.Send, 6 * ms: recording.Send} {
			one := of
			one.AtNS, one.Kind = e.AtNS+after.Nanoseconds(), kind
			if kind == recording.Receive {
				one.Count = uint64(after + before)
			}
			r.Events = append(r.Events, one)
		}
	}
	slices.SortStableFunc(r.Events, func(a, b recording.Event) int { return int(a.AtNS - b.AtNS) })
	return r
}

// The p99 of requests is from the arrival to the last write, where that is longer than the thread's response.
func TestRequestsAreForecast(t *testing.T) {
	for name, test := range map[string]struct {
		n      int
		before time.Duration
		p99    float64 // 0: none is shown
	}{
		"a queue before the thread": {requests.Least + 5, 20 * ms, 26},
		"as long as the response":   {requests.Least + 5, 0, 0},
		"too few":                   {requests.Least, 20 * ms, 0}, // the first begins before the recording
	} {
		t.Run(name, func(t *testing.T) {
			f, err := Make(loadOf(t, answered(test.n, test.before)), Options{Seeds: 2, Seed: 1})
			if err != nil {
				t.Fatal(err)
			}
			if (f.Requests != nil) != (test.p99 > 0) {
				t.Fatalf("requests %+v, judged %+v", f.Requests, f.Judged)
			}
			for _, row := range f.Rows {
				switch {
				case test.p99 == 0 || row.Remedy.Modelled() || row.Refused != "":
					if row.Requests != nil || row.RequestsRange != nil {
						t.Errorf("%s: requests %v", row.Remedy.Name, *row.Requests)
					}
				case row.Requests == nil:
					t.Errorf("%s: no requests", row.Remedy.Name)
				case row.Remedy.Name == None && (math.Abs(*row.Requests-test.p99) > 0.5 || row.RequestsRange.Low > *row.Requests || row.RequestsRange.High < *row.Requests):
					t.Errorf("left alone: p99 %v of %+v, and %v is wanted", *row.Requests, *row.RequestsRange, test.p99)
				}
			}
		})
	}
}
