package slo

import (
	"math"
	"slices"
	"strings"
	"testing"
)

func TestParseLatencies(t *testing.T) {
	for name, c := range map[string]struct {
		out   string
		want  []float64
		bad   int
		fails string
	}{
		"plain":        {out: "3.1\n2.9\n97.4\n", want: []float64{3.1, 2.9, 97.4}},
		"no last line": {out: "1\n\n 2 \r\n3", want: []float64{1, 2, 3}},
		"some bad":     {out: "1\nms\n-4\nNaN\n0x1p4\n2\n3\n4\n", want: []float64{1, 2, 3, 4}, bad: 4},
		"a long line":  {out: strings.Repeat("1", 300) + "\n1\n", want: []float64{1}, bad: 1},
		"all bad":      {out: "p50 = 3 ms\n", bad: 1, fails: `not "p50 = 3 ms"`},
		"nothing":      {},
		"too many":     {out: strings.Repeat("1\n", maxSamples+1), fails: "more than"},
	} {
		got, bad, err := parseLatencies([]byte(c.out))
		switch {
		case c.fails != "":
			if err == nil || !strings.Contains(err.Error(), c.fails) {
				t.Errorf("%s: %v, want %q", name, err, c.fails)
			}
		case err != nil || bad != c.bad || !slices.Equal(got, c.want):
			t.Errorf("%s: %v, %d bad, %v", name, got, bad, err)
		}
	}
}

func FuzzParseLatencies(f *testing.F) {
	f.Add([]byte("3.1\n2.9\n97.4\n"))
	f.Add([]byte("x\n\x00\n1e400\n"))
	f.Fuzz(func(t *testing.T, out []byte) {
		ms, _, err := parseLatencies(out)
		for _, x := range ms {
			if err == nil && (x < 0 || math.IsNaN(x) || math.IsInf(x, 0)) {
				t.Fatalf("%q gave %v", out, x)
			}
		}
	})
}
