package check

import (
	"strings"
	"testing"

	"github.com/unthrottle/unthrottle/internal/kernel/features"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/page"
)

// A reason that many rows share is given once, and again after a row with another one.
func TestAReasonIsGivenOnce(t *testing.T) {
	const why = "cpu is not writable: run as root"
	r := features.Report{Can: []features.Ability{
		{What: "ls", Can: true, Why: why}, {What: "pin", Why: why}, {What: "narrow", Why: why},
		{What: "agent", Can: true, Why: "counters"}, {What: "fix", Why: why},
	}}
	var b strings.Builder
	if err := Write(&b, r, page.Style{Width: 100}); err != nil {
		t.Fatal(err)
	}
	_, can, _ := strings.Cut(b.String(), "What unthrottle can do here\n")
	want := []string{"yes  " + why, "no   " + why, "no   " + asAbove, "yes  counters", "no   " + why}
	lines := strings.Split(strings.TrimSpace(can), "\n")
	for i, line := range lines {
		if i >= len(want) || !strings.HasSuffix(line, want[i]) {
			t.Errorf("line %d: %q", i, line)
		}
	}
	if len(lines) != len(want) {
		t.Errorf("%d lines:\n%s", len(lines), can)
	}
}
