package text

import (
	"math"
	"testing"
)

func TestParseDecimal(t *testing.T) {
	for text, want := range map[string]float64{"2": 2, "0.5": 0.5, ".5": 0.5, "-1.5e3": -1500, "1E-3": 0.001, "+4": 4, "007": 7} {
		if got, err := ParseDecimal(text); err != nil || got != want {
			t.Errorf("%q: %g, %v; want %g", text, got, err, want)
		}
	}
	for _, text := range []string{"", "0x1p4", "0X1P-2", "inf", "-Inf", "infinity", "nan", "NaN", "1_000", "0x_1p4",
		"1e999", "1 ", "1,5", "e", "٣", "2 CPUs"} {
		if got, err := ParseDecimal(text); err == nil {
			t.Errorf("%q is %g", text, got)
		}
	}
}

func FuzzParseDecimal(f *testing.F) {
	for _, text := range []string{"2", "-1.5e3", "0x1p4", "inf", "1e999", "1_0"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if got, err := ParseDecimal(text); err == nil && (math.IsNaN(got) || math.IsInf(got, 0)) {
			t.Fatalf("%q is %g", text, got)
		}
	})
}
