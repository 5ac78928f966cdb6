package fleet

import (
	"reflect"
	"testing"
	"time"
)

// Each length is counted at the least bound that is not shorter, and none is lost.
func TestStops(t *testing.T) {
	var s Stops
	for _, us := range []int64{0, 1, 128, 129, 192, 193, 256, 1024, 1025, 1536, 95_000, 1_000_000, 5_000_000} {
		s.Add(time.Duration(us) * time.Microsecond)
	}
	s.Add(-time.Second)
	want := []Stop{{128, 2}, {192, 2}, {256, 2}, {1024, 1}, {1536, 2}, {98_304, 1}, {1_048_576, 2}}
	if got := s.List(); !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	for i := range s {
		s[i] = 1
	}
	all := s.List()
	for i, l := range all {
		if stopLength(l.Microseconds) != i || i > 0 && stopLength(all[i-1].Microseconds+1) != i {
			t.Errorf("%d us is length %d, not %d", l.Microseconds, stopLength(l.Microseconds), i)
		}
	}
	if len(all) != stopLengths || (&Stops{}).List() != nil {
		t.Errorf("%d lengths", len(all))
	}
}
