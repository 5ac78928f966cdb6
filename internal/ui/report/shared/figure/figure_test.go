package figure

import (
	"testing"
	"time"
)

func TestFigures(t *testing.T) {
	for got, want := range map[string]string{
		Fixed(nil, 1): "-", Fixed(new(1.25), 1): "1.2", Trimmed(2): "2", Trimmed(0.5): "0.5",
		OfPeriods(nil, new(uint64(3))): "-", OfPeriods(new(uint64(2)), new(uint64(3))): "2 of 3",
		PerSecond(nil, new(1.0)): "-", PerSecond(new(0.0), new(0.0)): "0 ms/s", PerSecond(new(0.081), new(0.24)): "81-240 ms/s",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if Seconds(nil) != nil || *Seconds(new(1500 * time.Millisecond)) != 1.5 {
		t.Error("Seconds")
	}
}
