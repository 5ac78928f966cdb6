package diagnose

import (
	"fmt"

	"github.com/unthrottle/unthrottle/internal/text"
)

// realtime is the waiting of real-time threads, which wait for no ordinary one.
func realtime(recorded *figures) (found, bool) {
	waited := recorded.waiting[byRealtime]
	if !recorded.matters(waited) {
		return found{}, false
	}
	f := found{cause: Realtime, waited: waited, wall: min(waited, recorded.window), severity: waited}
	limit := "no cpu.rt_runtime_us is set for it, so that it is the host's (sysctl kernel.sched_rt_runtime_us), or other real-time threads"
	if l := recorded.rtLimit; l != nil {
		limit = fmt.Sprintf("cpu.rt_runtime_us of %s is %s in %s", text.EscapePath(l.Path), formatTime(*l.RTRuntimeNS),
			formatTime(l.RTPeriodNS))
	}
	f.evidence = fmt.Sprintf("its real-time threads waited for %s of thread time and ran for %s; %s",
		formatTime(waited), formatTime(recorded.cpu), limit)
	f.verdict = fmt.Sprintf("The kernel's limit for real-time threads held it back: such threads come before all "+
		"ordinary ones, and they waited for %s of thread time in %s; %s.",
		formatTime(waited), formatTime(recorded.window), limit)
	return f, true
}
