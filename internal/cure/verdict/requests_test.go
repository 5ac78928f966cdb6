package verdict

import (
	"strings"
	"testing"
	"time"
)

// stopped are requests of a service, ten a second: of every tenth second all of them take slow, the others quick.
func stoppedRequests(n int, slow, quick float64) Requests {
	r := Requests{Window: time.Duration(n) * 100 * time.Millisecond, CPUs: 0.5}
	for i := range n {
		took := quick + 0.001*float64(i%7)
		if i/10%10 == 0 {
			took = slow + float64(i%10)
		}
		r.BeganMs, r.TookMs = append(r.BeganMs, 100*float64(i)), append(r.TookMs, took)
	}
	return r
}

// What was promised is judged: p99 of as many requests as it needs, and no lower quantile.
func TestJudgeRequests(t *testing.T) {
	thinned := stoppedRequests(700, 10, 2)
	thinned.Window *= 2
	crowded := stoppedRequests(900, 30, 28)
	crowded.Window = crowded.Window * 2 / 3
	for name, c := range map[string]struct {
		before, after Requests
		objective     bool
		want          string
		more          bool
		says          string
	}{
		"a tail pressed together": {stoppedRequests(600, 58, 2), stoppedRequests(600, 17, 4), false, Better, false, "p99 from"},
		"nothing": {stoppedRequests(600, 58, 2), stoppedRequests(600, 58, 2), false, NoChange,
			false, "median from 2.003 ms to 2.003 ms"},
		"worse": {stoppedRequests(600, 20, 2), stoppedRequests(600, 90, 2), false, Worse, false, ""},
		"the middle loses more": {stoppedRequests(600, 58, 2), stoppedRequests(600, 30, 28), false, Worse,
			false, "the middle loses more than the tail gains"},
		"but more requests came":           {stoppedRequests(600, 58, 2), crowded, false, Unverified, true, "other work came than before"},
		"and an objective stands above it": {stoppedRequests(600, 58, 2), stoppedRequests(600, 30, 28), true, Better, false, ""},
		"432 do not tell p99": {stoppedRequests(432, 58, 2), stoppedRequests(600, 17, 4), false,
			Unverified, true, "432 requests before and 600 after are too few to tell p99: 500 are needed"},
		"better, with half the requests": {stoppedRequests(700, 58, 2), thinned, false, Unverified, true, "other work came than before"},
	} {
		j, more := JudgeRequests(Evidence{}, 0.99, c.before, c.after, c.objective)
		if j.Verdict != c.want || more != c.more || !strings.Contains(j.Why, c.says) {
			t.Errorf("%s: %s, more %v: %s", name, j.Verdict, more, j.Why)
		}
	}
	harmed := Evidence{Neighbours: []Neighbour{{Name: "owner", Lends: true}}}
	harmed.Neighbours[0].Before.UsedCPUs, harmed.Neighbours[0].After.UsedCPUs = new(1.0), new(0.2)
	if j, more := JudgeRequests(harmed, 0.99, stoppedRequests(600, 58, 2), stoppedRequests(600, 17, 2),
		false); j.Verdict != Worse || more || len(j.Harmed) != 1 {
		t.Errorf("a harmed neighbour: %+v", j)
	}
}

// A difference that few stalls cannot show asks for a longer look.
func TestFewStallsAskForMore(t *testing.T) {
	few := func(slow float64) Requests { // two stalls of ten requests, far apart
		r := stoppedRequests(600, 2, 2)
		for _, at := range []int{100, 400} {
			for i := range 10 {
				r.BeganMs[at+i], r.TookMs[at+i] = r.BeganMs[at]+float64(i), slow-float64(i)
			}
		}
		return r
	}
	if n := few(250).Stalls(0.99); n != 2 {
		t.Errorf("%d stalls, want 2", n)
	}
	if n := stoppedRequests(600, 58, 2).Stalls(0.99); n < 6 {
		t.Errorf("%d stalls of six seconds", n)
	}
	if j, more := JudgeRequests(Evidence{}, 0.99, few(250), few(110), false); j.Verdict != NoChange || !more {
		t.Errorf("%s, more %v: %s", j.Verdict, more, j.Why)
	}
}

func TestMiddleLoses(t *testing.T) {
	for _, c := range []struct {
		wasP50, isP50, was, is float64
		want                   bool
	}{{2, 4, 58, 17, false}, {2, 13, 58, 17, true}, {2, 2.4, 3, 2.9, false}, {2, 2.6, 3, 2.9, true}, {5, 1, 58, 70, false}} {
		if got := MiddleLoses(c.wasP50, c.isP50, c.was, c.is); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
