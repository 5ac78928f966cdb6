package capacity

import (
	"math"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/cpuset"
	"pgregory.net/rapid"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/load/loadgen"
	"github.com/unthrottle/unthrottle/internal/load/workload"
	"github.com/unthrottle/unthrottle/internal/objective"
	"github.com/unthrottle/unthrottle/internal/stats"
)

func TestObjective(t *testing.T) {
	for text, want := range map[string]objective.Objective{
		"p99=50ms":    {Quantile: 0.99, Bound: 50 * ms},
		"p99.9=1s":    {Quantile: 0.999, Bound: time.Second},
		"p50=250us":   {Quantile: 0.5, Bound: 250 * time.Microsecond},
		"p99.99=0.5s": {Quantile: 0.9999, Bound: 500 * ms},
	} {
		var o Objective
		if err := o.ParseSLO(text); err != nil || math.Abs(o.Quantile-want.Quantile) > 1e-12 || o.Bound != want.Bound {
			t.Errorf("%s: %+v, %v", text, o, err)
		}
		var again Objective
		if err := again.ParseSLO(o.String()); err != nil || again.Bound != o.Bound || math.Abs(again.Quantile-o.Quantile) > 1e-12 {
			t.Errorf("%s became %s, which is %+v, %v", text, o, again, err)
		}
	}
	for _, text := range []string{"", "p99", "99=50ms", "p99=50", "p99=-1ms", "p99=0s", "p100=1s", "p10=1s", "pNaN=1s",
		"p0x63=1s", "p99=2h", strings.Repeat("p", 500)} {
		var o Objective
		if err := o.ParseSLO(text); err == nil || len(err.Error()) > 200 {
			t.Errorf("%.20q: taken as %+v, or said at length: %v", text, o, err)
		}
	}
	for text, want := range map[string]float64{"0.1%": 0.001, "0": 0, "0.001": 0.001, "2%": 0.02} {
		var o Objective
		if err := o.ParseErrors(text); err != nil || math.Abs(o.Errors-want) > 1e-12 {
			t.Errorf("%s: %v, %v", text, o.Errors, err)
		}
	}
	for _, text := range []string{"", "%", "-1%", "100%", "1", "NaN", "x", "0x1p-9"} {
		var o Objective
		if o.ParseErrors(text) == nil {
			t.Errorf("%q: taken as %v", text, o.Errors)
		}
	}
}

func TestJudge(t *testing.T) {
	o := DefaultObjective()
	stream := func(fast, slow, failed int) loadgen.StreamResult {
		r := loadgen.StreamResult{Intended: uint64(fast + slow + failed), Answered: uint64(fast + slow), Failed: uint64(failed)}
		for range fast {
			r.Latency.Add(10 * ms)
		}
		for range slow + failed {
			r.Latency.Add(60 * ms)
		}
		return r
	}
	for _, c := range []struct {
		r    loadgen.StreamResult
		says string
	}{
		{stream(990, 10, 0), ""},
		{stream(989, 11, 0), "p99 was 60"},
		{stream(999, 0, 1), ""},
		{stream(998, 0, 2), "0.2 % of the requests failed"},
		{stream(0, 0, 20), "100 % of the requests failed"},
		{stream(0, 0, 0), "no request came"},
	} {
		if why := o.judge(c.r); !strings.Contains(why, c.says) || (why == "") != (c.says == "") {
			t.Errorf("%+v: %q, want %q", c.r.Intended, why, c.says)
		}
	}
}

func TestUnmet(t *testing.T) {
	s := step{load: 300, service: loadgen.StreamResult{Intended: 1, Answered: 1}}
	s.service.Latency.Add(80 * ms)
	err := unmet(DefaultObjective(), s)
	if err == nil || !strings.Contains(err.Error(), "nothing can meet p99<50ms") ||
		!strings.Contains(err.Error(), "p99 was 80") || !strings.Contains(err.Error(), "300 requests per second") {
		t.Errorf("got %v", err)
	}
	others := 1.5
	s.others = &others
	if err := unmet(DefaultObjective(), s); err == nil || !strings.Contains(err.Error(), "others on the host used 1.50 CPUs") {
		t.Errorf("on a busy host: %v", err)
	}
	if err := unmet(Objective{Objective: objective.Objective{Quantile: 0.99, Bound: time.Second}}, s); err != nil {
		t.Errorf("met, and: %v", err)
	}
}

// Against a service that meets everything up to a knee the search must end
// close below the knee, wherever that is.
func TestSearchFindsTheKnee(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		capacity := rapid.Float64Range(10, 10_000).Draw(t, "capacity")
		knee := capacity * rapid.Float64Range(0.1, 1.19).Draw(t, "knee")
		found := 0.0
		for repeat := range 4 {
			s := firstSearch(capacity, 6)
			if repeat > 0 {
				s = nextSearch(found, capacity, 6)
			}
			steps := 0
			for load, more := s.next(); more; load, more = s.next() {
				if load > 1.2*capacity*(1+1e-9) || load <= 0 {
					t.Fatalf("a step at %v of %v", load, capacity)
				}
				if steps++; steps > 12 {
					t.Fatal("it does not end")
				}
				s.note(load, load <= knee)
			}
			if s.met > knee {
				t.Fatalf("found %v above the knee %v", s.met, knee)
			}
			found = s.met
		}
		if found < knee/1.08 {
			t.Fatalf("found %v far below the knee %v", found, knee)
		}
	})
}

