package widthcap

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestSpelling(t *testing.T) {
	for value, want := range map[string]Cap{
		"2.5 CPUs, credit 500ms, widest 8": {2.5, 500 * time.Millisecond, 8},
		"2 CPUs":                           {CPUs: 2},
		"0.05 CPUs, widest 1":              {CPUs: 0.05, Widest: 1},
	} {
		if got, err := Parse(value); err != nil || got != want || got.String() != value {
			t.Errorf("%s: %+v, %v, %s", value, got, err, got)
		}
	}
	for _, value := range []string{"", "2", "CPUs", "2 CPUs, ", "2 CPUs, credit 2", "0 CPUs", "-1 CPUs",
		"2 CPUs, widest 1", "2 CPUs, credit 2h",
		"2 CPUs, widest x", "1e9 CPUs", "2 CPUs, burst 2s"} {
		if got, err := Parse(value); err == nil {
			t.Errorf("%q: %+v", value, got)
		}
	}
	if got := Of(1.5); got != (Cap{CPUs: 1.5, Credit: 300 * time.Millisecond}) {
		t.Errorf("%+v", got)
	}
	if (Cap{CPUs: math.NaN()}).Check() == nil {
		t.Error("no number of CPUs, and no error")
	}
}

func TestSpellingKeepsEveryCap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := Cap{CPUs: float64(rapid.IntRange(10, 1000*MaxCPUs).Draw(t, "thousandths")) / 1000,
			Credit: time.Duration(rapid.Int64Range(0, MaxCredit.Microseconds()).Draw(t, "us")) * time.Microsecond}
		if rapid.Bool().Draw(t, "bounded") {
			c.Widest = rapid.IntRange(int(math.Ceil(c.CPUs)), MaxCPUs).Draw(t, "widest")
		}
		if got, err := Parse(c.String()); err != nil || got != c {
			t.Fatalf("%s: %+v, %v", c, got, err)
		}
	})
}
