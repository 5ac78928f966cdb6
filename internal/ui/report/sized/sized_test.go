package sized

import (
	"strings"
	"testing"

	"github.com/unthrottle/unthrottle/internal/runtimes"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/page"
)

func TestWrite(t *testing.T) {
	rows := []runtimes.Row{{Runtime: "JVM (HotSpot)", Setting: "JAVA_TOOL_OPTIONS -XX:ActiveProcessorCount",
		Value: "1\x1b[2J", WouldBe: "2", Why: "because"}}
	for _, c := range []struct {
		l    runtimes.Limits
		want string
	}{{runtimes.Limits{CPUs: 1.5, Host: 8}, "a limit of 1.5 CPUs, 8 CPUs to run on\n"},
		{runtimes.Limits{Request: 2, Host: 1}, "no limit, 1 CPU to run on\n"}} {
		d := New(c.l, rows)
		if (d.LimitCPUs != nil) != (c.l.CPUs > 0) || (d.RequestCPUs != nil) != (c.l.Request > 0) {
			t.Errorf("%+v", d)
		}
		var b strings.Builder
		if err := Write(&b, d, page.Style{Width: 120}); err != nil || !strings.Contains(b.String(), c.want) ||
			!strings.Contains(b.String(), `1\x1b[2J`) {
			t.Errorf("%q, %v", b.String(), err)
		}
	}
}