func TestSearchAgainstAServiceThatMeetsNothing(t *testing.T) {
	s := firstSearch(100, 4)
	steps := 0
	for load, more := s.next(); more; load, more = s.next() {
		s.note(load, false)
		if steps++; steps > 50 {
			t.Fatal("it does not end")
		}
	}
	if s.met != 0 || s.missed > 10 {
		t.Errorf("it gave up at %v", s.missed)
	}
}

// A load that is missed below one that was met takes that back.
func TestSearchDoesNotTrustLuck(t *testing.T) {
	s := search{guess: 100, factor: 1.5, most: 1000, steps: 10, spare: 2}
	s.note(100, true)
	s.note(90, false)
	if s.met != 0 || s.missed != 90 {
		t.Errorf("%+v", s)
	}
}

// Searches on one grid that find the same loads again and again do not make an
// interval of no width.
func TestRatiosKnowTheGrid(t *testing.T) {
	s := search{met: 100, missed: 112, factor: 1.4}
	same := []float64{100, 100, 100}
	r, ok := stats.Ratios(same, same, stats.Grid(s.resolution(), s.resolution()))
	if !ok || r.Low > 0.93 || r.Low < 0.85 || r.High < 1.08 || r.High > 1.15 {
		t.Errorf("%+v", r)
	}
	if s = (search{met: 100, factor: 1.4}); math.Abs(s.resolution()-math.Log(1.4)) > 1e-9 {
		t.Errorf("a search without an upper end has resolution %v", s.resolution())
	}
}

func TestHistogramEdges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64Range(1, int64(10*time.Minute)).Draw(t, "d"))
		i := slot(d)
		if at := millis(d); at < edge(i) || at >= edge(i+1) {
			t.Fatalf("%v in bin %d, %v to %v ms", d, i, edge(i), edge(i+1))
		}
	})
	bins := histogram([]loadgen.Bin{{From: 3 * ms, To: 3 * ms, Count: 2},
		{From: 3100 * time.Microsecond, To: 3100 * time.Microsecond, Count: 1}})
	if last := bins[len(bins)-1]; last.Count != 3 {
		t.Errorf("%+v", bins)
	}
}

func TestSwitches(t *testing.T) {
	if n := switchesOf("Name:\tvoluntary_ctxt_switches\nvoluntary_ctxt_switches:\t7\nnonvoluntary_ctxt_switches:\t5\n"); n != 12 {
		t.Errorf("%d switches", n)
	}
}

