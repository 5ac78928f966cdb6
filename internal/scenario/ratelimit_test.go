package scenario

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// In no stretch of time are more requests let in than the burst and the rate allow, and none is refused while a token is
// there.
func TestAdmission(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := RateLimit{PerSecond: rapid.Float64Range(0.5, 5000).Draw(t, "rate"), Burst: rapid.IntRange(1, 50).Draw(t, "burst")}
		a, now := limit.Admission(), time.Duration(0)
		var admitted []time.Duration
		tokens := float64(limit.Burst)
		for range rapid.IntRange(1, 300).Draw(t, "requests") {
			gap := time.Duration(rapid.Int64Range(0, int64(2*float64(time.Second)/limit.PerSecond)).Draw(t, "gap"))
			now += gap
			tokens = min(float64(limit.Burst), tokens+gap.Seconds()*limit.PerSecond)
			switch is := a.Admits(now); {
			case is:
				admitted = append(admitted, now)
				tokens--
			case tokens > 1+1e-6:
				t.Fatalf("%v: refused with %v tokens", now, tokens)
			}
			if tokens < -1e-6 {
				t.Fatalf("%v: %v tokens", now, tokens)
			}
		}
		for i, from := range admitted {
			for k, to := range admitted[i:] {
				if most := float64(limit.Burst) + (to-from).Seconds()*limit.PerSecond + 1e-6; float64(k+1) > most {
					t.Fatalf("%d from %v to %v, %v at most", k+1, from, to, most)
				}
			}
		}
	})
	a := RateLimit{}.Admission()
	for range 3 {
		if !a.Admits(0) {
			t.Error("without a limit a request is refused")
		}
	}
}
