package diagnose

import (
	"fmt"
	"strings"

	"github.com/unthrottle/unthrottle/bandwidth"
	"github.com/unthrottle/unthrottle/internal/text"
)

const (
	// wasteUse is the mean use of the quota in throttled periods, as a share, below which some of it was
	// wasted. A kernel that keeps slices throttles only after the quota is used up. If debts or the 1 ms that
	// each CPU keeps are missing in one period, another period used them.
	wasteUse = 0.8
	// wastePeriods is how many such periods an average needs.
	wastePeriods = 3
)

// sliceExpiry reports whether a kernel lets quota expire that CPUs took and did not use; known: its release is.
// Kernels of distributions may differ: RHEL 8's 4.18 has the fix of 5.4.
//
// Distributions add text to the release: 6.12.57+deb13-amd64.
func sliceExpiry(release string) (yes, known bool) {
	if end := strings.IndexFunc(release, func(r rune) bool { return (r < '0' || r > '9') && r != '.' }); end >= 0 {
		release = strings.TrimRight(release[:end], ".")
	}
	rules, err := bandwidth.For(release)
	if err != nil {
		return false, false
	}
	return !rules.Has(bandwidth.Since5_4), true
}

func sliceWaste(recorded *figures) (found, bool) {
	s := recorded.sums
	if !recorded.throttled() || !recorded.ownQuota || recorded.quota <= 0 || s.whole < wastePeriods {
		return found{}, false
	}
	used := float64(s.used) / float64(s.whole) / float64(recorded.quota)
	yes, known := sliceExpiry(recorded.kernel)
	if recorded.slicesExpire != nil { // the kernel's type information shows backports, which its release does not
		yes, known = *recorded.slicesExpire, true
	}
	if used >= wasteUse || known && !yes {
		return found{}, false
	}
	kernel := "kernel " + text.Sanitize(recorded.kernel, 64) + " lets quota expire that CPUs took and did not use"
	if !known {
		kernel = "the kernel's release is unknown; some let quota expire that CPUs took and did not use"
	}
	f := found{cause: SliceWaste, stopped: recorded.ownStopped, severity: recorded.quotaSeverity(), rank: rankWaste,
		guilty: recorded.spenders()}
	f.evidence = fmt.Sprintf("in %s that ended throttled only %s of the quota was used; %s",
		text.Count(s.whole, "period"), formatShare(used), kernel)
	f.verdict = fmt.Sprintf("Throttled although only %s of the %s quota was used in such periods: %s; the container %s.",
		formatShare(used), formatTime(recorded.quota), kernel, stoppedText(recorded))
	return f, true
}
