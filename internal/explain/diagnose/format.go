package diagnose

import (
	"fmt"
	"math"
	"time"

	"github.com/unthrottle/unthrottle/internal/text"
)

// formatTime formats a time with two or three digits.
func formatTime(ns int64) string {
	ms := float64(ns) / float64(time.Millisecond)
	switch {
	case ms >= 9995:
		return fmt.Sprintf("%.1f s", ms/1000)
	case ms >= 999.5:
		return fmt.Sprintf("%.2f s", ms/1000)
	case ms >= 9.95:
		return fmt.Sprintf("%.0f ms", ms)
	case ms >= 0.0995:
		return fmt.Sprintf("%.1f ms", ms)
	}
	return fmt.Sprintf("%.0f us", ms*1000)
}

// formatCPUs formats a number of CPUs to a hundredth.
func formatCPUs(cpus float64) string { return text.CPUs(math.Round(cpus*100) / 100) }

func formatShare(share float64) string { return fmt.Sprintf("%.0f %%", 100*share) }

// formatPool names a pool in a sentence. The name comes from the container, so it stands in quotes.
func formatPool(p *pool) string { return "pool `" + p.key.name + "`" }

func lowConfidence(lost uint64) string {
	return fmt.Sprintf("Low confidence: %d events were lost.", lost)
}

// stoppedText says how long and how often the container was stopped: "was stopped for 81 ms, 6.2 times a
// second".
func stoppedText(recorded *figures) string {
	if recorded.sums.whole > 0 && recorded.throttledRate > 0 {
		return fmt.Sprintf("was stopped for %s, %.1f times a second",
			formatTime(recorded.sums.stopped/int64(recorded.sums.whole)), recorded.throttledRate)
	}
	if recorded.stoppedIntervals == 0 {
		return "was not stopped"
	}
	return fmt.Sprintf("was stopped for %s, %.1f times a second", formatTime(recorded.stopped/int64(recorded.stoppedIntervals)),
		float64(recorded.stoppedIntervals)/(float64(recorded.window)/1e9))
}
