package pace

import (
	"math/rand/v2"
	"testing"
	"time"
)

const ms = time.Millisecond

func quota70(elapsed, used time.Duration) Period {
	return Period{Quota: 70 * ms, Length: 100 * ms, Elapsed: elapsed, Used: used}
}

// decisions are the cases that the rule is about.
var decisions = []struct {
	about  string
	period Period
	work   Work
	wait   time.Duration // 0: now
}{
	{"a fresh quota", quota70(0, 0), Work{Cost: 30 * ms, Reserve: 7 * ms}, 0},
	{"the example of doc.go", quota70(50*ms, 45*ms), Work{Cost: 30 * ms, Reserve: 7 * ms}, 26635515},
	{"near the end the next pays", quota70(77*ms, 45*ms), Work{Cost: 30 * ms, Reserve: 7 * ms}, 0},
	{"nothing left", quota70(60*ms, 70*ms), Work{Cost: 30 * ms, Reserve: 7 * ms}, 40 * ms},
	{"overdrawn", quota70(60*ms, 90*ms), Work{Cost: 30 * ms, Reserve: 7 * ms}, 40 * ms},
	{"others took a part of the quota", Period{Quota: 30 * ms, Length: 100 * ms, Elapsed: 10 * ms, Used: 5 * ms},
		Work{Cost: 30 * ms, Reserve: 3 * ms}, 65728156},
	{"a second task beside it", quota70(0, 0), Work{Cost: 30 * ms, Running: 1, Reserve: 7 * ms}, 0},
	{"a third does not fit", quota70(0, 0), Work{Cost: 30 * ms, Running: 2, Reserve: 7 * ms}, 77198698},
	{"slack is kept", quota70(20*ms, 35*ms), Work{Cost: 30 * ms, Slack: 6 * ms}, 51 * ms},
	{"a task that is free", quota70(20*ms, 69*ms), Work{}, 0},
	{"no quota", Period{Length: 100 * ms}, Work{Cost: 30 * ms, Reserve: 7 * ms}, 0},
	{"the clock went back", quota70(-1, 70*ms), Work{Cost: 30 * ms, Reserve: 7 * ms}, 0},
	{"the clock is a period ahead", quota70(100*ms, 70*ms), Work{Cost: 30 * ms, Reserve: 7 * ms}, 0},
	{"CPU time went back", quota70(0, -1), Work{Cost: 30 * ms, Reserve: 7 * ms}, 0},
	{"the next would be overdrawn", Period{Quota: 50 * ms, Length: 100 * ms, Elapsed: 92 * ms}, Work{Cost: 60 * ms}, 8 * ms},
	{"any is too early for it", Period{Quota: 50 * ms, Length: 100 * ms, Elapsed: 92 * ms}, Work{Cost: 200 * ms}, 0},
	{"a task of longer than a year", quota70(0, 0), Work{Cost: 1 << 62}, 30 * ms},
}

func TestDecide(t *testing.T) {
	for _, c := range decisions {
		now, wait := Decide(c.period, c.work)
		if now != (c.wait == 0) || wait != c.wait {
			t.Errorf("%s: %v, %v; want %v", c.about, now, wait, c.wait)
		}
	}
}

// What waits may start when Decide said, if nothing else ran meanwhile, and never waits longer than a period.
func TestAWaitIsNeverInVain(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 100_000 {
		p := Period{Quota: time.Duration(1 + r.Int64N(int64(200*ms))), Length: ms + time.Duration(r.Int64N(int64(time.Second)))}
		p.Elapsed = time.Duration(r.Int64N(int64(p.Length)))
		p.Used = time.Duration(r.Int64N(int64(2 * p.Quota)))
		w := Work{Cost: time.Duration(r.Int64N(int64(100 * ms))), Running: r.IntN(9), Reserve: p.Quota / 10, Slack: p.Quota / 20}
		now, wait := Decide(p, w)
		if now {
			continue
		}
		if wait <= 0 || wait > p.Length {
			t.Fatalf("%+v %+v: waits %v", p, w, wait)
		}
		p.Elapsed += wait + 1
		if p.Elapsed >= p.Length {
			continue // a new quota
		}
		if now, again := Decide(p, w); !now && again > 10*time.Nanosecond {
			t.Fatalf("%+v %+v: after %v it waits %v more", p, w, wait, again)
		}
	}
}

