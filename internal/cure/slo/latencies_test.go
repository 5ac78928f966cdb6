package slo

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestParseLatencies(t *testing.T) {
	second := time.Unix(1_763_900_000, 0)
	for name, c := range map[string]struct {
		out   string
		want  []float64
		began []time.Time
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

		"with times": {out: "2025-11-23T12:13:20Z 3.1\n2025-11-23T13:13:20.25+01:00\t2.9\n1763900001.5 97.4\n1763900002 1\n",
			want: []float64{3.1, 2.9, 97.4, 1},
			began: []time.Time{second, second.Add(250 * time.Millisecond), second.Add(1500 * time.Millisecond),
				second.Add(2 * time.Second)}},
		"times in ms":        {out: "1763900000000 3.1\n", bad: 1, fails: "a time and such a number"},
		"a time of no zone":  {out: "2025-11-23T12:13:20 3.1\n", bad: 1, fails: "a time and such a number"},
		"two numbers":        {out: "3 3.1\n", bad: 1, fails: "a time and such a number"},
		"three words":        {out: "1763900000 3.1 ms\n", bad: 1, fails: "a time and such a number"},
		"a time of long ago": {out: "1970-01-01T00:00:00Z 3.1\n", bad: 1, fails: "a time and such a number"},
		"some with times":    {out: "1763900000 3.1\n4\n", fails: "a time on 1 of 2 lines"},
		"bad among times":    {out: "1763900000 3.1\n1763900000 -\n", want: []float64{3.1}, began: []time.Time{second}, bad: 1},
	} {
		got, bad, err := parseLatencies([]byte(c.out))
		switch {
		case c.fails != "":
			if err == nil || !strings.Contains(err.Error(), c.fails) {
				t.Errorf("%s: %v, want %q", name, err, c.fails)
			}
		case err != nil || bad != c.bad || !slices.Equal(got.MS, c.want) || !slices.EqualFunc(got.Began, c.began, time.Time.Equal):
			t.Errorf("%s: %v, %d bad, %v", name, got, bad, err)
		}
	}
}

// Of an answer with times only the requests that began in the asked time count. A clock that is ahead is an error.
func TestBetween(t *testing.T) {
	now := time.Unix(1_763_900_000, 0)
	ago := func(seconds ...int) (a Answer) {
		for _, s := range seconds {
			a.MS, a.Began = append(a.MS, float64(s)), append(a.Began, now.Add(time.Duration(-s)*time.Second))
		}
		return a
	}
	if got, err := ago(9, 5, 4, 6, 0, -1).between(now.Add(-5*time.Second), now); err != nil ||
		!slices.Equal(got.MS, []float64{5, 4, 0, -1}) || len(got.Began) != 4 {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := ago(9, 8).between(now, now); err != nil || len(got.MS) != 0 {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := ago(1, -3).between(now, now); err == nil || !strings.Contains(err.Error(), "begins in 3s") {
		t.Error(err)
	}
	plain := Answer{MS: []float64{1, 2}}
	if got, err := plain.between(now, now); err != nil || !slices.Equal(got.MS, plain.MS) {
		t.Errorf("%v, %v", got, err)
	}
}

// A command gets the time from which on latencies are wanted, and what it prints of before does not count.
func TestSourceWithTimes(t *testing.T) {
	since := time.Now().Add(-time.Minute)
	script := `sh -c 'echo 2025-01-01T00:00:00Z 9; echo "$UNTHROTTLE_SINCE 7"'`
	got, err := Latencies(script)(context.Background(), since)
	if err != nil || !slices.Equal(got.MS, []float64{7}) || got.Began[0].Before(since) {
		t.Errorf("%v, %v", got, err)
	}
}

func FuzzParseLatencies(f *testing.F) {
	f.Add([]byte("3.1\n2.9\n97.4\n"))
	f.Add([]byte("x\n\x00\n1e400\n"))
	f.Add([]byte("2025-11-23T12:13:20.5Z 3.1\n1763900000.25 2.9\n"))
	f.Add([]byte("9999999999.9999999999 1\n1e9 0\n"))
	f.Fuzz(func(t *testing.T, out []byte) {
		a, _, err := parseLatencies(out)
		if err != nil {
			return
		}
		for _, x := range a.MS {
			if x < 0 || math.IsNaN(x) || math.IsInf(x, 0) {
				t.Fatalf("%q gave %v", out, x)
			}
		}
		if len(a.Began) != 0 && len(a.Began) != len(a.MS) {
			t.Fatalf("%q gave %d times of %d latencies", out, len(a.Began), len(a.MS))
		}
		for _, at := range a.Began {
			if at.Unix() < minSeconds || at.Unix() > maxSeconds {
				t.Fatalf("%q gave %v", out, at)
			}
		}
	})
}
