package loadgen

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func drain(p Plan) []arrival {
	var arrivals []arrival
	s := newSchedule(p)
	for a, ok := s.next(); ok; a, ok = s.next() {
		arrivals = append(arrivals, a)
	}
	return arrivals
}

func TestScheduleIsInOrderAndInItsPhases(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Plan{Seed: rapid.Uint64().Draw(t, "seed")}
		for range rapid.IntRange(1, 4).Draw(t, "streams") {
			p.Streams = append(p.Streams, Stream{
				PerSecond: rapid.Float64Range(0.1, 50).Draw(t, "rate"),
				Burst:     rapid.IntRange(0, 5).Draw(t, "burst"),
				Regular:   rapid.Bool().Draw(t, "regular"),
			})
		}
		for range rapid.IntRange(1, 4).Draw(t, "phases") {
			p.Phases = append(p.Phases, Phase{
				For:    time.Duration(rapid.Int64Range(1, int64(time.Second)).Draw(t, "for")),
				Factor: rapid.Float64Range(0, 3).Draw(t, "factor"),
			})
		}
		ends := newSchedule(p).ends
		last := time.Duration(0)
		for i, a := range drain(p) {
			begin := time.Duration(0)
			if a.phase > 0 {
				begin = ends[a.phase-1]
			}
			if a.at < last || a.number != uint64(i+1) {
				t.Fatalf("arrival %d: %+v after %v", i, a, last)
			}
			if a.at < begin || a.at > ends[a.phase] || p.Phases[a.phase].Factor == 0 {
				t.Fatalf("%+v lies outside its phase, %v to %v", a, begin, ends[a.phase])
			}
			last = a.at
		}
	})
}

func TestSchedulesHaveTheirRates(t *testing.T) {
	for name, c := range map[string]struct {
		stream Stream
		want   float64 // in 3 phases: 100 s at 1, 100 s at 2, 100 s at 0
		spread float64
	}{
		"Poisson":      {Stream{PerSecond: 50}, 15_000, 4 * math.Sqrt(15_000)},
		"regular":      {Stream{PerSecond: 50, Regular: true}, 15_000, 2},
		"bursts of 10": {Stream{PerSecond: 50, Burst: 10}, 15_000, 40 * math.Sqrt(1_500)},
		"a trace":      {Stream{At: []time.Duration{0, time.Second, 299 * time.Second, 300 * time.Second}}, 3, 0},
	} {
		p := Plan{Seed: 7, Streams: []Stream{c.stream},
			Phases: []Phase{{For: 100 * time.Second, Factor: 1}, {For: 100 * time.Second, Factor: 2}, {For: 100 * time.Second}}}
		if n := float64(len(drain(p))); math.Abs(n-c.want) > c.spread {
			t.Errorf("%s: %v arrivals, want %v within %v", name, n, c.want, c.spread)
		}
	}
}

// The gaps of a Poisson process are as long as their own spread.
func TestPoissonGaps(t *testing.T) {
	arrivals := drain(Plan{Seed: 3, Streams: []Stream{{PerSecond: 100}}, Phases: []Phase{{For: 100 * time.Second, Factor: 1}}})
	sum, squares := 0.0, 0.0
	for i := 1; i < len(arrivals); i++ {
		gap := (arrivals[i].at - arrivals[i-1].at).Seconds()
		sum += gap
		squares += gap * gap
	}
	n := float64(len(arrivals) - 1)
	if cv2 := squares/n/(sum/n*sum/n) - 1; cv2 < 0.9 || cv2 > 1.1 {
		t.Errorf("squared coefficient of variation %v, want 1", cv2)
	}
}

// What a process can live bounds a plan: an hour has time to end, however long its tries may take.
func TestPlansOfAnHour(t *testing.T) {
	p := steady("@x", 10, maxDuration)
	p.Drain, p.Timeout = ms, maxDuration
	if err := p.Check(); err != nil {
		t.Error(err)
	}
	if p.Addr = ""; p.Check() == nil || p.CheckLoad() != nil {
		t.Errorf("without a target: %v, its load %v", p.Check(), p.CheckLoad())
	}
	if p.Drain = maxDuration; p.CheckLoad() == nil {
		t.Error("an hour and an hour of waiting: taken")
	}
}

func TestPlansThatAreRefused(t *testing.T) {
	good := steady("@x", 10, time.Second)
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*Plan){
		"no target":        func(p *Plan) { p.Addr = "" },
		"two targets":      func(p *Plan) { p.URL = "http://127.0.0.1" },
		"not a URL":        func(p *Plan) { p.Addr, p.URL = "", "127.0.0.1:80" },
		"another scheme":   func(p *Plan) { p.Addr, p.URL = "", "file:///etc/passwd" },
		"no streams":       func(p *Plan) { p.Streams = nil },
		"no phases":        func(p *Plan) { p.Phases = nil },
		"negative rate":    func(p *Plan) { p.Streams[0].PerSecond = -1 },
		"no number":        func(p *Plan) { p.Streams[0].PerSecond = math.NaN() },
		"too much":         func(p *Plan) { p.Phases[0].Factor = 1e6 },
		"no time":          func(p *Plan) { p.Phases[0].For = 0 },
		"negative time":    func(p *Plan) { p.Phases[0].For = -time.Second },
		"negative timeout": func(p *Plan) { p.Timeout = -1 },
		"too long":         func(p *Plan) { p.Phases[0].For = 2 * maxDuration },
		"longer than it lives": func(p *Plan) {
			p.Phases = []Phase{{For: maxDuration, Factor: 1}, {For: maxDuration, Factor: 1}}
		},
		"many connections": func(p *Plan) { p.Connections = 1000 },
		"times out of order": func(p *Plan) {
			p.Streams[0].PerSecond, p.Streams[0].At = 0, []time.Duration{2, 1}
		},
		"rate and times": func(p *Plan) { p.Streams[0].At = []time.Duration{1} },
		"no such CPUs":   func(p *Plan) { p.CPUs = "x" },
	} {
		p := good
		p.Streams = append([]Stream{}, good.Streams...)
		p.Phases = append([]Phase{}, good.Phases...)
		spoil(&p)
		if p.Check() == nil {
			t.Errorf("%s: taken", name)
		}
	}
}
