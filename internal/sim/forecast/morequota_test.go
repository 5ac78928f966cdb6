package forecast

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/unthrottle/unthrottle/internal/see/recording"
	rt "github.com/unthrottle/unthrottle/internal/see/recording/recordingtest"
)

// servers are drawn: pools that answer clients, workers that others wake, bursts that spend the quota.
func servers(t *rapid.T) (recording.Recording, string) {
	const length = 3 * time.Second
	quota := time.Duration(rapid.IntRange(3, 15).Draw(t, "quota")) * 10 * ms
	s := rt.New(4).Limit(quota, 100*ms).Process("server")
	client := s.Outsider("client")
	shape, demand := fmt.Sprintf("quota %v", quota), 0.0
	for p := range rapid.IntRange(1, 3).Draw(t, "pools") {
		n := rapid.IntRange(1, 4).Draw(t, "threads")
		work := time.Duration(rapid.IntRange(1, 30).Draw(t, "work")) * ms
		every := time.Duration(rapid.IntRange(2, 12).Draw(t, "every")) * 10 * ms
		offset := time.Duration(rapid.IntRange(0, 40).Draw(t, "offset")) * ms
		threads := s.Threads(fmt.Sprintf("pool%d", p), n)
		s.Repeat(int(length/every), every, func(at time.Duration) { s.Work(at+offset, work, threads...) })
		s.Client(client, threads...)
		if p == 0 || rapid.Bool().Draw(t, "answers") {
			s.Answers(threads...)
		}
		demand += float64(n) * float64(work) / float64(every)
		shape += fmt.Sprintf("; %d threads, %v each %v from %v on", n, work, every, offset)
	}
	if demand > 0.85*float64(quota)/float64(100*ms) {
		t.Skip("its backlog may never end, and then more quota only moves the stops")
	}
	return s.Run(length), shape
}

// More quota is not slower: whatever the work, a larger limit stops no longer than a smaller one, and requests take no
// longer. So does a burst
// against none. A tenth and a tick of the scheduler are left for the order in which threads take turns.
func TestMoreQuotaIsNotSlower(tt *testing.T) {
	rapid.Check(tt, func(t *rapid.T) {
		r, shape := servers(t)
		f, err := Make(loadOf(t, r), Options{Seeds: 3, Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		if f.Judged == nil {
			return
		}
		none := f.Left()
		for i := range f.Rows {
			row := &f.Rows[i]
			if row.HostLoad != 0 || row.Judged == nil || row.Remedy.Name != Raise && (row.Remedy.Name != Burst || row.Remedy.Period > 0) {
				continue
			}
			if is, was := row.Figures.Stopped, none.Figures.Stopped; float64(is) > 1.1*float64(was)+float64(20*ms) {
				t.Errorf("%s: %s stops for %v, leaving it for %v", shape, row.Remedy.Text(f.Limit), is, was)
			}
			if is, was := *row.Judged, *none.Judged; is > 1.1*was+4 {
				t.Errorf("%s: %s: %s of %s %v, leaving it %v", shape, row.Remedy.Text(f.Limit), f.Judged.Of, f.Judged.Pool, is, was)
			}
		}
	})
}
