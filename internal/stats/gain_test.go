package stats

import "testing"

func TestGains(t *testing.T) {
	for _, test := range []struct {
		was, is      float64
		gains, alike bool // of is as the best, was as the other one
	}{
		{20, 18.1, false, false}, {20, 18.2, false, true}, {20, 18, true, false}, {2, 1.6, false, true},
		{2, 1.5, true, true}, {1000, 940, false, true}, {5, 5, false, true}, {5, 6, false, true},
	} {
		if Gains(test.was, test.is) != test.gains || Alike(test.is, test.was) != test.alike {
			t.Errorf("%+v: %v, %v", test, Gains(test.was, test.is), Alike(test.is, test.was))
		}
	}
}
