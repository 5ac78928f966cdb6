package diagnose

import (
	"fmt"
	"time"

	"github.com/unthrottle/unthrottle/internal/see/schedule"
	"github.com/unthrottle/unthrottle/internal/text"
)

// scheduler finds a sched_ext scheduler that does not keep limits. Its proof are periods with more CPU time
// than the quota in which the kernel held nothing back.
func scheduler(of *figures) (found, bool) {
	if of.schedExt == "" || of.limit <= 0 || of.throttled() || of.sums.overUnstopped < shortagePeriods {
		return found{}, false
	}
	f := found{cause: Scheduler, severity: int64(time.Duration(schedule.MaxAtNS)), rank: rankScheduler}
	f.evidence = fmt.Sprintf("the sched_ext scheduler %q is loaded; %s used more than the quota of %s, up to %s, and nothing was held back",
		of.schedExt, text.Count(of.sums.overUnstopped, "period"), formatTime(of.quota), formatTime(of.sums.unstoppedUsed))
	f.verdict = fmt.Sprintf("The loaded sched_ext scheduler %q does not keep limits: the container used up to %s in "+
		"periods with a quota of %s.",
		of.schedExt, formatTime(of.sums.unstoppedUsed), formatTime(of.quota))
	return f, true
}