func TestOptionsThatAreRefused(t *testing.T) {
	for name, o := range map[string]Options{
		"one repeat":       {Repeats: 1},
		"negative repeats": {Repeats: -1},
		"one step":         {Steps: 1},
		"negative step":    {Step: -time.Second},
		"a long step":      {Step: time.Hour},
		"no quota":         {Remedies: []string{Pin}},
	} {
		if _, err := o.filled(); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	quick, err := Options{Quick: true}.filled()
	if err != nil || quick.Repeats != 3 || quick.Steps != 4 || quick.Step != 5*time.Second || len(quick.Remedies) != 3 {
		t.Errorf("quick: %+v, %v", quick, err)
	}
}

// The neighbour is there as long as the service is tried beside it.
func TestNeighbourOutlivesTheTries(t *testing.T) {
	for _, test := range []struct {
		o           Options
		least, most time.Duration
	}{
		{Options{}, 6 * (6*time.Second + warm), time.Hour},
		{Options{Step: MaxStep}, 6 * (MaxStep + warm + slack), time.Hour},
		{Options{Step: MaxStep, Patience: 1000}, workload.MaxDeadline, workload.MaxDeadline},
	} {
		o, err := test.o.filled()
		if err != nil {
			t.Fatal(err)
		}
		got := o.tries()
		if err := (workload.Spec{Burners: 1, Sleep: 100 * ms, Deadline: got}).Check(); err != nil || got < test.least || got > test.most {
			t.Errorf("%+v: %v, %v", test.o, got, err)
		}
	}
}

func TestShapesAreSoundOnEveryHost(t *testing.T) {
	for _, name := range Shapes() {
		for _, cpus := range []int{2, 3, 4, 16, 64, 512} {
			s, err := newShape(name, cpus, limitCPUs(cpus))
			if err != nil {
				t.Fatal(err)
			}
			s.Service.Deadline, s.Sized.Deadline = time.Minute, time.Minute
			if err := s.Service.Check(); err != nil {
				t.Errorf("%s on %d CPUs: %v", name, cpus, err)
			}
			if err := s.Sized.Check(); err != nil {
				t.Errorf("%s on %d CPUs, sized: %v", name, cpus, err)
			}
			held := s.held(cpus)
			held.Deadline = time.Minute
			if err := held.Check(); err != nil {
				t.Errorf("%s on %d CPUs, held: %v", name, cpus, err)
			}
			for _, stream := range s.Streams {
				if got := held.Classes[stream.Class].Held; got != (stream.Background || !hasBackground(s.Streams)) ||
					s.Service.Classes[stream.Class].Held {
					t.Errorf("%s: %s is held %v", name, stream.Name, got)
				}
			}
			if carries, err := Carries(name, limitCPUs(cpus)); err != nil ||
				math.Abs(carries*s.CPU.Seconds()-float64(limitCPUs(cpus))) > 1e-6 {
				t.Errorf("%s: %d CPUs carry %g /s: %v", name, limitCPUs(cpus), carries, err)
			}
			sum, foregrounds := 0.0, 0
			for _, stream := range s.Streams {
				sum += stream.PerSecond
				if !stream.Background {
					foregrounds++
				}
			}
			if math.Abs(sum-1) > 1e-9 || foregrounds == 0 || s.CPU <= 0 {
				t.Errorf("%s: streams of %v per second, %d with an objective", name, sum, foregrounds)
			}
		}
	}
	if _, err := newShape("pooll", 2, 1); err == nil || !strings.Contains(err.Error(), "pools") {
		t.Errorf("got %v", err)
	}
}

// On a host where steps are tried again the time that is left grows with what they took.
func TestRemaining(t *testing.T) {
	for _, c := range []struct {
		done           time.Duration
		ended, planned int
		want           time.Duration
	}{
		{0, 0, 10, 50 * time.Second},
		{5 * time.Second, 1, 10, 45 * time.Second},
		{20 * time.Second, 2, 10, 80 * time.Second},
		{60 * time.Second, 12, 10, 5 * time.Second},
	} {
		if got := remaining(c.done, 5*time.Second, c.ended, c.planned); got != c.want {
			t.Errorf("%d of %d steps after %v: %v left, want %v", c.ended, c.planned, c.done, got, c.want)
		}
	}
}

// What single points have beyond the remedies of the bench.
func TestPointVariants(t *testing.T) {
	cpus := cpuset.New(0, 1, 2, 3, 4, 5, 6, 7)
	shape, err := pointShape(Shard, 8, 2)
	if err != nil {
		t.Fatal(err)
	}
	const ms = time.Millisecond
	for name, want := range map[string]cgroup.Limit{
		Quota: {Quota: 200 * ms, Period: 100 * ms}, Twice: {Quota: 400 * ms, Period: 100 * ms}, Cpuset: {Quota: 200 * ms, Period: 100 * ms},
		BurstPeriod: {Quota: 20 * ms, Period: 10 * ms, Burst: 20 * ms},
		Burst300:    {Quota: 600 * ms, Period: 300 * ms, Burst: 600 * ms}, Burst1s: {Quota: 2000 * ms, Period: 1000 * ms, Burst: 2000 * ms},
	} {
		a, err := pointVariant(name, shape, cpus, 2)
		if err != nil || a.limit != want || a.name != name || (name == Cpuset) != (a.cpus.Size() == 2) {
			t.Errorf("%s: %+v, %v", name, a, err)
		}
	}
	for _, name := range pointRemedies() {
		if _, err := pointVariant(name, shape, cpus, 2); err != nil {
			t.Errorf("%s is offered: %v", name, err)
		}
	}
	if _, err := pointVariant("nonsense", shape, cpus, 2); err == nil {
		t.Error("there is a remedy nonsense")
	}
}

// A step has ten periods at least.
func TestStepsOfLongPeriods(t *testing.T) {
	cpus := cpuset.New(0, 1)
	shape, err := newShape("pool", 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	all, err := variants(remedies(), shape, cpus, cpus, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		want := 2 * time.Second
		if a.name == Burst1s {
			want = 10 * time.Second
		}
		if got := a.measured(2 * time.Second); got != want || a.measured(time.Minute) != time.Minute {
			t.Errorf("%s: a step of 2 s takes %s, want %s", a.name, got, want)
		}
		if got := a.warm(); (got >= 2*time.Second) != (a.name == Burst1s) {
			t.Errorf("%s: measured after %s", a.name, got)
		}
	}
}

// The bursts of a shard are in proportion to the limit, those of small bursts are not; the work of a request is the same.
func TestSmallBursts(t *testing.T) {
	for limit, want := range map[int]int{2: 5, 4: 10, 16: 40} {
		inProportion, err := pointShape(Shard, 4*limit, limit)
		if err != nil {
			t.Fatal(err)
		}
		small, err := pointShape(SmallBursts, 4*limit, limit)
		if err != nil || small.CPU != inProportion.CPU || inProportion.Streams[1].Burst != want || small.Streams[1].Burst != 5 {
			t.Errorf("limit of %d: bursts of %d and %d, %s and %s a request, %v", limit, inProportion.Streams[1].Burst, small.Streams[1].Burst,
				inProportion.CPU, small.CPU, err)
		}
	}
}
