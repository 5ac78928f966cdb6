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

// autoscaled are rows of a service on four hosts of which two ended 18 hours before the others: one container on each,
// with 8 CPUs.
func autoscaled() (rows []demand.Row) {
	for no := range 4 {
		at := noon.Add(-18 * time.Hour)
		wide := int32(5)
		if no < 2 {
			at, wide = noon, 2
		}
		for slot := range 3 {
			r := rowOf("cart", no, at.Add(time.Duration(slot)*demand.SlotLength), 8, wide)
			r.Node, r.HostCPUs, r.HostMemoryBytes, r.MemoryBytes = fmt.Sprint("n", no), new(int32(16)),
				new(int64(64<<30)), new(int64(1<<30))
			rows = append(rows, r)
		}
	}
	return rows
}

var goneHosts = []view.Gone{
	{Host: "eu1/n2", Until: noon.Add(-18*time.Hour + 15*time.Minute), Containers: 1},
	{Host: "eu1/n3", Until: noon.Add(-18*time.Hour + 15*time.Minute), Containers: 1},
}

// Hosts that ended are told, and what ran on them does not run now; what it needed counts.
func TestGoneHosts(t *testing.T) {
	d, _ := written(t, autoscaled()...)
	s := serviceOf(t, d, "cart/app")
	if d.Containers != 2 || d.Hosts != 2 || s.Containers != 2 || s.Hosts != 2 || !d.Until.Equal(noon.Add(15*time.Minute)) {
		t.Errorf("%d containers on %d hosts until %v, %+v", d.Containers, d.Hosts, d.Until, s)
	}
	near(t, "now", &d.Ledger.CoresNow, 16)
	near(t, "the service's", s.CoresNow, 16)
	near(t, "what the widest needed", s.LimitHigh, 5)
	if d.Input.HostsGone != 2 || d.Input.ContainersGone != 2 || !slices.Equal(d.Input.Gone, goneHosts) {
		t.Errorf("gone: %+v", d.Input)
	}
}

// A host that ended has no room in a plan, and its containers are not placed.
func TestPlanWithoutGoneHosts(t *testing.T) {
	d, err := planned(t, -1, autoscaled()...)
	if err != nil || d.Containers != 2 || d.HostsNow != 2 || d.Hosts != 1 || len(d.Emptied) != 1 || d.Over != 0 {
		t.Errorf("%+v, %v", d, err)
	}
	if d.Input.HostsGone != 2 || d.Input.ContainersGone != 2 || !slices.Equal(d.Input.Gone, goneHosts) {
		t.Errorf("gone: %+v", d.Input)
	}
	// A DaemonSet has a container on each of the hosts that run, and needs none on those that ended.
	rows := autoscaled()
	for no, node := range []string{"n0", "n1", "n4"} {
		r := on(node, "log", 10+no)
		r.Start, r.Began = noon.Add(2*demand.SlotLength), noon.Add(2*demand.SlotLength)
		rows = append(rows, r)
	}
	if d, err = planned(t, -1, rows...); err != nil || !slices.Contains(d.Stay, view.Stay{Reason: onEachHost, Containers: 3}) {
		t.Errorf("%+v, %v", d.Stay, err)
	}
}

// Up to 15 minutes a host may be late, as where its rows come by another copy than the others'.
func TestLateHosts(t *testing.T) {
	for late, gone := range map[time.Duration]int{0: 0, 5 * time.Minute: 0, 10 * time.Minute: 0, 15 * time.Minute: 1, 20 * time.Minute: 1} {
		rows := []demand.Row{rowOf("cart", 0, noon, 8, 4)}
		for at := time.Duration(0); at <= late; at += demand.SlotLength {
			rows = append(rows, rowOf("cart", 1, noon.Add(at), 8, 4))
		}
		if d, _ := written(t, rows...); d.Input.HostsGone != gone || d.Hosts != 2-gone || d.Containers != 2-gone {
			t.Errorf("%v late: %d hosts, %+v", late, d.Hosts, d.Input)
		}
	}
}

