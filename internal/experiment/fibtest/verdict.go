package fibtest

import "fmt"

// Verdict is which behaviour the kernel has.
type Verdict string

// The verdicts.
const (
	verdictAffected     Verdict = "affected"     // slices expire: the quota cannot be used
	verdictFixed        Verdict = "fixed"        // slices are kept
	verdictUnmeasurable Verdict = "unmeasurable" // it cannot be told here
)

const (
	// margin is how far a real kernel may lie outside a simulated range.
	margin = 0.02
	// leastAlone is the share of its quota that one thread gets on a host that has
	// the time.
	leastAlone = 0.95
	// leastThrottled is the share of throttled periods in which the test says
	// something.
	leastThrottled = 0.9
)

// judge compares the runs with the expected ranges. The first is of one thread.
func judge(runs []Run) (Verdict, string) {
	if alone := runs[0]; alone.Share < leastAlone {
		return verdictUnmeasurable, fmt.Sprintf("one thread alone used %.2f of its quota: the host is too busy, try "+
			"again when it is quieter", alone.Share)
	}
	fixed, affected := 0, 0
	why := ""
	for _, r := range runs[1:] {
		switch {
		case r.Slow == 0 || r.Fixed.Low-r.Affected.High < margin:
			why = fmt.Sprintf("with %d CPUs and %g ms of quota both behaviours give the same: %.2f to %.2f of the quota, and %.2f to %.2f",
				r.Threads, 1e3*r.QuotaSeconds, r.Affected.Low, r.Affected.High, r.Fixed.Low, r.Fixed.High)
			continue
		case r.Periods == 0 || float64(r.ThrottledPeriods) < leastThrottled*float64(r.Periods):
			why = fmt.Sprintf("%d of %d periods were throttled: the threads did not ask for their quota", r.ThrottledPeriods, r.Periods)
			continue
		case r.Share >= r.Fixed.Low-margin/2:
			fixed++
		case r.Share <= r.Affected.High+margin/2:
			affected++
		default:
			why = fmt.Sprintf("%.2f of the quota was used: between %.2f, the most where slices expire, and %.2f, the "+
				"least where they are kept", r.Share, r.Affected.High, r.Fixed.Low)
		}
	}
	last := runs[len(runs)-1]
	switch {
	case fixed > 0 && affected == 0:
		return verdictFixed, fmt.Sprintf("%.2f of the quota was used; where slices expire at most %.2f can be",
			last.Share, last.Affected.High)
	case affected > 0 && fixed == 0:
		return verdictAffected, fmt.Sprintf("%.2f of the quota was used, throttled in %d of %d periods; where slices "+
			"are kept at least %.2f are", last.Share, last.ThrottledPeriods, last.Periods, last.Fixed.Low)
	case affected > 0:
		return verdictUnmeasurable, "the runs contradict each other: try again when the host is quieter"
	}
	return verdictUnmeasurable, why
}
