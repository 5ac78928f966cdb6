package forecast

import (
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"k8s.io/utils/cpuset"
	"pgregory.net/rapid"

	"github.com/unthrottle/unthrottle/internal/explain/requests"
	"github.com/unthrottle/unthrottle/internal/see/recording"
	rt "github.com/unthrottle/unthrottle/internal/see/recording/recordingtest"
	"github.com/unthrottle/unthrottle/internal/see/schedule"
	"github.com/unthrottle/unthrottle/internal/sim/simulate"
	"github.com/unthrottle/unthrottle/internal/stats"
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
		event := recording.Event{Thread: e.Thread, Socket: uint32(i%4 + 1), CPU: e.CPU}
		for after, kind := range map[time.Duration]recording.Kind{1 * ms: recording.Receive, 3 * ms: recording.Send,
			6 * ms: recording.Send} {
			one := event
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

// The judged latency is that of requests, from the arrival to the last write, whatever a thread's response is; of too few it
// is a pool's.
func TestRequestsAreJudged(t *testing.T) {
	for name, test := range map[string]struct {
		n      int
		before time.Duration
		p99    float64 // 0: a pool is judged
	}{
		"a queue before the thread": {requests.Least + 5, 20 * ms, 26},
		"as long as the response":   {requests.Least + 5, 0, 6},
		"too few":                   {requests.Least, 20 * ms, 0}, // the first begins before the recording
	} {
		t.Run(name, func(t *testing.T) {
			f, err := Make(loadOf(t, answered(test.n, test.before)), Options{Seeds: 2, Seed: 1})
			if err != nil {
				t.Fatal(err)
			}
			if f.Judged == nil || (f.Judged.Of == OfRequests) != (test.p99 > 0) || (len(f.Kinds) == 1) != (test.p99 > 0) {
				t.Fatalf("judged %+v, kinds %+v", f.Judged, f.Kinds)
			}
			for _, row := range f.Rows {
				switch {
				case row.Refused != "":
				case row.Judged == nil:
					t.Errorf("%s: nothing is judged", row.Remedy.Name)
				case row.Remedy.Modelled():
					if row.JudgedRange != nil {
						t.Errorf("%s: an error that is not known: %v", row.Remedy.Name, *row.JudgedRange)
					}
				case row.JudgedRange == nil || row.JudgedRange.Low > *row.Judged || row.JudgedRange.High < *row.Judged:
					t.Errorf("%s: %v is not within %v", row.Remedy.Name, *row.Judged, row.JudgedRange)
				case row.Remedy.Name == None && test.p99 > 0 && math.Abs(*row.Judged-test.p99) > 0.5:
					t.Errorf("left alone: %v, and %v is wanted", *row.Judged, test.p99)
				}
			}
		})
	}
}

// kindsOf are kinds of requests with these amounts of work, all by one thread.
func kindsOf(closed func(i int) bool, works ...time.Duration) []kindOf {
	l, p := &Load{}, &Pool{Name: "server"}
	for i, work := range works {
		l.requests = append(l.requests, recordedRequest{pool: p, work: work, closed: closed != nil && closed(i)})
	}
	return l.kinds()
}

// Requests whose work differs by a factor are of two kinds, work that is spread is of one, and a batch client's are left out.
func TestKinds(t *testing.T) {
	many := func(n int, pick func(i int) time.Duration) (all []time.Duration) {
		for i := range n {
			all = append(all, pick(i))
		}
		return all
	}
	checks := many(400, func(i int) time.Duration { return time.Duration(50+i%150) * time.Microsecond })
	inferences := many(90, func(i int) time.Duration { return time.Duration(20+i%40) * ms })
	spread := many(400, func(i int) time.Duration { return time.Duration(float64(ms) * math.Pow(1.012, float64(i))) })
	for name, c := range map[string]struct {
		of   []kindOf
		want []int // requests of each kind
	}{
		"two kinds":             {kindsOf(nil, slices.Concat(checks, inferences)...), []int{400, 90}},
		"with a few between":    {kindsOf(nil, slices.Concat(checks, inferences, []time.Duration{ms, 2 * ms, 3 * ms})...), []int{402, 91}},
		"spread over a hundred": {kindsOf(nil, spread...), []int{400}},
		"too few of one":        {kindsOf(nil, slices.Concat(checks, inferences[:requests.Least-1])...), []int{400}},
		"a handful":             {kindsOf(nil, slices.Concat(checks, inferences[:leastLarge-1])...), []int{400 + leastLarge - 1}},
		"a batch client's":      {kindsOf(func(i int) bool { return i < 400 }, slices.Concat(checks, inferences)...), []int{90}},
		"a batch client alone":  {kindsOf(func(int) bool { return true }, inferences...), []int{90}},
		"none":                  {kindsOf(nil), nil},
	} {
		var got []int
		for _, k := range c.of {
			got = append(got, len(k.requests))
		}
		if name == "with a few between" {
			if len(got) != 2 || got[0]+got[1] != 493 {
				t.Errorf("%s: %v", name, got)
			}
			continue
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// A client that sends as soon as it is answered has a closed loop; one that sends at its own times has none.
func TestClosedLoopOfAClient(t *testing.T) {
	for name, think := range map[string]time.Duration{"closed": 100 * time.Microsecond, "open": 30 * ms} {
		r := answered(60, 0)
		// The next data of the same connection arrives so long after the last write.
		last := map[uint32]int64{}
		for i := range r.Events {
			e := &r.Events[i]
			switch e.Kind {
			case recording.Receive:
				if at, ok := last[e.Socket]; ok {
					e.Count = uint64(e.AtNS - at - think.Nanoseconds())
				}
			case recording.Send:
				last[e.Socket] = e.AtNS
			}
		}
		l := loadOf(t, r)
		n := 0
		for i := range l.requests {
			if l.requests[i].closed {
				n++
			}
			// It follows the one before it on its connection, which is one of four.
			if q := l.replay.Requests[i]; i >= 4 && name == "closed" && (q.After != 4 || q.Gap != think) || name == "open" && q.After != 0 {
				t.Errorf("%s: request %d is %+v", name, i, q)
			}
		}
		if (name == "closed") != (n > len(l.requests)/2) || len(l.requests) == 0 {
			t.Errorf("%s: %d of %d requests are of a closed loop", name, n, len(l.requests))
		}
	}
}

// A thread reads no data before they arrived, however early a remedy lets it run.
func TestReadsWaitForTheirData(t *testing.T) {
	l := loadOf(t, answered(10, 20*ms))
	var reads []time.Duration
	for _, th := range l.replay.Threads {
		for _, s := range th.Steps {
			if s.Kind == simulate.StepRead {
				reads = append(reads, s.For)
			}
		}
	}
	for i, q := range l.replay.Requests {
		if !slices.Contains(reads, q.At) {
			t.Errorf("request %d arrives at %v, and the reads are at %v", i, q.At, reads)
		}
	}
	if len(l.replay.Requests) < 9 {
		t.Errorf("%d requests", len(l.replay.Requests))
	}
}

// Without a limit, as after a pin, nothing can be replayed; who answered which request is known all the same.
func TestRequestsWithoutALimit(t *testing.T) {
	r := answered(60, 0)
	for i := range r.Header.Levels {
		r.Header.Levels[i].QuotaNS = nil
	}
	b, err := newBuilder(r.Header)
	if err != nil {
		t.Fatal(err)
	}
	for i := range r.Events {
		b.add(&r.Events[i])
	}
	if _, err := b.finish(r.Footer); err == nil {
		t.Fatal("a recording without a limit can be replayed")
	}
	runs := b.keptRuns(end{footer: r.Footer})
	if all, of, none := len(runs.Requests(Kind{})), len(runs.Requests(Kind{Pool: "server-*"})),
		len(runs.Requests(Kind{Pool: "other"})); all == 0 || of != all || none != 0 {
		t.Errorf("%d requests, %d and %d of the pools %q", all, of, none, runs.Pools())
	}
}

// The quantile is one that can be told within the longest look.
func TestTellable(t *testing.T) {
	for _, c := range []struct {
		n      int
		window time.Duration
		want   float64
	}{{500, time.Minute, 0.99}, {43, 5 * time.Second, 0.99}, {20, 5 * time.Second, 0.95}, {5, 5 * time.Second, 0.9},
		{1, 5 * time.Second, 0.5}, {700, 2 * time.Minute, 0.99}} {
		if got := stats.Tellable(c.n, c.window, 0.99); got != c.want {
			t.Errorf("%d in %v: p%g, want p%g", c.n, c.window, 100*got, 100*c.want)
		}
	}
}

// A runtime's housekeeping is never what waits, however often timers and devices wake it.
func TestWaiting(t *testing.T) {
	pool := func(comm string, outside, timer, inside int) *Pool {
		p := &Pool{Name: comm, comm: comm, recorded: newTimes(), woken: wakeups{outside, timer, inside}}
		p.older = p.woken
		for range minRuns {
			p.recorded.Response.Add(ms)
		}
		return p
	}
	vm, monitor := pool("VM Periodic Tas", 0, 400, 0), pool("Monitor Deflati", 0, 60, 0)
	server, workers, cron := pool("nio-server", 700, 10, 20), pool("worker", 3, 0, 900), pool("cron", 0, 30, 0)
	for name, c := range map[string]struct {
		of   []*Pool
		want int
	}{
		"clients wake it":    {[]*Pool{vm, monitor, workers, server, cron}, 3},
		"timers alone":       {[]*Pool{vm, cron, monitor}, 1},
		"housekeeping alone": {[]*Pool{vm, monitor}, -1},
		"a build":            {[]*Pool{workers}, -1},
	} {
		if got := (&Load{Pools: c.of}).waiting(); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// explain and forecast count the same requests of any sound recording: of threads that are born later, by writers that have lost their CPU
// meanwhile, of requests that began before the recording, and pipelined ones.
func TestExplainAndForecastCountTheSame(t *testing.T) {
	counted := 0
	rapid.Check(t, func(t *rapid.T) {
		h := recording.Header{Host: recording.Host{Kernel: "6.18.0", CPUs: cpuset.New(0, 1)}, Features: recording.Features{Sockets: true}}
		sleeping, runnable, on := map[uint32]bool{}, map[uint32]bool{}, map[int32]uint32{}
		for tid := range uint32(3) {
			h.Threads = append(h.Threads, recording.Thread{TID: 10 + tid, TGID: 10, Comm: "server"})
			sleeping[10+tid] = true
		}
		explained := requests.NewScan(&h, func(_, _ uint32, comm string) string { return comm })
		read := schedule.New(&h, explained)
		b, err := newBuilder(h)
		if err != nil {
			t.Fatal(err)
		}
		tell := func(e recording.Event) {
			read.Add(&e)
			b.add(&e)
		}
		oneOf := func(all map[uint32]bool) uint32 {
			if len(all) == 0 {
				return 0
			}
			return rapid.SampledFrom(slices.Sorted(maps.Keys(all))).Draw(t, "thread")
		}
		at, born := int64(0), uint32(20)
		for range rapid.IntRange(1, 200).Draw(t, "events") {
			at += int64(rapid.IntRange(0, 2e6).Draw(t, "later"))
			cpu := int32(rapid.IntRange(0, 1).Draw(t, "cpu"))
			running := on[cpu]
			switch rapid.SampledFrom([]string{"wake", "switch", "birth", "exit", "receive", "send", "send"}).Draw(t, "what") {
			case "wake":
				if tid := oneOf(sleeping); tid != 0 {
					delete(sleeping, tid)
					runnable[tid] = true
					tell(recording.Event{AtNS: at, Kind: recording.Wakeup, Thread: tid, CPU: cpu})
				}
			case "switch":
				e := recording.Event{AtNS: at, Kind: recording.Switch, CPU: cpu, Thread: running, NextThread: oneOf(runnable)}
				if running != 0 && rapid.Bool().Draw(t, "preempted") {
					e.Flags = recording.PrevRunnable
					runnable[running] = true
				} else if running != 0 {
					sleeping[running] = true
				}
				on[cpu] = e.NextThread
				delete(runnable, e.NextThread)
				tell(e)
			case "birth":
				born++
				sleeping[born] = true
				tell(recording.Event{AtNS: at, Kind: recording.Name, Thread: born, TGID: 10, Text: "server"})
			case "exit":
				if tid := oneOf(sleeping); tid != 0 && tid > 12 {
					delete(sleeping, tid)
					tell(recording.Event{AtNS: at, Kind: recording.Exit, Thread: tid})
				}
			case "receive":
				tell(recording.Event{AtNS: at, Kind: recording.Receive, Thread: running, CPU: cpu,
					Socket: uint32(rapid.IntRange(1, 3).Draw(t, "socket")), Count: uint64(rapid.IntRange(0, 3e6).Draw(t, "waited"))})
			case "send":
				tell(recording.Event{AtNS: at, Kind: recording.Send, Thread: running, CPU: cpu,
					Socket: uint32(rapid.IntRange(1, 3).Draw(t, "socket"))})
			}
		}
		if got := finished(read, explained).Count; got != len(b.requests) {
			t.Fatalf("explain counts %d requests, and forecast %d", got, len(b.requests))
		}
		counted += len(b.requests)
	})
	if counted < 5 {
		t.Errorf("%d requests in all: this test is about nothing", counted)
	}
}

func finished(read *schedule.Reader, s *requests.Scan) *requests.Requests {
	read.Finish()
	return s.Finish()
}
