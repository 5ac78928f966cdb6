package simulate

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// The queue against a plain map.
func TestQueue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q, model := newQueue(40), map[int]time.Duration{}
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			slot := rapid.IntRange(0, 39).Draw(t, "slot")
			switch rapid.IntRange(0, 4).Draw(t, "do") {
			case 0:
				q.set(slot, never)
				delete(model, slot)
			case 1:
				slot, at := q.pop()
				if len(model) == 0 {
					if at != never {
						t.Fatalf("popped %d at %v from nothing", slot, at)
					}
					continue
				}
				for s, a := range model {
					if a < at || a == at && s < slot {
						t.Fatalf("popped slot %d at %v, but slot %d is due at %v", slot, at, s, a)
					}
				}
				if model[slot] != at {
					t.Fatalf("slot %d at %v, set to %v", slot, at, model[slot])
				}
				delete(model, slot)
			default:
				at := time.Duration(rapid.IntRange(0, 50).Draw(t, "at"))
				q.set(slot, at)
				model[slot] = at
			}
			if q.due(slot) != (slices.ContainsFunc(q.heap, func(d due) bool { return d.slot == int32(slot) && d.slot != q.taken })) {
				t.Fatalf("slot %d: due is wrong", slot)
			}
		}
	})
}

func TestHistogram(t *testing.T) {
	h := histogram{}
	if h.quantile(0.5) != nil || h.maximum() != nil {
		t.Error("quantiles of nothing")
	}
	for v := range 100_000 {
		h.add(time.Duration(v+1) * time.Microsecond)
	}
	for p, want := range map[float64]float64{0.5: 50, 0.9: 90, 0.99: 99, 1: 100} {
		if got := *h.quantile(p); math.Abs(got-want) > 0.01*want {
			t.Errorf("quantile %v is %v ms, want %v", p, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		v := time.Duration(rapid.Int64Range(0, math.MaxInt64).Draw(t, "v"))
		b := bucket(v)
		if most := bucket(math.MaxInt64); b < 0 || b > most {
			t.Fatalf("bucket %d of %d", b, most)
		}
		if off := math.Abs(float64(middle(b) - v)); off > 0.01*float64(v)+1 {
			t.Fatalf("%v is in a bucket at %v", v, middle(b))
		}
	})
}

func TestFirstCommon(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 200).Draw(t, "cpus")
		a, b := newMask(n), newMask(n)
		for c := range n {
			if rapid.IntRange(0, 9).Draw(t, "a") == 0 {
				a.add(c)
			}
			if rapid.IntRange(0, 3).Draw(t, "b") == 0 {
				b.add(c)
			}
		}
		from, want := rapid.IntRange(0, n-1).Draw(t, "from"), -1
		for i := range n {
			if c := (from + i) % n; a.has(c) && b.has(c) {
				want = c
				break
			}
		}
		if got := firstCommon(a, b, from); got != want {
			t.Fatalf("%d, want %d", got, want)
		}
	})
}

func TestTimeline(t *testing.T) {
	s := newTimeline("a", 20, 100, 2) // cells of 2 ns from 20 to 220
	s.add(0, 24, 3, false)
	s.add(24, 27, 0, true)
	s.add(218, 400, 1, false)
	if s.Cells[0].Used != 6 || s.Cells[1].Used != 6 || s.Cells[2].Held != 2 || s.Cells[3].Held != 1 || s.Cells[99].Used != 2 {
		t.Errorf("%+v", s.Cells[:4])
	}
}
