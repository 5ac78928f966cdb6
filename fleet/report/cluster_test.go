package report

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/demand"
	"github.com/unthrottle/unthrottle/internal/demand/packing"
	"github.com/unthrottle/unthrottle/internal/demand/store"
	view "github.com/unthrottle/unthrottle/internal/ui/report/fleet"
)

// planned makes the plan of rows, by a clock that goes on for a second each time.
func planned(t *testing.T, moves int, rows ...demand.Row) (made view.Plan, err error) {
	t.Helper()
	dir := t.TempDir()
	if err := store.Write(dir, rows); err != nil {
		t.Fatal(err)
	}
	now := noon
	clock := func() time.Time { now = now.Add(time.Second); return now }
	made, err = MakePlan(t.Context(), opened(t, 0), Options{Files: filesIn(t, dir), Now: noon.Add(time.Hour)},
		PlanOptions{Options: packing.Options{Risk: 0.001, Moves: moves}, Clock: clock})
	if len(made.Input.Refused) > 0 {
		t.Fatalf("%+v", made.Input.Refused)
	}
	return made, err
}

// on is a row on a host of 16 CPUs and 64 GiB, with a GiB for itself.
func on(node, service string, no int) demand.Row {
	r := rowOf(service, no, noon, 4, 4)
	r.Node, r.HostCPUs, r.HostMemoryBytes, r.MemoryBytes = node, new(int32(16)), new(int64(64<<30)), new(int64(1<<30))
	return r
}

// Hosts are emptied within their cluster, and a budget keeps to those that take fewest moves.
func TestMakePlan(t *testing.T) {
	var rows []demand.Row
	for no, node := range []string{"a", "a", "a", "b", "b", "c"} {
		rows = append(rows, on(node, "cart", no))
	}
	other := on("d", "cart", 6)
	other.Cluster = "eu2"
	rows = append(rows, other)
	for moves, want := range map[int]view.Plan{-1: {Hosts: 2, Moves: 3}, 2: {Hosts: 3, Moves: 1}, 0: {Hosts: 4}} {
		d, err := planned(t, moves, rows...)
		if err != nil || d.Hosts != want.Hosts || d.Moves != want.Moves || len(d.MoveList) != want.Moves ||
			d.HostsNow != 4 || d.LowerBound != 2 || d.Containers != 7 || d.Over != 0 || d.Seconds != 1 {
			t.Fatalf("%d moves: %+v, %v", moves, d, err)
		}
		if moves == 2 && (d.MoveList[0] != view.Move{Cluster: "eu1", Namespace: "shop", Pod: "cart-5", Container: "app",
			Service: "cart/app", From: "c", To: "a", Round: 1} || !slices.Equal(d.Emptied, []view.Host{{Cluster: "eu1", Node: "c"}})) {
			t.Errorf("%+v", d)
		}
	}
}

// What cannot be moved, or of which too little is known, stays and is told.
func TestWhatStays(t *testing.T) {
	var rows []demand.Row
	for no, node := range []string{"a", "b", "c"} {
		unit, daemon, cart := on(node, "ssh", no), on(node, "log", 10+no), on(node, "cart", 20+no)
		unit.Runtime = "systemd"
		rows = append(rows, unit, daemon, cart, on(node, "cart", 40+no))
	}
	blind, large := on("a", "blind", 50), on("b", "large", 51)
	blind.Wanted, blind.WantedCPUSeconds, blind.OwnLimitCPUs, blind.LimitCPUs, blind.UsedCPUSeconds = nil, nil, nil, nil, nil
	large.MemoryBytes = nil
	old := on("old", "cart", 52)
	old.HostCPUs = nil
	d, err := planned(t, -1, append(rows, blind, large, old)...)
	want := []view.Stay{{Reason: ofHost, Containers: 3}, {Reason: onEachHost, Containers: 3},
		{Reason: noDemand, Containers: 1}, {Reason: noMemory, Containers: 1}}
	if err != nil || !slices.Equal(d.Stay, want) || d.HostsUnknown != 1 || d.ContainersUnknown != 1 || d.Containers != 14 {
		t.Fatalf("%+v, %v", d, err)
	}
	if d.Hosts != 1 || d.Moves != 4 {
		t.Errorf("%+v", d)
	}
	for _, m := range d.MoveList {
		if m.Service != "cart/app" {
			t.Errorf("moved %+v", m)
		}
	}
}