// What runs is counted at one moment, of which all hosts tell: not what ended before it, such as Jobs, and not what came
// after it, such as the pods of a host that ended.
func TestWhatRunsIsOfOneMoment(t *testing.T) {
	part := func(node, pod string, slot int, from, to float64) demand.Row {
		at := noon.Add(time.Duration(slot) * demand.SlotLength)
		return demand.Row{Schema: demand.SchemaVersion, Start: at, Began: at.Add(time.Duration(from) * time.Second), Seconds: to - from,
			Samples: 1, Node: node, Pod: pod, Service: "job", OwnLimitCPUs: new(8.0)}
	}
	rows := []demand.Row{part("n1", "ended", 0, 0, 230), part("n2", "ended-too", 0, 0, 236),
		part("n1", "ends", 0, 0, 260), part("n2", "moves", 0, 0, 300), part("n1", "moves-to", 1, 20, 300),
		part("n1", "runs", 0, 0, 200), part("n1", "runs", 1, 10, 300), // an agent that was started again
		part("n3", "comes", 1, 60, 300), part("n1", "gap", 0, 0, 299), part("n1", "gap", 1, 0, 300)}
	d, _ := written(t, rows...)
	if !d.Now.Equal(noon.Add(4*time.Minute)) || d.Containers != 4 || d.Hosts != 2 || d.Input.HostsGone != 0 {
		t.Errorf("%d containers on %d hosts at %v, %+v", d.Containers, d.Hosts, d.Now, d.Input)
	}
	// A recording of a few seconds has a middle.
	d, _ = written(t, part("n1", "a", 0, 0, 20), part("n2", "b", 0, 1, 20), part("n2", "short", 0, 1, 5))
	if d.Containers != 2 || d.Hosts != 2 {
		t.Errorf("%d containers on %d hosts at %v", d.Containers, d.Hosts, d.Now)
	}
}

