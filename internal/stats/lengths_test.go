package stats

import (
	"reflect"
	"testing"
	"time"
)

// Each time is counted at the least length that is not shorter, and none is lost.
func TestLengths(t *testing.T) {
	var l Lengths
	for _, us := range []int64{0, 1, 16, 17, 24, 25, 128, 129, 192, 193, 1024, 1025, 95_000, 200_000_000} {
		l.Add(time.Duration(us)*time.Microsecond, 2)
	}
	l.Add(-time.Second, 1)
	l.Add(time.Second, 0)
	us := func(n int) time.Duration { return time.Duration(n) * time.Microsecond }
	want := []Length{{us(16), 4}, {us(24), 4}, {us(32), 2}, {us(128), 2}, {us(192), 4}, {us(256), 2}, {us(1024), 2},
		{us(1536), 2}, {us(98_304), 2}, {us(67_108_864), 2}}
	if got := l.All(); !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	for i := range l {
		l[i] = 1
	}
	lengths := l.All()
	for i, length := range lengths {
		at := length.UpTo.Microseconds()
		if lengthOf(at) != i || i > 0 && lengthOf(lengths[i-1].UpTo.Microseconds()+1) != i {
			t.Errorf("%v is length %d, not %d", length.UpTo, lengthOf(at), i)
		}
	}
	if len(lengths) != lengthsApart || (&Lengths{}).All() != nil {
		t.Errorf("%d lengths", len(lengths))
	}
}
