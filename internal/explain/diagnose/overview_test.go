package diagnose

import (
	"testing"
	"time"
)

// However long a recording is, its stretches are few and equally long, and nothing of it is lost.
func TestOverview(t *testing.T) {
	for _, length := range []time.Duration{time.Millisecond, time.Second, 2400 * time.Millisecond,
		2401 * time.Millisecond, time.Minute, 300 * 24 * time.Hour} {
		var o overview
		step := length.Nanoseconds() / 997
		at := int64(0)
		for at < length.Nanoseconds() {
			next := min(length.Nanoseconds(), at+max(1, step))
			o.add(at, next, 2, 3, at >= length.Nanoseconds()/2)
			at = next
		}
		all := o.stretches()
		if len(all) == 0 || len(all) > maxStretches {
			t.Fatalf("%v: %d stretches", length, len(all))
		}
		sum, stopped := time.Duration(0), 0.0
		for i, s := range all {
			if i > 0 && s.Start != all[i-1].Start+all[i-1].Length || i < len(all)-1 && s.Length != all[0].Length {
				t.Errorf("%v: stretch %d is %v long from %v on", length, i, s.Length, s.Start)
			}
			if s.MeanWidth != 2 || s.MostWidth != 2 || s.Wanted != 3 {
				t.Errorf("%v: stretch %d: %+v", length, i, s)
			}
			sum += s.Length
			stopped += s.Stopped * s.Length.Seconds()
		}
		if sum != length {
			t.Errorf("%v: the stretches are %v long", length, sum)
		}
		if half := length.Seconds() / 2; stopped < 0.99*half || stopped > 1.01*half {
			t.Errorf("%v: stopped for %v s, not %v", length, stopped, half)
		}
	}
}
