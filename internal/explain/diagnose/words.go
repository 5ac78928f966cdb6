package diagnose

import (
	"fmt"
	"math"
	"time"

	"github.com/unthrottle/unthrottle/internal/text"
)

// timeWords says a time with two or three digits.
func timeWords(ns int64) string {
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

// cpuWords says a number of CPUs to a hundredth.
func cpuWords(cpus float64) string { return text.CPUs(math.Round(cpus*100) / 100) }

func shareWords(share float64) string { return fmt.Sprintf("%.0f %%", 100*share) }

// poolWords names a pool in a sentence: strangers chose the name, so it stands in quotes.
func poolWords(p *pool) string { return "pool `" + p.key.name + "`" }

func confidence(lost uint64) string {
	return fmt.Sprintf("Low confidence: %d events were lost.", lost)
}

// stoodStill says how long the container stood still, how often: "stood still for 81 ms, 6.2 times a second".
func stoodStill(of *figures) string {
	if of.sums.whole > 0 && of.throttledRate > 0 {
		return fmt.Sprintf("stood still for %s, %.1f times a second", timeWords(of.sums.stopped/int64(of.sums.whole)), of.throttledRate)
	}
	if of.spells == 0 {
		return "did not stand still"
	}
	return fmt.Sprintf("stood still for %s, %.1f times a second", timeWords(of.stopped/int64(of.spells)), float64(of.spells)/(float64(of.window)/1e9))
}
