package status

import (
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/page"
	"github.com/unthrottle/unthrottle/internal/widthcap"
)

// A cap in force shows its figures. One that is not in force says what holds the container now, once.
func TestNarrow(t *testing.T) {
	counted := txn.Narrow{CapCPUs: 2.5, MaxCreditSeconds: 0.5, InForce: new(true), Widest: new(6), CPUsNow: new(2),
		CreditSeconds: new(0.25),
		AtCapSeconds:  new(61.0), WaitedSeconds: new(3.5), SlicesCut: new(uint64(1))}
	faulty := counted
	faulty.Faults = map[string]uint64{"no_row": 0, "unbalanced": 2, "lost_limit": 1}
	for want, n := range map[string]txn.Narrow{
		"narrow: web to 2.5 CPUs: 2 in use, at most 6; credit 250 ms of 500 ms; at the cap for 61 s, others waited " +
			"for 3.50 s of it; 1 slice cut short\n": counted,
		"; 1 slice cut short\nnarrow: the scheduler counted what must not happen: lost_limit 1, unbalanced 2; see " +
			"docs/reference/status.md\n": faulty,
		"narrow: web to 2 CPUs is not in force: the scheduler has ended, and its quota stops it again": {CapCPUs: 2, InForce: new(false)},
		"narrow: web to 2 CPUs, by a scheduler that could not be asked\n":                              {CapCPUs: 2},
	} {
		var b strings.Builder
		drift := []txn.DriftItem{{ID: "7", Target: "/web", Path: "/web", File: widthcap.File, Want: "2 CPUs"}}
		f := txn.InForce{ID: "7", Target: "/web", Name: "web", Remedy: "narrow", Narrow: &n}
		if err := Write(&b, []txn.InForce{f}, drift, time.Time{}, page.Style{Width: page.Unbounded}); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(b.String(), want) || strings.Contains(b.String(), "drift") {
			t.Errorf("%s, want %s", b.String(), want)
		}
	}
}
