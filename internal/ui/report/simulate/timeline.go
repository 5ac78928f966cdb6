package simulate

import (
	"fmt"
	"io"
	"math"
	"time"

	"github.com/unthrottle/unthrottle/internal/sim/simulate"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/figure"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/page"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/timeline"
)

// drawTimeline draws a cgroup's first periods, a line each: the CPUs in use as the
// height of a character, and a mark where threads were held and none ran.
func drawTimeline(w io.Writer, s simulate.Timeline, style page.Style) {
	length := s.Period / simulate.CellsPerPeriod
	most := time.Duration(0)
	for _, c := range s.Cells {
		most = max(most, c.Used)
	}
	glyphs := timeline.New(style.ASCII)
	fmt.Fprintf(w, "\n%s: a line per period of %s, a character is %s; CPUs in use, the most %.3g; %c held by a quota, %c idle\n",
		s.Cgroup, text.ExactDuration(s.Period), text.ExactDuration(length), float64(most)/float64(length), glyphs.Held, timeline.Idle)
	for i := 0; i < len(s.Cells); i += simulate.CellsPerPeriod {
		line := fmt.Sprintf("%9s ms  ", figure.Trimmed(math.Round(float64(s.Start+time.Duration(i)*length)/1e4)/100))
		for _, c := range s.Cells[i : i+simulate.CellsPerPeriod] {
			switch {
			case 2*c.Held > length && float64(c.Used) < 0.05*float64(most):
				line += string(glyphs.Held)
			case c.Used == 0:
				line += string(timeline.Idle)
			default:
				line += string(glyphs.Height(float64(c.Used) / float64(most)))
			}
		}
		fmt.Fprintln(w, line)
	}
}
