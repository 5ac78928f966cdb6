package fleet

import (
	"fmt"
	"strings"

	"github.com/unthrottle/unthrottle/internal/text"
)

// rolloutChart is the time line of a service: the share of the time, up to Most, against the time since the remedy.
type rolloutChart struct {
	Name, With, Most string
	Lines            []rolloutPath
}

// rolloutPath is the line of a container, and its figures before the remedy and with it.
type rolloutPath struct {
	Name                         string
	Color                        int
	Path                         string
	StoppedBefore, Stopped       string
	RequestP99Before, RequestP99 string
}

// Where a chart has its lines, and how many colours there are.
const (
	chartLeft, chartRight = 64.0, 424.0
	chartTop, chartBottom = 14.0, 120.0
	chartColors           = 7
	// leastMost is the least scale, so that little is seen to be little.
	leastMost = 0.01
)

// newRollouts draws the services, but for those that no quota stopped, before and with it: these it names.
func newRollouts(rollouts []Rollout) (charts []rolloutChart, never []string) {
	for _, r := range rollouts {
		most := 0.0
		for _, line := range r.Lines {
			for _, share := range line.StoppedShare {
				if share != nil {
					most = max(most, *share)
				}
			}
		}
		c := rolloutChart{Name: shownName(r.Service), With: fmt.Sprintf("%s in %s", text.Shown(r.Remedy), text.Count(r.Containers, "container"))}
		if most == 0 {
			never = append(never, fmt.Sprintf("%s (%s)", c.Name, c.With))
			continue
		}
		most = max(most, leastMost)
		c.Most = percent(&most)
		for i, line := range r.Lines {
			half := len(line.StoppedShare) / 2
			c.Lines = append(c.Lines, rolloutPath{shownName(line.Pod) + " on " + shownName(line.Host), i % chartColors,
				pathOf(line.StoppedShare, most), percent(meanKnown(line.StoppedShare[:half])), percent(meanKnown(line.StoppedShare[half:])),
				milliseconds(line.RequestP99Before), milliseconds(line.RequestP99After)})
		}
		charts = append(charts, c)
	}
	return charts, never
}

// meanKnown is the mean of the shares that are known; nil: none is.
func meanKnown(shares []*float64) *float64 {
	sum, n := 0.0, 0
	for _, share := range shares {
		if share != nil {
			sum, n = sum+*share, n+1
		}
	}
	if n == 0 {
		return nil
	}
	return new(sum / float64(n))
}

// pathOf is the path of a line, with a gap where nothing is known. A share that stands alone is a dot.
func pathOf(shares []*float64, most float64) string {
	var b strings.Builder
	goesOn := false
	for i, share := range shares {
		if share == nil {
			goesOn = false
			continue
		}
		step := "M%.1f %.1fh.1"
		if goesOn {
			step = "L%.1f %.1f"
		}
		goesOn = true
		fmt.Fprintf(&b, step, chartLeft+(chartRight-chartLeft)*(float64(i)+0.5)/float64(len(shares)),
			chartBottom-(chartBottom-chartTop)**share/most)
	}
	return b.String()
}
