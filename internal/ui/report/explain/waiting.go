package explain

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/table"
)

// reason is a reason of waiting with its text for people.
type reason struct {
	Reason diagnose.Reason
	Short  string // head of a column
	Long   string
}

// reasons in the order in which they are shown.
var reasons = []reason{
	{diagnose.OwnQuota, "own quota", "held back by its own quota"},
	{diagnose.AncestorQuota, "ancestor's", "held back by an ancestor's quota"},
	{diagnose.OwnThreads, "own threads", "its own threads held the CPU"},
	{diagnose.ByNeighbours, "neighbours", "another container or process held the CPU"},
	{diagnose.HostSystem, "host, kernel", "the host's system or the kernel held the CPU"},
	{diagnose.Steal, "steal", "the hypervisor held the CPU"},
	{diagnose.IdleUnused, "idle unused", "a CPU that it may use was idle meanwhile"},
	{diagnose.RealtimeLimit, "real-time limit", "the limit for real-time threads, or another such thread, held it back"},
}

// reasonsSeen are those with any waiting, in their order; a reason that is not ours comes last.
func reasonsSeen(waiting map[diagnose.Reason]time.Duration) []reason {
	var seen []reason
	known := map[diagnose.Reason]bool{}
	for _, r := range reasons {
		known[r.Reason] = true
		if waiting[r.Reason] > 0 {
			seen = append(seen, r)
		}
	}
	for _, r := range slices.Sorted(maps.Keys(waiting)) {
		if !known[r] && waiting[r] > 0 {
			seen = append(seen, reason{r, string(r), string(r)})
		}
	}
	return seen
}

func waitingSum(waiting map[diagnose.Reason]time.Duration) time.Duration {
	sum := time.Duration(0)
	for _, d := range waiting {
		sum += d
	}
	return sum
}

// waitingRow is what the threads of a pool waited for.
type waitingRow struct {
	name    string
	waiting map[diagnose.Reason]time.Duration
}

// waitingColumn is how wide a column of the table is at most.
const waitingColumn = 14

func (x *view) waiting() {
	e := x.e
	if e.Waiting == nil {
		return
	}
	seen := reasonsSeen(e.Waiting)
	if len(seen) == 0 {
		x.Section("Where waiting went: no runnable thread waited for a CPU.")
		return
	}
	x.Section("Where waiting went, in thread time:")
	var rows []waitingRow
	for _, p := range e.Pools {
		if len(rows) < maxPools && waitingSum(p.Waiting) > 0 {
			name := poolName(p)
			if !x.narrow() {
				name = x.poolName(p, max(widestWidth+x.Columns-numbersWidth, x.Columns-(len(seen)+1)*waitingColumn))
			}
			rows = append(rows, waitingRow{name, p.Waiting})
		}
	}
	if len(rows) != 1 {
		rows = append(rows, waitingRow{"all", e.Waiting})
	}
	if x.narrow() {
		for _, r := range rows {
			x.Hanging("  ", r.name+": "+waitingText(r.waiting))
		}
	} else {
		fields := []table.Field[waitingRow]{{Column: table.Column{Name: "pool"}, Text: func(r waitingRow) string { return r.name }}}
		for _, reason := range seen {
			fields = append(fields, table.Field[waitingRow]{Column: table.Column{Name: reason.Short},
				Text: func(r waitingRow) string { return text.Duration(r.waiting[reason.Reason]) }})
		}
		fields = append(fields, table.Field[waitingRow]{Column: table.Column{Name: "all"},
			Text: func(r waitingRow) string { return text.Duration(waitingSum(r.waiting)) }})
		table.Figures(x, x.Style, fields, rows)
	}
	neighbours := waitedFor(e.Neighbours)
	for i, n := range neighbours {
		if i == maxOthers {
			x.Line(fmt.Sprintf("  and %s more in --json", text.Count(len(neighbours)-i, "neighbour")))
			break
		}
		x.Hanging("  ", neighbourText(n))
	}
}

// waitingText has as text what the table has in columns.
func waitingText(waiting map[diagnose.Reason]time.Duration) string {
	var parts []string
	for _, r := range reasonsSeen(waiting) {
		parts = append(parts, r.Short+" "+text.Duration(waiting[r.Reason]))
	}
	return strings.Join(append(parts, "all "+text.Duration(waitingSum(waiting))), ", ")
}

// leastWaited is the waiting below which a neighbour is no reader's concern: it would read "<0.01 ms".
const leastWaited = 10 * time.Microsecond

// waitedFor are the neighbours that the container waited for. JSON has all that ran on its CPUs.
func waitedFor(uses []diagnose.NeighbourUse) []diagnose.NeighbourUse {
	return slices.DeleteFunc(slices.Clone(uses), func(n diagnose.NeighbourUse) bool { return n.Waited < leastWaited })
}

// neighbourText says who held the CPU while the container waited.
func neighbourText(n diagnose.NeighbourUse) string {
	text := fmt.Sprintf("%s: held CPUs for %s, %s of thread time waited for it", shownName(n.Name),
		text.Duration(n.CPU), text.Duration(n.Waited))
	if also := neighbourAlso(n); also != "" {
		text += "; it " + also
	}
	return text
}

// neighbourAlso says what else is known of a neighbour: whether it toggles, as a throttled one does (seed 000, note 3).
func neighbourAlso(n diagnose.NeighbourUse) string {
	var also []string
	if n.Client {
		also = append(also, "is a client, which runs by turns with the container")
	}
	if n.Recorder {
		also = append(also, "is unthrottle itself, which ran for this recording only")
	}
	if n.Throttled != nil && *n.Throttled {
		also = append(also, "is throttled itself")
	}
	if n.Toggling != nil && *n.Toggling {
		also = append(also, "swings between many CPUs and none")
	}
	return strings.Join(also, " and ")
}

func (x *view) perCore() {
	if x.e.RunnablePerCore == nil {
		return
	}
	x.Section("Runnable threads per reserved core, while any is runnable: " + strconv.FormatFloat(*x.e.RunnablePerCore, 'f', 2, 64))
}
