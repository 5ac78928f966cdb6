package demo

import (
	"fmt"
	"math"
)

// sameCPUShare is how far two variants' CPU use may lie apart to be called the
// same: 5 %.
const sameCPUShare = 0.05

// judge compares the quota variant with the pin variant. It calls figures equal only
// if they are, and it blames the host only where the host was busy.
func judge(r Result) Verdict {
	var v Verdict
	say := func(format string, args ...any) { v.Text = append(v.Text, fmt.Sprintf(format, args...)) }

	before, after := r.Before, r.After
	if before.UsedCPUs != nil && after.UsedCPUs != nil && *before.UsedCPUs > 0 {
		v.CPURatio = ptr(round3(*after.UsedCPUs / *before.UsedCPUs))
		v.SameCPU = math.Abs(*v.CPURatio-1) <= sameCPUShare
	}
	switch {
	case before.P99 == nil || after.P99 == nil:
		say("No verdict: no sleep was measured in one of the two variants.")
		return v
	case *after.P99 > 0:
		v.P99Ratio = ptr(round3(*before.P99 / *after.P99))
	}
	cpu := cpuWords(v, before, after)
	switch ratio := *v.P99Ratio; {
	case ratio >= 1.1:
		say("With pin, p99 of the 10 ms sleep is %s ms instead of %s ms: %.1fx lower, %s.", ms(after.P99), ms(before.P99), ratio, cpu)
	case ratio > 1/1.1:
		say("Pin changed nothing here: p99 of the 10 ms sleep is %s ms, with the quota %s ms, %s.", ms(after.P99), ms(before.P99), cpu)
	default:
		say("Pin made it worse here: p99 of the 10 ms sleep is %s ms instead of %s ms, %s.", ms(after.P99), ms(before.P99), cpu)
	}
	if before.ThrottledPeriods != nil && before.Periods != nil && *before.ThrottledPeriods*2 < *before.Periods {
		say("The quota stopped the container in only %d of %d periods: it did not get enough CPU to spend it.",
			*before.ThrottledPeriods, *before.Periods)
	}
	if busy := busyWords(r); busy != "" {
		say("%s", busy)
	}
	return v
}

func cpuWords(v Verdict, before, after Variant) string {
	switch {
	case v.CPURatio == nil:
		return "CPU used not measured"
	case v.SameCPU:
		return fmt.Sprintf("at the same CPU used (%.2f and %.2f CPUs)", *after.UsedCPUs, *before.UsedCPUs)
	}
	return fmt.Sprintf("but at other CPU used (%.2f instead of %.2f CPUs)", *after.UsedCPUs, *before.UsedCPUs)
}

// busyWords names who else wanted the CPUs where a variant got less than it could
// have: the pinned CPUs are not exclusive in a demo.
func busyWords(r Result) string {
	short := func(a Variant) bool { return a.UsedCPUs != nil && *a.UsedCPUs < float64(r.Quota)*(1-sameCPUShare) }
	for _, a := range []Variant{r.After, r.Before} {
		if !short(a) {
			continue
		}
		text := fmt.Sprintf("In variant %s the demo got %.2f of %d CPUs", a.Name, *a.UsedCPUs, r.Quota)
		if a.OtherCPUs != nil && a.StolenCPUs != nil {
			text += fmt.Sprintf(": others used %.2f CPUs meanwhile and the hypervisor kept back %.2f. "+
				"It moves no other process; run it again on a quieter host", *a.OtherCPUs, *a.StolenCPUs)
		}
		return text + "."
	}
	return ""
}

func ms(v *float64) string { return fmt.Sprintf("%.1f", *v) }
