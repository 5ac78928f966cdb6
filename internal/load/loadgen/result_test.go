package loadgen

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func TestQuantilesNeedValuesBeyond(t *testing.T) {
	var l Latency
	for i := range 1000 {
		l.Add(time.Duration(i+1) * ms)
	}
	for _, c := range []struct {
		q  float64
		ok bool
	}{{0.5, true}, {0.99, true}, {0.991, false}, {0.999, false}} {
		if _, ok := l.Quantile(c.q, 10); ok != c.ok {
			t.Errorf("quantile %v of 1000: told %v, want %v", c.q, ok, c.ok)
		}
	}
	if p99, _ := l.Quantile(0.99, 10); p99 < 989*ms || p99 > 991*ms {
		t.Errorf("p99 of 1 to 1000 ms is %v", p99)
	}
	if _, ok := (Latency{}).Quantile(0.5, 0); ok {
		t.Error("a quantile of nothing")
	}
}

func TestLatencyAsText(t *testing.T) {
	var l, empty Latency
	l.Add(3 * ms)
	l.Add(0)
	l.Add(time.Hour) // longer than it can hold
	for _, want := range []Latency{l, empty} {
		text, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got Latency
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
		most, _ := got.Max()
		was, _ := want.Max()
		if got.Count() != want.Count() || most != was {
			t.Errorf("%d up to %v came back as %d up to %v", want.Count(), was, got.Count(), most)
		}
	}
	var merged Latency
	merged.Merge(empty)
	merged.Merge(l)
	merged.Merge(l)
	if merged.Count() != 6 || len(merged.Bins()) != 3 {
		t.Errorf("merged: %v", merged.Bins())
	}
}

func FuzzLatency(f *testing.F) {
	var l Latency
	l.Add(5 * ms)
	text, _ := l.MarshalText()
	f.Add(text)
	f.Add([]byte("HISTFAAAAA"))
	f.Fuzz(func(t *testing.T, text []byte) {
		var l Latency
		if l.UnmarshalText(text) == nil && len(l.Bins()) > 0 && l.Count() == 0 {
			t.Error("bins of nothing")
		}
	})
}

func TestSaturation(t *testing.T) {
	for name, c := range map[string]struct {
		own  Own
		says string
	}{
		"fine": {Own{LateAfter: ms, CPUSeconds: 0.1, Seconds: 1, Sends: 1000, LateSends: 10}, ""},
		"late": {Own{LateAfter: ms, CPUSeconds: 0.1, Seconds: 1, Sends: 1000, LateSends: 11}, "late by more than 1ms with 11 of 1000"},
		"busy": {Own{LateAfter: ms, CPUSeconds: 0.9, Seconds: 1, Sends: 1000}, "0.90 CPUs"},
		"idle": {Own{}, ""},
	} {
		if got := c.own.Saturated(); !strings.Contains(got, c.says) || (got == "") != (c.says == "") {
			t.Errorf("%s: %q", name, got)
		}
	}
}
