package explain

import (
	"fmt"
	"strconv"

	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/page"
)

// doubtText says a check that did not pass; ok is false for one that did.
func doubtText(c diagnose.Check) (text string, doubt bool) {
	switch {
	case c.ErrorRatio == nil:
		text, doubt = shownText(c.Name)+": not judged", true
	case !c.OK:
		text, doubt = fmt.Sprintf("%s: FAILED, off by %s %%", shownText(c.Name), strconv.FormatFloat(100**c.ErrorRatio, 'f', 2, 64)), true
	default:
		return "", false
	}
	if c.Note != "" {
		text += ": " + shownText(c.Note)
	}
	return text, doubt
}

// doubts are the checks that did not pass, the events lost and what was not measured.
func (x *view) doubts() {
	passed, all := 0, len(x.e.Checks)
	var failed []string
	for _, c := range x.e.Checks {
		if text, doubt := doubtText(c); doubt {
			failed = append(failed, text)
		} else {
			passed++
		}
	}
	switch {
	case all == 0:
	case passed == all:
		x.Section(fmt.Sprintf("Checks: %s of the figures against the kernel's own counters, passed.", text.Count(all, "cross-check")))
	default:
		x.Section(fmt.Sprintf("Checks: %d of %s passed.", passed, text.Count(all, "cross-check")))
		for _, text := range failed {
			x.Hanging("  ", text)
		}
	}
	if n := x.e.LostEvents; n != nil && *n > 0 {
		x.Section(x.Paint(page.Red, fmt.Sprintf("%d events were lost: every figure may be off.", *n)))
	}
	if len(x.e.NotMeasured) > 0 {
		x.Section("Not measured:")
	}
	for i, n := range x.e.NotMeasured {
		if i == maxNotes {
			x.Line("  and " + text.Count(len(x.e.NotMeasured)-i, "other thing") + ": see --json")
			break
		}
		x.Hanging("  ", shownText(n))
	}
}
