package diagnose

import (
	"fmt"
	"strings"

	"github.com/unthrottle/unthrottle/bandwidth"
	"github.com/unthrottle/unthrottle/internal/text"
)

const (
	// wasteUse: throttled periods in which less than this share of the quota was used, on average. On kernels without
	// seed 001's bug a period ends throttled only after the quota was used up: what misses in one (debts paid, 1 ms
	// kept by each CPU) was used in another.
	wasteUse = 0.8
	// wastePeriods is how many such periods are needed for an average.
	wastePeriods = 3
)

// expires says by its release whether a kernel lets parts of the quota expire that CPUs have taken and not used (known:
// its release is). Distributions' kernels may differ: RHEL 8's 4.18 has the cure of 5.4.
// Distributions add to the release what is no number: 6.12.57+deb13-amd64.
func expires(release string) (yes, known bool) {
	if end := strings.IndexFunc(release, func(r rune) bool { return (r < '0' || r > '9') && r != '.' }); end >= 0 {
		release = strings.TrimRight(release[:end], ".")
	}
	rules, err := bandwidth.For(release)
	if err != nil {
		return false, false
	}
	return !rules.Has(bandwidth.Since5_4), true
}

func sliceWaste(of *figures) (found, bool) {
	s := of.sums
	if !of.throttled() || of.binding == nil || !of.binding.own || of.quota <= 0 || s.whole < wastePeriods {
		return found{}, false
	}
	used := float64(s.used) / float64(s.whole) / float64(of.quota)
	yes, known := expires(of.kernel)
	if of.slicesExpire != nil { // the kernel's types know what was backported, its release does not
		yes, known = *of.slicesExpire, true
	}
	if used >= wasteUse || known && !yes {
		return found{}, false
	}
	kernel := "kernel " + text.Sanitize(of.kernel, 64) + " lets expire what CPUs took of the quota and did not use"
	if !known {
		kernel = "the kernel's release is not known; some lets expire what CPUs took of the quota and did not use"
	}
	f := found{cause: SliceWaste, stopped: of.ownStopped, severity: of.quotaSeverity(), rank: rankWaste}
	f.evidence = fmt.Sprintf("in %s that ended throttled only %s of the quota was used; %s", text.Count(s.whole, "period"), shareWords(used), kernel)
	f.verdict = fmt.Sprintf("Throttled although only %s of the %s quota was used in such periods: %s; the container %s.",
		shareWords(used), timeWords(of.quota), kernel, stoodStill(of))
	return f, true
}
