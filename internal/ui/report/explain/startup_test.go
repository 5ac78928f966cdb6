package explain

import (
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/page"
)

// A container that is stopped while it starts is told so, below its verdict and in JSON.
func TestStartup(t *testing.T) {
	for want, s := range map[string]diagnose.Startup{
		"It is starting: its oldest process was 3 s old at the beginning. Ask again when it is older than 30 s.": {
			Age: 3 * time.Second, Stopped: time.Second},
		"It was stopped while it started, and hardly in the 8 s after that: its oldest process was 28 s old at the ": {
			Age: 28 * time.Second, Stopped: time.Second, After: 8 * time.Second, Over: true},
	} {
		var b strings.Builder
		e := diagnose.Explanation{Target: "/web", Window: 10 * time.Second, Verdict: "It was stopped.", Startup: &s}
		if err := Write(&b, e, Options{Style: page.Style{Width: page.Unbounded}}); err != nil || !strings.Contains(b.String(), want) {
			t.Errorf("%v, %s\nwant %s", err, b.String(), want)
		}
		if got := itemOf(e).Startup; got == nil || got.Over != s.Over || got.AgeSeconds != s.Age.Seconds() ||
			got.AfterSeconds != s.After.Seconds() || got.StoppedSeconds != 1 {
			t.Errorf("%+v", got)
		}
	}
}
