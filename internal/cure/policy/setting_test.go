package policy

import (
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/sim/forecast"
)

// A narrower pool is advised only where its row helps the judged latency, and costs the others nothing.
func TestResize(t *testing.T) {
	for _, c := range []struct {
		name           string
		p99, p50       float64
		pool           string
		stoppedSeconds float64
		want           bool
	}{
		{"helps", 20, 1, "web", 5, true},
		{"does not help", 98, 1, "web", 5, false},
		{"helps the tail, and doubles the rest", 20, 3, "web", 5, false},
		{"of another pool", 20, 1, "gc", 5, false},
		{"where nothing is stopped", 20, 1, "web", 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			as, resized := none(100, 1), pools(c.p99, 1)
			as.Figures.Response.P50, as.Figures.Pools = new(1.0), []forecast.PoolFigures{{Name: "web"}}
			resized.Figures.Response.P50 = new(c.p50)
			f := made(1, as, resized)
			f.Rows[0].Figures.Stopped = time.Duration(c.stoppedSeconds * float64(time.Second))
			said, ok := Resize(f, c.pool)
			if ok != c.want || ok && !strings.Contains(said, "100 ms to 20.0 ms") {
				t.Errorf("%v: %s", ok, said)
			}
		})
	}
}
