package remedy

import (
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/sim/forecast"
)

// Each row that a plan can do has its words, with flags that the remedy has.
func TestWordsOf(t *testing.T) {
	for want, row := range map[string]forecast.Remedy{
		"--remedy burst --burst 60ms":                 {Name: forecast.Burst, Burst: 60 * time.Millisecond},
		"--remedy burst --burst 12ms --period 20ms":   {Name: forecast.Burst, Burst: 12 * time.Millisecond, Period: 20 * time.Millisecond},
		"--remedy narrow":                             {Name: forecast.Narrow},
		"--remedy narrow --burst 80ms":                {Name: forecast.Narrow, Burst: 80 * time.Millisecond},
		"--remedy narrow --via sched_ext --credit 1s": {Name: forecast.Narrow, Credit: time.Second},
		"--remedy period --period 10ms":               {Name: forecast.Period, Period: 10 * time.Millisecond},
		"--remedy pin --cpus 2":                       {Name: forecast.Pin, CPUs: 2},
		"--remedy raise --factor 1.5":                 {Name: forecast.Raise, Factor: 1.5},
		"--remedy weight":                             {Name: forecast.Weight},
	} {
		words := WordsOf(row)
		if got := strings.Join(words, " "); got != want {
			t.Errorf("%+v: %q, want %q", row, got, want)
			continue
		}
		remedy, _ := OfRow(row)
		for i := 2; i < len(words); i += 2 {
			if flag := strings.TrimPrefix(words[i], "--"); !remedy.Has(flag) {
				t.Errorf("%s has no setting %s", remedy.Kind, flag)
			}
		}
	}
	for _, name := range []string{forecast.None, forecast.Pools, forecast.Shards} {
		if words := WordsOf(forecast.Remedy{Name: name}); words != nil {
			t.Errorf("%s: %q", name, words)
		}
	}
}
