package policy

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestParseObjective(t *testing.T) {
	for text, want := range map[string]Objective{
		"p99<20ms":       {0.99, 20 * time.Millisecond},
		" p50 < 1.5 s ":  {0.5, 1500 * time.Millisecond},
		"p99.9<250us":    {0.999, 250 * time.Microsecond},
		"max<30s":        {1, 30 * time.Second},
		"p90<1e2ms":      {0.9, 100 * time.Millisecond},
		"p95<0.001ms":    {0.95, time.Microsecond},
		"p99<20":         {},
		"p99>20ms":       {},
		"p98<20ms":       {},
		"p99<20m":        {},
		"p99<-1ms":       {},
		"p99<0ms":        {},
		"p99<NaNms":      {},
		"p99<infs":       {},
		"p99<0x1p4ms":    {},
		"p99<31s":        {},
		"":               {},
		"p99<":           {},
		"p99<20ms<30ms":  {},
		"p99<0.0000001s": {},
	} {
		got, err := ParseObjective(text)
		if (err != nil) != (want == Objective{}) || got != want {
			t.Errorf("%q: got %+v, %v, want %+v", text, got, err, want)
		}
		if err != nil && !strings.Contains(err.Error(), "write it as p99<20ms") {
			t.Errorf("%q: no way out in %q", text, err)
		}
	}
}

func FuzzParseObjective(f *testing.F) {
	for _, text := range []string{"p99<20ms", "max<1s", "p99.9 < 250us", "p99<<1ms"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		o, err := ParseObjective(text)
		if err != nil {
			return
		}
		if o.Bound < time.Microsecond || o.Bound > MaxBound {
			t.Fatalf("%q: bound %v", text, o.Bound)
		}
		if again, err := ParseObjective(o.String()); err != nil || again.Quantile != o.Quantile || (again.Bound-o.Bound).Abs() > time.Nanosecond {
			t.Fatalf("%q: %s reads as %+v, %v", text, o, again, err)
		}
	})
}

func TestSamples(t *testing.T) {
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
		"too many":     {out: strings.Repeat("1\n", MaxSamples+1), fails: "more than"},
	} {
		got, bad, err := Samples([]byte(c.out))
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

func FuzzSamples(f *testing.F) {
	f.Add([]byte("3.1\n2.9\n97.4\n"))
	f.Add([]byte("x\n\x00\n1e400\n"))
	f.Fuzz(func(t *testing.T, out []byte) {
		ms, _, err := Samples(out)
		for _, x := range ms {
			if err == nil && (x < 0 || math.IsNaN(x) || math.IsInf(x, 0)) {
				t.Fatalf("%q gave %v", out, x)
			}
		}
	})
}
