package requests_test

import (
	"cmp"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/unthrottle/unthrottle/internal/explain/requests"
	"github.com/unthrottle/unthrottle/internal/see/recording"
	rt "github.com/unthrottle/unthrottle/internal/see/recording/recordingtest"
	"github.com/unthrottle/unthrottle/internal/see/schedule"
	"github.com/unthrottle/unthrottle/internal/stats"
)

const ms = time.Millisecond

func scan(r recording.Recording) *requests.Requests {
	s := requests.NewScan(&r.Header, func(_, _ uint32, comm string) string { return comm })
	read := schedule.New(&r.Header, s)
	for i := range r.Events {
		read.Add(&r.Events[i])
	}
	read.Finish()
	return s.Finish()
}

// The example of the package's documentation.
func TestExample(t *testing.T) {
	const main, worker = 10, 11
	at := func(d time.Duration, e recording.Event) recording.Event { e.AtNS = int64(d); return e }
	r := recording.Recording{
		Header: recording.Header{
			Features: recording.Features{Sockets: true},
			Levels:   []recording.Level{{Path: "/a", ID: 1, QuotaNS: new(int64(1)), PeriodNS: 2}, {Path: "/", ID: 2}},
			Threads: []recording.Thread{{TID: main, TGID: main, Comm: "main", State: recording.Running},
				{TID: worker, TGID: main, Comm: "worker"}},
		},
		Events: []recording.Event{
			at(10*ms, recording.Event{Kind: recording.Receive, Thread: main, Socket: 1, Count: uint64(2 * ms)}),
			at(11*ms, recording.Event{Kind: recording.Wakeup, Thread: worker, Waker: main, CPU: 1}),
			at(11*ms, recording.Event{Kind: recording.Switch, Thread: main, NextThread: worker}),
			at(12*ms, recording.Event{Kind: recording.Switch, Thread: worker,
				Flags: recording.PrevRunnable | recording.Throttled, Cgroup: 1}),
			at(100*ms, recording.Event{Kind: recording.Release, Thread: worker}),
			at(100*ms, recording.Event{Kind: recording.Switch, NextThread: worker}),
			at(103*ms, recording.Event{Kind: recording.Wakeup, Thread: main, Waker: worker}),
			at(103*ms, recording.Event{Kind: recording.Switch, CPU: 1, NextThread: main}),
			at(104*ms, recording.Event{Kind: recording.Send, Thread: main, Socket: 1}),
			at(105*ms, recording.Event{Kind: recording.Receive, Thread: main, Socket: 1}),
		},
	}
	got := scan(r)
	part := func(begin, length time.Duration, k requests.Kind, pool string, tid uint32) requests.Segment {
		return requests.Segment{Begin: begin, Length: length, Kind: k, Pool: pool, Thread: tid}
	}
	stop := part(4*ms, 88*ms, requests.Stopped, "worker", worker)
	stop.Quota, stop.Own = "/a", true
	want := &requests.Requests{
		Seen: true, Count: 1, Unanswered: 1, P50: 96 * ms, P90: 96 * ms, P99: 96 * ms, Max: 96 * ms, Quantile: 0.99,
		High: 96 * ms, Lengths: []stats.Length{{UpTo: 98_304 * time.Microsecond, Count: 1}},
		Slowest: []requests.Request{{Begin: 8 * ms, Took: 96 * ms, Segments: []requests.Segment{
			part(0, 2*ms, requests.Busy, "main", main), part(2*ms, 1*ms, requests.Ran, "main", main),
			part(3*ms, 1*ms, requests.Ran, "worker", worker), stop, part(92*ms, 3*ms, requests.Ran, "worker", worker),
			part(95*ms, 1*ms, requests.Ran, "main", main),
		}}},
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// drawn is a random container with sockets.
func drawn(t *rapid.T) recording.Recording {
	number := func(from, to int, what string) int { return rapid.IntRange(from, to).Draw(t, what) }
	s := rt.New(number(1, 3, "CPUs")).Process("server")
	if rapid.Bool().Draw(t, "own") {
		s.Limit(time.Duration(number(1, 30, "quota"))*ms, 20*ms)
	}
	if rapid.Bool().Draw(t, "parent") {
		s.ParentLimit(time.Duration(number(1, 30, "quota"))*ms, 30*ms)
	}
	all := append(s.Threads("worker", number(1, 4, "threads")), s.Main())
	for _, tid := range all {
		if rapid.Bool().Draw(t, "inside") {
			s.WokenBy(all[number(0, len(all)-1, "waker")], tid)
		}
	}
	pick := func() uint32 { return all[number(0, len(all)-1, "thread")] }
	for range number(1, 30, "jobs") {
		s.Work(time.Duration(number(0, 100, "at"))*ms, time.Duration(number(1, 15, "work"))*ms, pick())
	}
	for range number(0, 40, "reads and writes") {
		e := recording.Event{AtNS: int64(number(0, 120_000, "at")) * 1000, Kind: recording.Send, Thread: pick(),
			Socket: uint32(number(1, 3, "socket"))}
		if rapid.Bool().Draw(t, "read") {
			e.Kind, e.Count = recording.Receive, uint64(number(0, 50_000, "waited")*1000)
		}
		s.Add(e)
	}
	return s.Run(120 * ms)
}

// stop is a time in which a quota held a thread back.
type stop struct {
	from, to time.Duration
	cgroup   uint64
}

// stops reads a recording on its own, thread by thread.
func stops(r recording.Recording) map[uint32][]stop {
	found, open := map[uint32][]stop{}, map[uint32]stop{}
	end := func(tid uint32, at int64) {
		if s, ok := open[tid]; ok {
			s.to = time.Duration(at)
			found[tid] = append(found[tid], s)
			delete(open, tid)
		}
	}
	for _, e := range r.Events {
		switch e.Kind {
		case recording.Release:
			end(e.Thread, e.AtNS)
		case recording.Switch:
			end(e.NextThread, e.AtNS)
			fallthrough
		case recording.Wakeup, recording.Hold:
			if e.Kind == recording.Hold || e.Flags&recording.Throttled != 0 {
				open[e.Thread] = stop{from: time.Duration(e.AtNS), cgroup: e.Cgroup}
			}
		}
	}
	for tid := range open {
		end(tid, r.Footer.EndNS)
	}
	return found
}

func whole(t *rapid.T, found *requests.Requests) {
	for _, q := range found.Slowest {
		at := time.Duration(0)
		for _, s := range q.Segments {
			if s.Begin != at || s.Length <= 0 {
				t.Fatalf("a segment from %v for %v, the one before ends at %v: %+v", s.Begin, s.Length, at, q)
			}
			at += s.Length
		}
		if at != q.Took {
			t.Fatalf("segments of %v, it took %v", at, q.Took)
		}
	}
	if !slices.IsSortedFunc(found.Slowest, func(x, y requests.Request) int { return cmp.Compare(y.Took, x.Took) }) {
		t.Fatal("the slowest are not in order")
	}
	if n := len(found.Slowest); found.Count > 0 && (n == 0 || found.Slowest[0].Took != found.Max || n < min(found.Count, 10)) {
		t.Fatalf("%d requests, the longest took %v, and %d have a timeline", found.Count, found.Max, n)
	}
}

// Segments of a request add up to its length without overlap. Its stopped time lies within stops of that thread by the
// quota named.
func TestSegments(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawn(t)
		found := scan(r)
		whole(t, found)
		held := stops(r)
		paths := map[uint64]string{}
		for _, l := range r.Header.Levels {
			paths[l.ID] = l.Path
		}
		for _, q := range found.Slowest {
			for _, s := range q.Segments {
				if (s.Kind == requests.Stopped) != (s.Quota != "") {
					t.Fatalf("%+v", s)
				}
				from, to := q.Begin+s.Begin, q.Begin+s.Begin+s.Length
				if s.Kind == requests.Stopped && !slices.ContainsFunc(held[s.Thread], func(h stop) bool {
					return h.from <= from && to <= h.to && paths[h.cgroup] == s.Quota
				}) {
					t.Fatalf("stopped from %v to %v by %s: %v", from, to, s.Quota, held[s.Thread])
				}
			}
		}
	})
}