// A DaemonSet's pods stay where they are also while a host has none yet; a Job's, on some of the hosts, do not.
func TestDaemonSetWhileHostsCome(t *testing.T) {
	for hosts, want := range map[int]int{9: 9, 8: 0} { // of ten
		var rows []demand.Row
		for no := range 10 {
			rows = append(rows, on(fmt.Sprint("n", no), fmt.Sprint("cart", no%5), no))
			if no < hosts {
				r := on(fmt.Sprint("n", no), "log", 20+no)
				r.Pod = "log-bbbb" + string("bcdfghjklm"[no])
				rows = append(rows, r)
			}
		}
		stay := 0
		d, err := planned(t, -1, rows...)
		for _, s := range d.Stay {
			if s.Reason == onEachHost {
				stay = s.Containers
			}
		}
		if err != nil || stay != want {
			t.Errorf("on %d of 10 hosts: %+v, %v", hosts, d.Stay, err)
		}
	}
}

// A pod that came at night is planned by what those whose place it took wanted by day.
func TestPlanOfNewPods(t *testing.T) {
	var rows []demand.Row
	for no, node := range []string{"a", "b"} {
		r := on(node, "night", 10+no)
		r.Start = noon.Add(9 * time.Hour)
		r.Began = r.Start
		rows = append(rows, r)
		for slot := range 12 { // of noon's three hours an hour, in which it used 12 of 16 CPUs
			day := on(node, "night", 20+no)
			day.Start = noon.Add(time.Duration(slot) * demand.SlotLength)
			day.Began, day.UsedCPUSeconds, day.WantedCPUSeconds = day.Start, new(3600.0), new(3600.0)
			day.Wanted = []demand.Level{{CPUs: 12, Microseconds: 300_000_000}}
			day.Width = day.Wanted
			rows = append(rows, day)
		}
	}
	if d, err := planned(t, -1, rows...); err != nil || d.Containers != 2 || d.Hosts != 2 || d.LowerBound != 2 {
		t.Errorf("%+v, %v", d, err)
	}
}

// Memory and pinned CPUs bound a host as demand does.
func TestMemoryAndPinned(t *testing.T) {
	var memory, pinned []demand.Row
	for no := range 4 {
		service := fmt.Sprint("s", no)
		r := on(fmt.Sprint("n", no), service, no)
		r.MemoryBytes = new(int64(30 << 30)) // two of them to a host
		memory = append(memory, r)
		r = on(fmt.Sprint("n", no), service, no)
		r.Remedy, r.AllowedCPUs = "pin", new(int32(5)) // three of them to a host
		pinned = append(pinned, r)
	}
	for _, rows := range [][]demand.Row{memory, pinned} {
		d, err := planned(t, -1, rows...)
		if err != nil || d.Hosts != 2 || d.LowerBound != 2 || len(d.Stay) != 0 {
			t.Errorf("%+v, %v", d, err)
		}
	}
}

// Secondaries are those with that remedy, and those that are named; they fill what pinned containers leave idle.
func TestPlanOfSecondaries(t *testing.T) {
	pinned := on("a", "web", 1)
	pinned.Remedy, pinned.AllowedCPUs = "pin", new(int32(16)) // the whole host, of which it uses a third of a CPU
	batch, report := on("b", "batch", 2), on("c", "report", 3)
	batch.Remedy = "secondary"
	dir := t.TempDir()
	if err := store.Write(dir, []demand.Row{pinned, batch, report}); err != nil {
		t.Fatal(err)
	}
	for named, want := range map[string][2]int{"report/app": {2, 1}, "": {1, 2}} {
		d, err := MakePlan(t.Context(), opened(t, 0), Options{Files: filesIn(t, dir), Now: noon.Add(time.Hour)},
			PlanOptions{Options: packing.Options{Risk: 0.001, Moves: -1},
				Secondary: func(service string) bool { return service == named }, Clock: time.Now})
		if err != nil || d.Secondaries != want[0] || d.Hosts != want[1] || d.Over != 0 {
			t.Errorf("%q: %+v, %v", named, d, err)
		}
	}
}

// Rows of older programs do not tell what a host has.
func TestNoHosts(t *testing.T) {
	_, err := planned(t, -1, rowOf("cart", 0, noon, 4, 4), rowOf("cart", 1, noon, 4, 4))
	if none := new(NoHosts); !errors.As(err, &none) || none.Hosts != 2 {
		t.Errorf("%v", err)
	}
}