// kernel counts periods that begin at a phase, while work runs.
type kernel struct{ phase, period time.Duration }

func (k kernel) at(t time.Duration) uint64 { return uint64(floor(t-k.phase, k.period) + 1000) }

// learn reads when the phase says, each reading late by up to 3 ms and 50 us long.
func learn(p *Phase, k kernel, t time.Duration, readings int, r *rand.Rand) time.Duration {
	for range readings {
		t = p.Next(t) + time.Duration(r.Int64N(int64(3*ms)))
		p.Add(Sample{From: t, To: t + 50*time.Microsecond, Periods: k.at(t + 20*time.Microsecond)})
	}
	return t
}

func TestPhaseIsLearntInASecond(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		k := kernel{time.Duration(r.Int64N(int64(100 * ms))), 100 * ms}
		var p Phase
		p.Restart(k.period)
		at := learn(&p, k, time.Duration(r.Int64N(int64(time.Hour))), 60, r)
		if !p.Known() {
			t.Fatalf("phase %v is not known after 60 readings: %+v", k.phase, p)
		}
		at += 10 * time.Minute
		begin := p.Begin(at)
		if begin > at || at-begin >= k.period {
			t.Fatalf("the period of %v begins at %v", at, begin)
		}
		off := (begin - k.phase) % k.period
		if off > k.period/2 {
			off -= k.period
		}
		if off < 0 || off > k.period/exact {
			t.Fatalf("phase %v is off by %v", k.phase, off)
		}
		// A quota that is written begins periods anew; the phase follows.
		k.phase += 37 * ms
		learn(&p, k, at, 120, r)
		if off := (p.Begin(at+time.Hour) - k.phase) % k.period; !p.Known() || off < 0 || off > k.period/exact {
			t.Fatalf("after another phase: %+v off by %v", p, off)
		}
	}
}

// A process that is stopped for the last 30 ms of each period reads only before that, and right after a period began.
func TestPhaseIsLearntWhileStopped(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 300 {
		k := kernel{time.Duration(r.Int64N(int64(100 * ms))), 100 * ms}
		var p Phase
		p.Restart(k.period)
		at := time.Duration(r.Int64N(int64(time.Hour)))
		for reading := 0; reading < 100 && !p.Known(); reading++ {
			asked := p.Next(at)
			at = asked + time.Duration(r.Int64N(int64(200*time.Microsecond)))
			resumed := false
			if into := at - k.phase - floor(at-k.phase, k.period)*k.period; into > 70*ms {
				at += k.period - into + 50*time.Microsecond + time.Duration(r.ExpFloat64()*float64(500*time.Microsecond))
				resumed = true
			}
			p.Add(Sample{From: at, To: at + 50*time.Microsecond, Periods: k.at(at + 20*time.Microsecond), Resumed: resumed})
		}
		if !p.Known() {
			t.Fatalf("phase %v is not known after 100 readings: %+v", k.phase, p)
		}
		off := (p.Begin(at+time.Minute) - k.phase) % k.period
		if off > k.period/2 {
			off -= k.period
		}
		if off < 0 || off > 3*ms {
			t.Fatalf("phase %v is off by %v", k.phase, off)
		}
	}
}

func TestWhatSaysNothingTeachesNothing(t *testing.T) {
	for name, s := range map[string][2]Sample{
		"idle":                   {{10 * ms, 10 * ms, 5, false}, {60 * ms, 60 * ms, 5, false}},
		"two steps":              {{10 * ms, 10 * ms, 5, false}, {60 * ms, 60 * ms, 7, false}},
		"a period apart":         {{10 * ms, 10 * ms, 5, false}, {110 * ms, 110 * ms, 6, false}},
		"the clock went back":    {{10 * ms, 10 * ms, 5, false}, {5 * ms, 5 * ms, 6, false}},
		"the counter went back":  {{10 * ms, 10 * ms, 5, false}, {20 * ms, 20 * ms, 4, false}},
		"the clock went forward": {{10 * ms, 10 * ms, 5, false}, {time.Hour, time.Hour, 6, false}},
	} {
		var p Phase
		p.Restart(100 * ms)
		p.Add(s[0])
		p.Add(s[1])
		if p.Known() || p.width != 0 {
			t.Errorf("%s: %+v", name, p)
		}
	}
}
