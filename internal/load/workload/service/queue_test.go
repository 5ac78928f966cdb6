package service

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/unthrottle/unthrottle/internal/scenario"
)

// A queue without a reader holds its bound and no more, in order.
func TestQueueHoldsItsBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bound, threads := rapid.IntRange(0, 20).Draw(t, "bound"), rapid.IntRange(1, 5).Draw(t, "threads")
		q := newQueue(bound, threads)
		var want []uint64
		for i := range rapid.IntRange(0, 100).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "take") && len(want) > 0 {
				r, behind := q.take()
				if r.Number != want[0] || behind != len(want)-1 {
					t.Fatalf("took %d with %d behind, want %v", r.Number, behind, want)
				}
				want = want[1:]
				continue
			}
			if ok := q.put(request{Request: Request{Number: uint64(i)}}); ok != (len(want) < bound) {
				t.Fatalf("%d of %d wait: taken %v", len(want), bound, ok)
			} else if ok {
				want = append(want, uint64(i))
			}
		}
	})
}

func TestDrawsAreTheSameForTheSameRequest(t *testing.T) {
	for _, c := range []struct {
		d    scenario.Duration
		mean time.Duration
	}{
		{scenario.Fixed(time.Millisecond), time.Millisecond},
		{scenario.Duration{Shape: scenario.Exponential, Mean: time.Millisecond}, time.Millisecond},
		{scenario.Duration{Shape: scenario.Uniform, Low: time.Millisecond, High: 3 * time.Millisecond}, 2 * time.Millisecond},
	} {
		sum := time.Duration(0)
		const n = 20_000
		for i := range uint64(n) {
			v := draw(c.d, mix(i))
			if v < 0 || v > maxTail*c.mean || v != draw(c.d, mix(i)) {
				t.Fatalf("%+v: drew %v", c.d, v)
			}
			sum += v
		}
		if mean := sum / n; mean < c.mean*97/100 || mean > c.mean*103/100 {
			t.Errorf("%+v: mean %v", c.d, mean)
		}
	}
}

func TestMessages(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := Request{rapid.Uint64().Draw(t, "number"), rapid.Uint8().Draw(t, "try"), rapid.Uint8().Draw(t, "class"),
			rapid.Uint32().Draw(t, "client")}
		var message [RequestBytes]byte
		r.Encode(&message)
		if got := decodeRequest(&message); got != r {
			t.Fatalf("%+v came back as %+v", r, got)
		}
		a := Answer{r.Number, r.Try, Status(r.Class), r.Client}
		var answer [AnswerBytes]byte
		a.Encode(&answer)
		if got := DecodeAnswer(&answer); got != a {
			t.Fatalf("%+v came back as %+v", a, got)
		}
	})
}

func TestSpecsThatAreRefused(t *testing.T) {
	good := func() Spec {
		return Spec{
			IO: 1, Pools: []Pool{{Name: "a", Threads: 1, Queue: 1}}, Deadline: time.Second,
			Classes: []Class{{Name: "get", Pool: "a", Work: scenario.Fixed(time.Millisecond)}},
		}
	}
	if err := good().Check(); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*Spec){
		"no I/O thread":          func(s *Spec) { s.IO = 0 },
		"a pool without threads": func(s *Spec) { s.Pools[0].Threads = 0 },
		"too many threads":       func(s *Spec) { s.Pools[0].Threads = maxThreads },
		"a long name":            func(s *Spec) { s.Pools[0].Name = "sixteen-letters-" },
		"the same name twice":    func(s *Spec) { s.Pools = append(s.Pools, s.Pools[0]) },
		"a negative queue":       func(s *Spec) { s.Pools[0].Queue = -1 },
		"no part for a thread":   func(s *Spec) { s.Pools[0].PerThread, s.Pools[0].Threads = true, 2 },
		"no classes":             func(s *Spec) { s.Classes = nil },
		"no such pool":           func(s *Spec) { s.Classes[0].Pool = "b" },
		"negative work":          func(s *Spec) { s.Classes[0].Work = scenario.Fixed(-1) },
		"no work":                func(s *Spec) { s.Classes[0].Work = scenario.Fixed(0) },
		"nothing to touch":       func(s *Spec) { s.Classes[0].Touches = 1 },
		"more than all locked":   func(s *Spec) { s.Classes[0].Locked = 1.1 },
		"negative inflation":     func(s *Spec) { s.Inflate = -1 },
		"negative deadline":      func(s *Spec) { s.Deadline = -time.Second },
		"no collecting thread":   func(s *Spec) { s.GC = &GC{Work: 1, Requests: 1} },
		"never collects":         func(s *Spec) { s.GC = &GC{Threads: 1, Work: 1} },
	} {
		s := good()
		spoil(&s)
		if s.Check() == nil {
			t.Errorf("%s: taken", name)
		}
		if p, err := Start("", s); err == nil {
			_ = p.Stop()
			t.Errorf("%s: started", name)
		}
	}
}
