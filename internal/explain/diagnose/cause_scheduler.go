package diagnose

import (
	"fmt"
	"time"

	"github.com/unthrottle/unthrottle/internal/see/schedule"
	"github.com/unthrottle/unthrottle/internal/text"
)

// scheduler finds a sched_ext scheduler that does not keep limits. Its proof are periods with more CPU time
// than the quota in which the kernel held nothing back.
func scheduler(recorded *figures) (found, bool) {
	if recorded.schedExt == "" || recorded.limit <= 0 || recorded.throttled() || recorded.sums.overUnstopped < shortagePeriods {
		return found{}, false
	}
	f := found{cause: Scheduler, severity: int64(time.Duration(schedule.MaxAtNS)), rank: rankScheduler}
	f.evidence = fmt.Sprintf("the sched_ext scheduler %q is loaded; %s used more than the quota of %s, up to %s, and nothing was held back",
		recorded.schedExt, text.Count(recorded.sums.overUnstopped, "period"), formatTime(recorded.quota),
		formatTime(recorded.sums.unstoppedUsed))
	f.verdict = fmt.Sprintf("The loaded sched_ext scheduler %q does not keep limits: the container used up to %s in "+
		"periods with a quota of %s.",
		recorded.schedExt, formatTime(recorded.sums.unstoppedUsed), formatTime(recorded.quota))
	return f, true
}
