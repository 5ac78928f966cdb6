package report

import (
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/demand"
	"github.com/unthrottle/unthrottle/internal/demand/store"
	view "github.com/unthrottle/unthrottle/internal/ui/report/fleet"
)

// Four cores of two threads each, and six.
const (
	eightThreads  = "cpus 0-7; core 0,4|1,5|2,6|3,7"
	twelveThreads = "cpus 0-11; core 0,6|1,7|2,8|3,9|4,10|5,11"
)

// pinnedTo is a service with so many CPUs of its own, of which it wants 2.8 at most for all but moments.
func pinnedTo(no int, groups, cpus string, n int32, wide int32) (rows []demand.Row) {
	for slot := range 3 {
		r := rowOf("web", no, noon.Add(time.Duration(slot)*demand.SlotLength), float64(n), wide)
		r.Node, r.Remedy, r.AllowedCPUs, r.HostGroups, r.CPUList = "n", string(remedy.Pin), &n, groups, cpus
		rows = append(rows, r)
	}
	return rows
}

func reported(t *testing.T, rows ...demand.Row) view.Document {
	t.Helper()
	dir := t.TempDir()
	if err := store.Write(dir, rows); err != nil {
		t.Fatal(err)
	}
	d, err := Make(t.Context(), opened(t, 0), Options{Files: filesIn(t, dir), Now: noon.Add(time.Hour), Bound: 0.001})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// An odd thread that comes back is of no use to sets of whole cores, and is not called saved.
func TestFragmentation(t *testing.T) {
	d := reported(t, pinnedTo(1, eightThreads, "0-1,4-5", 4, 3)...)
	near(t, "after", &d.Ledger.CoresAfter, 3)
	near(t, "half a core", d.Ledger.Fragmentation, 1)
	near(t, "saved", &d.Ledger.Saved, 0)
	d = reported(t, pinnedTo(1, "cpus 0-7; core 0|1|2|3|4|5|6|7", "0-1,4-5", 4, 3)...)
	near(t, "cores of one thread", d.Ledger.Fragmentation, 0)
	near(t, "saved", &d.Ledger.Saved, 1)
	d = reported(t, append(pinnedTo(1, twelveThreads, "0-1,6-7", 4, 3), pinnedTo(2, twelveThreads, "2-3,8-9", 4, 3)...)...)
	near(t, "two halves", d.Ledger.Fragmentation, 2)
	d = reported(t, rowOf("cart", 1, noon, 8, 4))
	near(t, "nothing is pinned", d.Ledger.Fragmentation, 0)
}

// Which CPUs go is not known of older rows, of lists and groups that are none, and where two containers have a CPU as
// their own.
func TestFragmentationIsNotKnown(t *testing.T) {
	for what, rows := range map[string][]demand.Row{
		"older": pinnedTo(1, "", "", 4, 3), "no list": pinnedTo(1, eightThreads, "x'--", 4, 3),
		"no groups":       pinnedTo(1, "cpus 0-7; core 0|0", "0-3", 4, 3),
		"not of the host": pinnedTo(1, eightThreads, "6-9", 4, 3),
		"shared":          append(pinnedTo(1, eightThreads, "0-1,4-5", 4, 3), pinnedTo(2, eightThreads, "0-1,4-5", 4, 3)...),
	} {
		d := reported(t, rows...)
		if d.Ledger.Fragmentation != nil || d.Ledger.Saved <= 0 {
			t.Errorf("%s: %+v", what, d.Ledger)
		}
	}
}

// A plan has rounds; exclusive CPUs are laid on the host's groups, and what crosses is repaired once there is room.
func TestPlanOfExclusive(t *testing.T) {
	const two = "cpus 0-11; socket 0-5|6-11; node 0-5|6-11; l3 0-5|6-11; core 0,1|2,3|4,5|6,7|8,9|10,11"
	pinned := func(node string, no int, cpus string, n int32) demand.Row {
		r := on(node, "web", no)
		r.Service = r.Service + r.Pod
		r.HostCPUs, r.Remedy, r.AllowedCPUs, r.HostGroups, r.CPUList = new(int32(12)), string(remedy.Pin), &n, two, cpus
		return r
	}
	d, err := planned(t, -1, pinned("a", 1, "4-7", 4), pinned("b", 2, "0-1", 2), pinned("c", 3, "0-1", 2))
	if err != nil || d.Hosts != 1 || d.Moves != 2 || d.Rounds != 1 || d.MovesTight != 0 {
		t.Fatalf("%+v, %v", d, err)
	}
	x := d.Exclusive
	if x == nil || x.Containers != 3 || x.Unknown != 0 || x.CrossingNow != 1 {
		t.Fatalf("%+v", x)
	}
	if x.Crossing != 1 || x.CrossingRepaired != 0 || len(x.Repairs) == 0 || x.Repairs[0].Pod != "web-1" {
		t.Errorf("what crosses is not repaired: %+v", x)
	}
	for _, m := range d.MoveList {
		if m.Round != 1 || m.CPUs == nil {
			t.Errorf("%+v", m)
		}
	}
	old := pinned("b", 2, "", 2)
	old.HostGroups = ""
	if d, err = planned(t, -1, pinned("a", 1, "0-3", 4), old, on("b", "cart", 9)); err != nil ||
		d.Exclusive.Containers != 2 || d.Exclusive.CrossingNow != 0 {
		t.Errorf("%+v, %v", d.Exclusive, err)
	}
	if d, err = planned(t, -1, on("a", "cart", 1)); err != nil || d.Exclusive != nil {
		t.Errorf("none is exclusive: %+v, %v", d.Exclusive, err)
	}
}
