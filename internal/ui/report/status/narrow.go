package status

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/txn"
)

// narrow is a line about a cap of a container's width.
func narrow(f txn.InForce) string {
	n := f.Narrow
	capped := fmt.Sprintf("narrow: %s to %s", target(f), text.CPUs(n.CapCPUs))
	switch {
	case n.InForce == nil:
		return capped + ", by a scheduler that could not be asked\n"
	case !*n.InForce:
		return capped + " is not in force: the scheduler has ended, and its quota stops it again; 'unthrottle restore' ends the " +
			"transaction, and applying it again loads the scheduler\n"
	}
	return fmt.Sprintf("%s: %d in use, at most %d; credit %s of %s; at the cap for %s, others waited for %s of it; %s cut short\n", capped,
		*n.CPUsNow, *n.Widest, seconds(*n.CreditSeconds), seconds(n.MaxCreditSeconds), seconds(*n.AtCapSeconds), seconds(*n.WaitedSeconds),
		text.Count(int(*n.SlicesCut), "slice")) + faults(n.Faults)
}

// faults is a line about what must not happen in the scheduler; "": nothing of it did.
func faults(all map[string]uint64) string {
	var happened []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if n := all[name]; n > 0 {
			happened = append(happened, fmt.Sprintf("%s %d", name, n))
		}
	}
	if happened == nil {
		return ""
	}
	return "narrow: the scheduler counted what must not happen: " + strings.Join(happened, ", ") + "; see docs/reference/status.md\n"
}

func seconds(s float64) string {
	return text.Duration(time.Duration(s * float64(time.Second)).Round(time.Millisecond))
}
