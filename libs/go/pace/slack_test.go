package pace

import "testing"

func TestSlack(t *testing.T) {
	var s Slack
	s.Restart(70 * ms)
	if s.Kept() != 5*ms {
		t.Fatalf("it begins with %v, want a slice", s.Kept())
	}
	if s.Learn(10, 0, false); s.Kept() != 5*ms {
		t.Errorf("periods in which nothing was held back made %v of 5 ms", s.Kept())
	}
	if s.Learn(10, 10, false); s.Kept() != 5*ms {
		t.Errorf("stops by other work made %v of 5 ms", s.Kept())
	}
	for range 10 {
		s.Learn(2, 0, true)
	}
	if s.Kept() < 25*ms/10 || s.Kept() > 3*ms {
		t.Errorf("20 periods without a stop leave %v of 5 ms", s.Kept())
	}
	before := s.Kept()
	if s.Learn(2, 1, true); s.Kept() != 2*before {
		t.Errorf("a stop makes %v of %v, want twice that", s.Kept(), before)
	}
	s.Learn(1<<60, 0, true)
	if s.Kept() < ms/2 || s.Kept() > ms {
		t.Errorf("it shrinks to %v of a quota of 70 ms", s.Kept())
	}
	for range 100 {
		s.Learn(1, 1, true)
	}
	if s.Kept() != 70*ms/6 {
		t.Errorf("it grows to %v, want a sixth of 70 ms", s.Kept())
	}
	if s.Restart(8 * ms); s.Kept() != ms {
		t.Errorf("it begins with %v of a quota of 8 ms", s.Kept())
	}
}

// A kernel that stops a period whose slack is below 3 ms: few periods end so, and what is kept is not much more.
func TestSlackFindsWhatIsNeeded(t *testing.T) {
	var s Slack
	s.Restart(150 * ms)
	stopped, sum := 0, s.Kept()
	const periods = 2000
	for range periods {
		stops := uint64(0)
		if s.Kept() < 3*ms {
			stops = 1
			stopped++
		}
		s.Learn(1, stops, true)
		sum += s.Kept()
	}
	if stopped*20 > periods {
		t.Errorf("%d of %d periods are stopped, want at most one in 20", stopped, periods)
	}
	if mean := sum / periods; mean > 5*ms {
		t.Errorf("%v are kept on average where 3 ms are enough", mean)
	}
}
