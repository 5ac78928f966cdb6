package report

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/unthrottle/unthrottle/internal/sim/simulate"
)

// simulatedTimeline draws a cgroup's first periods, a line each: the CPUs in use
// as the height of a bar, and a mark where threads were held and none ran.
func simulatedTimeline(b *strings.Builder, s simulate.Timeline, style bars) {
	length := s.Period / simulate.CellsPerPeriod
	most := time.Duration(0)
	for _, c := range s.Cells {
		most = max(most, c.Used)
	}
	heights, held := []rune("▁▂▃▄▅▆▇█"), '░'
	if style.ascii {
		heights, held = []rune("123456789"), 'x'
	}
	fmt.Fprintf(b, "\n%s: a line per period of %v, a character is %v; CPUs in use, the most %.3g; %c held by a quota, . idle\n",
		s.Cgroup, s.Period, length, float64(most)/float64(length), held)
	for i := 0; i < len(s.Cells); i += simulate.CellsPerPeriod {
		fmt.Fprintf(b, "%9s ms  ", trimmed(math.Round(float64(s.Start+time.Duration(i)*length)/1e4)/100))
		for _, c := range s.Cells[i : i+simulate.CellsPerPeriod] {
			switch {
			case 2*c.Held > length && float64(c.Used) < 0.05*float64(most):
				b.WriteRune(held)
			case c.Used == 0:
				b.WriteByte('.')
			default:
				n := len(heights)
				b.WriteRune(heights[min(n-1, int(float64(c.Used)/float64(most)*float64(n)))])
			}
		}
		b.WriteByte('\n')
	}
}