// Whatever the events say, timelines are whole and the scan ends.
func TestAnyEvents(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		small := rapid.Uint32Range(0, 4)
		event := rapid.Custom(func(t *rapid.T) recording.Event {
			return recording.Event{
				AtNS: rapid.Int64Range(-1, 20).Draw(t, "at"), Kind: recording.Kind(rapid.IntRange(1, 15).Draw(t, "kind")),
				Flags: recording.Flags(rapid.IntRange(0, 15).Draw(t, "flags")), CPU: rapid.Int32Range(0, 2).Draw(t, "CPU"),
				Thread: small.Draw(t, "thread"), NextThread: small.Draw(t, "next"), Waker: small.Draw(t, "waker"),
				Cgroup: uint64(small.Draw(t, "cgroup")), Socket: small.Draw(t, "socket"), Count: uint64(small.Draw(t, "count")),
			}
		})
		events := rapid.SliceOfN(event, 0, 60).Draw(t, "events")
		if rapid.Bool().Draw(t, "in order") {
			slices.SortStableFunc(events, func(x, y recording.Event) int { return cmp.Compare(x.AtNS, y.AtNS) })
		}
		whole(t, scan(recording.Recording{Events: events}))
	})
}

// After more changes than are kept, timelines are still whole, and say that their beginning is not seen.
func TestLongHistory(t *testing.T) {
	r := recording.Recording{Header: recording.Header{Threads: []recording.Thread{{TID: 1, TGID: 1}, {TID: 2, TGID: 1}}}}
	at := int64(0)
	add := func(e recording.Event) { at++; e.AtNS = at; r.Events = append(r.Events, e) }
	add(recording.Event{Kind: recording.Receive, Thread: 1, Socket: 1})
	for range 1 << 19 {
		add(recording.Event{Kind: recording.Switch, Thread: 1, NextThread: 2, Flags: recording.PrevRunnable})
		add(recording.Event{Kind: recording.Switch, Thread: 2, NextThread: 1, Flags: recording.PrevRunnable})
	}
	add(recording.Event{Kind: recording.Send, Thread: 1, Socket: 1})
	found := scan(r)
	if found.Count != 1 || len(found.Slowest) != 1 {
		t.Fatalf("%+v", found)
	}
	q := found.Slowest[0]
	sum := time.Duration(0)
	for _, s := range q.Segments {
		sum += s.Length
	}
	if sum != q.Took || q.Of(requests.Unseen) == 0 || q.Of(requests.Ran) == 0 || q.Segments[0].Kind != requests.Unseen {
		t.Errorf("%v of %v, unseen %v, ran %v", sum, q.Took, q.Of(requests.Unseen), q.Of(requests.Ran))
	}
}
