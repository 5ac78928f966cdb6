package objective

import (
	"strings"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]Objective{
		"p99<20ms":          {0.99, 20 * time.Millisecond},
		"p99=20ms":          {0.99, 20 * time.Millisecond},
		"p99<=20ms":         {0.99, 20 * time.Millisecond},
		" p99.9 < 1.5 s ":   {0.999, 1500 * time.Millisecond},
		"p99.99=500us":      {0.9999, 500 * time.Microsecond},
		"max<1m":            {1, time.Minute},
		"p50<0.25ms":        {0.5, 250 * time.Microsecond},
		"p97.5<3ms":         {0.975, 3 * time.Millisecond},
		"":                  {},
		"p99":               {},
		"p99>20ms":          {},
		"99<20ms":           {},
		"p0<20ms":           {},
		"p100<20ms":         {},
		"pNaN<20ms":         {},
		"p0x63<20ms":        {},
		"p99<20":            {},
		"p99<-1ms":          {},
		"p99<0s":            {},
		"p99<2000m":         {},
		"p99<1nsms":         {},
		"p99==20ms":         {},
		"p99<20ms p50<10ms": {},
	} {
		got, err := Parse(text)
		if (err != nil) != (want == Objective{}) || got != want {
			t.Errorf("%q: %v, %v, want %v", text, got, err, want)
		}
		if err != nil && !strings.Contains(err.Error(), "write it as p99<20ms") {
			t.Errorf("%q: %v shows no form", text, err)
		}
	}
}

// What String writes, Parse reads.
func TestStringIsRead(t *testing.T) {
	for _, o := range []Objective{{0.99, 20 * time.Millisecond}, {0.999, time.Microsecond}, {1, MaxBound},
		{0.5, 1500 * time.Millisecond}, {0.9999, 1234567 * time.Microsecond}} {
		got, err := Parse(o.String())
		if err != nil || got != o {
			t.Errorf("%s: %v, %v", o, got, err)
		}
	}
}
