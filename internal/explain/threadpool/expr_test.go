package threadpool

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestFormula(t *testing.T) {
	for text, want := range map[string]float64{
		"n":                     6,
		"7":                     7,
		"2 * n + 1":             13,
		"1 + 2 * n":             13,
		"n - 1 - 2":             3, // from the left
		"n / 2 / 3":             1,
		"(n - 1) * 2":           10,
		"min(n, 4, 5)":          4,
		"max(8, ceil(2*n))":     12,
		"floor(n * 5 / 8)":      3,
		"sqrt(n - 2)":           2,
		"log2(n)":               2,
		"log2(0.5)":             0,
		"min(max(1,n),((3)))":   3,
		"1.5*n":                 9,
		"  max( 1 , n - 100 ) ": 1,
	} {
		e, err := parseFormula(text, "n")
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if got := e.eval(map[string]float64{"n": 6}); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

func TestFormulaSaysWhatIsWrong(t *testing.T) {
	for text, want := range map[string]string{
		"":                              "at byte 1: a number, a figure or ( is expected",
		"n n":                           "at byte 3: an operator or the end",
		"2 *":                           "a number, a figure",
		"(n":                            ") is expected",
		"min(n, 2":                      ") is expected",
		"min(n)":                        "min of 1 values",
		"ceil(n, 1)":                    "ceil of 2 values",
		"exec(n)":                       "unknown function exec",
		"cpus":                          "unknown figure cpus: known are n",
		"1.2.3":                         "not a number",
		"n; n":                          "an operator or the end",
		strings.Repeat("(", 50) + "n":   "nested deeper",
		strings.Repeat("1+", 100) + "1": "at most 200",
	} {
		if _, err := parseFormula(text, "n"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// drawFormula is a formula together with its value for n, worked out beside the parser.
func drawFormula(t *rapid.T, n float64, depth int) (string, float64) {
	kind := rapid.SampledFrom([]string{"n", "number", "+", "-", "*", "/", "min", "max", "ceil", "floor"}).Draw(t, "kind")
	if kind == "n" || depth == 0 {
		return "n", n
	}
	if kind == "number" {
		v := rapid.IntRange(0, 99).Draw(t, "number")
		return strconv.Itoa(v), float64(v)
	}
	a, av := drawFormula(t, n, depth-1)
	switch kind {
	case "ceil":
		return "ceil(" + a + ")", math.Ceil(av)
	case "floor":
		return "floor(" + a + ")", math.Floor(av)
	}
	b, bv := drawFormula(t, n, depth-1)
	switch kind {
	case "min":
		return "min(" + a + ", " + b + ")", math.Min(av, bv)
	case "max":
		return "max(" + a + "," + b + ")", math.Max(av, bv)
	}
	value := map[string]float64{"+": av + bv, "-": av - bv, "*": av * bv, "/": av / bv}[kind]
	return "(" + a + " " + kind + b + ")", value
}

func TestFormulaProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := float64(rapid.IntRange(1, 512).Draw(t, "n"))
		text, want := drawFormula(t, n, 4)
		e, err := parseFormula(text, "n")
		if len(text) > maxFormula {
			if err == nil {
				t.Fatalf("%d bytes were read", len(text))
			}
			return
		}
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		got := e.eval(map[string]float64{"n": n})
		if got != want && !(math.IsNaN(got) && math.IsNaN(want)) {
			t.Fatalf("%q for %v: %v, want %v", text, n, got, want)
		}
		if e.uses("n") != strings.Contains(strings.ReplaceAll(text, "min", ""), "n") {
			t.Fatalf("%q: uses n: %v", text, e.uses("n"))
		}
	})
}

func FuzzFormula(f *testing.F) {
	f.Add("max(8, ceil(2*n))")
	f.Add("((n-1)/0)*log2(n)")
	f.Fuzz(func(t *testing.T, text string) {
		e, err := parseFormula(text, "n")
		if err != nil {
			return
		}
		for _, n := range []float64{1, 3, 64} {
			if got, ok := count(e.eval(map[string]float64{"n": n})); ok && (got < 1 || got > maxThreads) {
				t.Fatalf("%q for %v: %d", text, n, got)
			}
		}
	})
}