// In a small fleet too most hosts say what time it is. Where as many say one thing as say another, the other is told.
func TestOneClockOfFew(t *testing.T) {
	rows := func(hosts, ahead int) (rows []demand.Row) {
		for no := range hosts + ahead {
			for slot := range 3 {
				at := noon.Add(time.Duration(slot) * demand.SlotLength)
				if no >= hosts {
					at = at.Add(24 * time.Hour)
				}
				r := rowOf("cart", no, at, 8, 4)
				r.Node = fmt.Sprint("n", no)
				rows = append(rows, r)
			}
		}
		return rows
	}
	later := func(rows []demand.Row, until time.Time) view.Document {
		dir := t.TempDir()
		if err := store.Write(dir, rows); err != nil {
			t.Fatal(err)
		}
		d, err := Make(t.Context(), opened(t, 0), Options{Files: filesIn(t, dir), Now: noon.AddDate(1, 0, 0), Until: until, Bound: 0.001})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	end := noon.Add(15 * time.Minute)
	for ahead, hosts := range map[int]int{1: 2, 2: 5} {
		d := later(rows(hosts, ahead), time.Time{})
		if d.Hosts != hosts+ahead || d.Containers != hosts+ahead || !d.Until.Equal(end) ||
			len(d.Input.Ahead) != ahead || d.Input.Most != nil {
			t.Errorf("%d of %d: %d hosts until %v, %+v", ahead, hosts, d.Hosts, d.Until, d.Input)
		}
	}
	few := rows(3, 2)
	d := later(few, time.Time{})
	if d.Hosts != 2 || d.Input.HostsGone != 3 || d.Input.Most == nil || *d.Input.Most != (view.Most{Hosts: 3, Until: end}) {
		t.Errorf("few: %d hosts until %v, %+v", d.Hosts, d.Until, d.Input)
	}
	if d = later(few, d.Input.Most.Until); d.Hosts != 3 || !d.Until.Equal(end) || d.Input.HostsGone != 0 {
		t.Errorf("as of then: %d hosts until %v, %+v", d.Hosts, d.Until, d.Input)
	}
	// Nodes that were taken away by night: who asks for the morning gets the few that are left.
	if d = later(rows(9, 2), end.Add(24*time.Hour)); d.Hosts != 2 || d.Input.HostsGone != 9 {
		t.Errorf("the morning: %d hosts until %v, %+v", d.Hosts, d.Until, d.Input)
	}
}

// A clock that is ahead does not make all other hosts gone, and one that is behind is told. A report of old rows is as
// of their end.
func TestNowByClocksApart(t *testing.T) {
	report := func(now time.Time, rows ...demand.Row) view.Document {
		dir := t.TempDir()
		if err := store.Write(dir, rows); err != nil {
			t.Fatal(err)
		}
		d, err := Make(t.Context(), opened(t, 0), Options{Files: filesIn(t, dir), Now: now, Bound: 0.001})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	a, b := rowOf("cart", 0, noon, 8, 4), rowOf("cart", 1, noon.Add(24*time.Hour), 8, 4)
	if d := report(noon.Add(5*time.Minute), a, b); d.Hosts != 2 || d.Containers != 2 || d.Input.HostsGone != 0 ||
		len(d.Input.Ahead) != 1 || !d.Until.Equal(noon.Add(5*time.Minute)) {
		t.Errorf("a clock a day ahead: %d hosts until %v, %+v", d.Hosts, d.Until, d.Input)
	}
	if d := report(noon.Add(-time.Hour), a); d.Hosts != 1 || d.Input.HostsGone != 0 || len(d.Input.Ahead) != 1 ||
		!d.Until.Equal(noon.Add(5*time.Minute)) {
		t.Errorf("all clocks ahead: %d hosts until %v, %+v", d.Hosts, d.Until, d.Input)
	}
	if d := report(noon.AddDate(1, 0, 0), a); d.Hosts != 1 || d.Containers != 1 || d.Input.HostsGone != 0 {
		t.Errorf("rows of last year: %d hosts, %+v", d.Hosts, d.Input)
	}
	if d := report(noon.AddDate(1, 0, 0), a, b); d.Hosts != 1 ||
		!slices.Equal(d.Input.Gone, []view.Gone{{Host: "eu1/n0", Until: noon.Add(5 * time.Minute), Containers: 1}}) {
		t.Errorf("a clock a day behind: %d hosts, %+v", d.Hosts, d.Input)
	}
}

// Few hosts whose rows go on for long after those of most ended at once do not say when now is, whatever the report's
// own time.
func TestNowIsMostHosts(t *testing.T) {
	var rows []demand.Row
	for no := range 11 {
		r := rowOf("cart", no, noon, 8, 4)
		if r.Node = fmt.Sprint("n", no); no == 10 {
			r.Start, r.Began = noon.Add(time.Hour), noon.Add(time.Hour)
		}
		rows = append(rows, r)
	}
	d, _ := written(t, rows...)
	if d.Hosts != 11 || d.Containers != 11 || d.Input.HostsGone != 0 || !d.Until.Equal(noon.Add(5*time.Minute)) ||
		!slices.Equal(d.Input.Ahead, []view.Ahead{{Host: "eu1/n10", Seconds: 3600}}) {
		t.Errorf("%d hosts until %v, %+v", d.Hosts, d.Until, d.Input)
	}
	// Two of ten are enough.
	d, _ = written(t, append(rows[2:], func() demand.Row {
		r := rows[10]
		r.Node, r.Pod = "n11", "cart-11"
		return r
	}())...)
	if d.Hosts != 2 || d.Input.HostsGone != 8 || len(d.Input.Ahead) != 0 {
		t.Errorf("%d hosts, %+v", d.Hosts, d.Input)
	}
}

// A report as of a moment is that of the rows of until then.
func TestUntil(t *testing.T) {
	dir := t.TempDir()
	if err := store.Write(dir, autoscaled()); err != nil {
		t.Fatal(err)
	}
	until := noon.Add(-18*time.Hour + 12*time.Minute) // within the third slot, which is not over then
	o := Options{Files: filesIn(t, dir), Now: noon.Add(time.Hour), Until: until, Bound: 0.001}
	d, err := Make(t.Context(), opened(t, 0), o)
	if err != nil || d.Containers != 2 || d.Hosts != 2 || d.Input.HostsGone != 0 || d.Input.Later != 8 || d.Input.Copies != 0 ||
		!d.Until.Equal(noon.Add(-18*time.Hour+10*time.Minute)) {
		t.Errorf("%d containers on %d hosts until %v, %+v, %v", d.Containers, d.Hosts, d.Until, d.Input, err)
	}
	near(t, "what was wide then", serviceOf(t, d, "cart/app").LimitHigh, 5)
	may := PlanOptions{Options: packing.Options{Risk: 0.001, Moves: -1}, Clock: time.Now}
	p, err := MakePlan(t.Context(), opened(t, 0), o, may)
	if err != nil || p.Containers != 2 || p.Input.Later != 8 {
		t.Errorf("%+v, %v", p, err)
	}
	o.Until = noon.Add(-48 * time.Hour)
	if none := new(NoRows); !errors.As(second(Make(t.Context(), opened(t, 0), o)), &none) || none.Input.Later != 12 {
		t.Errorf("%+v", none)
	}
}

func second(_ view.Document, err error) error { return err }

// The list of what is gone is bounded; the counts are not.
func TestManyGone(t *testing.T) {
	rows := []demand.Row{rowOf("cart", 0, noon, 8, 4)}
	for no := range maxListed + 5 {
		r := rowOf("cart", 100+no, noon.Add(-time.Duration(1+no)*time.Hour), 8, 4)
		r.Node = fmt.Sprint("old", no)
		rows = append(rows, r)
	}
	d, _ := written(t, rows...)
	if d.Input.HostsGone != maxListed+5 || d.Input.ContainersGone != maxListed+5 || len(d.Input.Gone) != maxListed ||
		d.Hosts != 1 || d.Containers != 1 {
		t.Errorf("%+v", d.Input)
	}
}
