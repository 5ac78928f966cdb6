package report

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/fleet/duckdb"
	"github.com/unthrottle/unthrottle/internal/demand"
	"github.com/unthrottle/unthrottle/internal/demand/store"
	view "github.com/unthrottle/unthrottle/internal/ui/report/fleet"
)

var noon = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

// rowOf is a row of five minutes: 100 s at one CPU, 1 s at wide CPUs, the rest idle; never stopped.
func rowOf(service string, no int, at time.Time, limit float64, wide int32) demand.Row {
	levels := []demand.Level{{CPUs: 0, Microseconds: 199_000_000}, {CPUs: 1, Microseconds: 100_000_000},
		{CPUs: wide, Microseconds: 1_000_000}}
	r := demand.Row{
		Schema: demand.SchemaVersion, Start: at, Began: at, Seconds: 300, Samples: 300, Cluster: "eu1",
		Node: fmt.Sprintf("n%d", no%2), Namespace: "shop",
		Pod: fmt.Sprintf("%s-%d", service, no), Container: "app", Service: service + "/app", Runtime: "containerd",
		Cgroup:    int64(1000 + no),
		LimitCPUs: new(limit), LimitScope: "own", OwnLimitCPUs: new(limit), AllowedCPUs: new(int32(64)),
		UsedCPUSeconds: new(100 + float64(wide)), WantedCPUSeconds: new(100 + float64(wide)),
		StoppedLowSeconds: new(0.0), StoppedHighSeconds: new(0.0),
		StoppedIntervals: new(int64(0)), ThrottledOwnSeconds: new(0.0), ThrottledPodSeconds: new(0.0),
		ThrottledSliceSeconds: new(0.0), ThrottledInsideSeconds: new(0.0),
		Periods: new(int64(3000)), ThrottledPeriods: new(int64(0)), WidthMax: new(wide), Width: levels, Wanted: levels,
	}
	return r
}

// part is a row of a part of the five minutes.
func part(r demand.Row, from, seconds int64) demand.Row {
	r.Began, r.Seconds, r.Samples = r.Start.Add(time.Duration(from)*time.Second), float64(seconds), int32(seconds)
	shorter := func(v *float64) *float64 { return new(*v * float64(seconds) / 300) }
	r.UsedCPUSeconds, r.WantedCPUSeconds = shorter(r.UsedCPUSeconds), shorter(r.WantedCPUSeconds)
	for _, levels := range []*[]demand.Level{&r.Width, &r.Wanted} {
		*levels = slices.Clone(*levels)
		for i := range *levels {
			(*levels)[i].Microseconds = (*levels)[i].Microseconds * seconds / 300
		}
	}
	return r
}

// filesIn are the files below a folder, in a fixed order.
func filesIn(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*", "*", "*", "*.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(files)
	return files
}

// opened is a database for this test that reads so many files at once; 0: as many as usual.
func opened(t *testing.T, batch int) *duckdb.DB {
	t.Helper()
	db, err := duckdb.Open(t.Context(), t.TempDir(), 512)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	db.Batch = batch
	return db
}

// asked makes the report of what is below a folder.
func asked(t *testing.T, dir string, batch int) (view.Document, error) {
	t.Helper()
	return Make(t.Context(), opened(t, batch), Options{Files: filesIn(t, dir), Now: noon.Add(time.Hour), Bound: 0.001})
}

// written writes rows and makes their report.
func written(t *testing.T, rows ...demand.Row) (view.Document, string) {
	t.Helper()
	dir := t.TempDir()
	if err := store.Write(dir, rows); err != nil {
		t.Fatal(err)
	}
	d, err := asked(t, dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	return d, dir
}

func serviceOf(t *testing.T, d view.Document, name string) view.Service {
	t.Helper()
	for _, s := range d.Services {
		if s.Name == name {
			return s
		}
	}
	t.Fatalf("no service %s in %+v", name, d.Services)
	return view.Service{}
}

func near(t *testing.T, what string, got *float64, want float64) {
	t.Helper()
	if got == nil || math.Abs(*got-want) > 1e-5 {
		t.Errorf("%s: %s, want %v", what, shown(got), want)
	}
}

func shown(v *float64) string {
	if v == nil {
		return "null"
	}
	return fmt.Sprint(*v)
}

func missing(t *testing.T, what string, got *float64) {
	t.Helper()
	if got != nil {
		t.Errorf("%s: %v, want null", what, *got)
	}
}

// A level at which no time was spent, as another program may write it, is no time to divide by.
func TestALevelOfNoTime(t *testing.T) {
	r := rowOf("cart", 0, noon, 8, 4)
	r.Wanted = []demand.Level{{CPUs: 0, Microseconds: 300_000_000}, {CPUs: 2, Microseconds: 0}}
	d, _ := written(t, r)
	missing(t, "runnable threads per core", serviceOf(t, d, "cart/app").RunnablePerCore)
}

// A service of which all is known: its figures are those of the rows by hand.
func TestLedger(t *testing.T) {
	var rows []demand.Row
	for slot := range 3 {
		for no := range 4 {
			rows = append(rows, rowOf("cart", no, noon.Add(time.Duration(slot)*demand.SlotLength), 8, 4))
		}
	}
	d, _ := written(t, rows...)
	if d.Containers != 4 || d.Hosts != 2 || d.Input.Rows != 12 || !d.From.Equal(noon) || !d.Until.Equal(noon.Add(15*time.Minute)) {
		t.Errorf("%+v", d)
	}
	s := serviceOf(t, d, "cart/app")
	near(t, "now", s.CoresNow, 32)
	// 303 s at one CPU and 3 s at 4: stopped for 3*(4/L-1), at most 1/999 of 303 s. 4/(1+0.1011...) is 3.63; mean 104/300.
	near(t, "limit", s.Limit, 3.7)
	near(t, "low", s.LimitLow, 104.0/300)
	near(t, "high", s.LimitHigh, 4)
	near(t, "after", s.CoresAfter, 4*3.7)
	near(t, "after, low", s.CoresAfterLow, 4*0.4)
	near(t, "after, high", s.CoresAfterHigh, 16)
	near(t, "runnable per core", s.RunnablePerCore, (100+4)/101.0/8)
	near(t, "stopped", s.StoppedShare, 0)
	near(t, "used", s.UsedCPUs, 104.0/300)
	if s.Remedy == nil || *s.Remedy != view.Lower || s.Containers != 4 || s.Hosts != 2 || s.SpentBy != nil || s.Unknown != 0 {
		t.Errorf("%+v", s)
	}
	l := d.Ledger
	near(t, "ledger now", &l.CoresNow, 32)
	near(t, "ledger after", &l.CoresAfter, 14.8)
	near(t, "saved", &l.Saved, 17.2)
	near(t, "saved, low", &l.SavedLow, 16)
	near(t, "saved, high", &l.SavedHigh, 32-1.6)
	if !(l.Rounding > 0 && l.Rounding < 0.4) || l.Fragmentation == nil || *l.Fragmentation != 0 || l.Failover != nil ||
		len(d.Unknown) != 0 {
		t.Errorf("%+v, %+v", l, d.Unknown)
	}
}

// The limit of a service is what its widest container needs, and none gets more than it has.
func TestWidestContainerDecides(t *testing.T) {
	d, _ := written(t, rowOf("cart", 0, noon, 8, 2), rowOf("cart", 1, noon, 8, 6), rowOf("cart", 2, noon, 1.5, 2))
	s := serviceOf(t, d, "cart/app")
	near(t, "high", s.LimitHigh, 6)
	near(t, "after", s.CoresAfter, 2**s.Limit+1.5)
	if *s.Limit <= 5 || *s.Limit > 6 {
		t.Errorf("limit %v", *s.Limit)
	}
}

// What rows do not tell is not known: such containers keep what they have, and are counted by their reason.
func TestUnknown(t *testing.T) {
	change := func(no int, of func(r *demand.Row)) demand.Row {
		r := rowOf(fmt.Sprintf("s%d", no), no, noon, 4, 2)
		of(&r)
		return r
	}
	d, _ := written(t,
		change(1, func(r *demand.Row) { r.LimitCPUs, r.OwnLimitCPUs, r.LimitScope = nil, nil, "" }),
		change(2, func(r *demand.Row) { r.LimitCPUs, r.OwnLimitCPUs, r.RequestCPUs = nil, nil, new(2.5) }),
		change(3, func(r *demand.Row) { r.LimitCPUs, r.LimitScope = new(3.0), "pod" }),
		change(4, func(r *demand.Row) { r.Remedy = "narrow" }),
		change(5, func(r *demand.Row) {
			r.Width, r.Wanted, r.WantedCPUSeconds, r.WidthMax, r.StoppedLowSeconds, r.StoppedHighSeconds = nil, nil, nil, nil, nil, nil
		}),
		change(6, func(r *demand.Row) { *r = part(*r, 100, 200) }),
		change(9, func(r *demand.Row) { // as `fleet import` makes it
			r.Width, r.Wanted, r.WantedCPUSeconds, r.WidthMax, r.StoppedLowSeconds, r.StoppedHighSeconds = nil, nil, nil, nil, nil, nil
			r.Samples = 1
		}),
		change(7, func(r *demand.Row) {
			r.Wanted = []demand.Level{{CPUs: 0, Microseconds: 299_900_000}, {CPUs: 1, Microseconds: 100_000}}
		}),
		rowOf("known", 8, noon, 4, 2),
	)
	var got []string
	for _, u := range d.Unknown {
		got = append(got, fmt.Sprintf("%d %v %s", u.Containers, u.Cores, u.Reason))
	}
	slices.Sort(got)
	want := []string{"1 0 " + noCores, "1 2.5 " + noLimit, "1 4 " + otherLimit, "1 4 " + capped, "1 4 " + notMeasured,
		"1 4 " + ofCounters, "1 4 " + tooShort, "1 4 " + idle}
	if slices.Sort(want); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	near(t, "now", &d.Ledger.CoresNow, 2.5+7*4)
	near(t, "all savings are the known one's", &d.Ledger.Saved, 4-*serviceOf(t, d, "known/app").CoresAfter)
	if s := serviceOf(t, d, "s5/app"); s.CoresAfter != nil || s.Remedy != nil || s.StoppedShare != nil ||
		s.RunnablePerCore != nil || s.Unknown != 1 {
		t.Errorf("not measured: %+v", s)
	}
	missing(t, "cores of what has no limit", serviceOf(t, d, "s1/app").CoresNow)
}

// A container that came a moment ago needs what the others of its service do. Where there are none it keeps what it has
// and is told as such.
func TestYoungContainers(t *testing.T) {
	d, _ := written(t, rowOf("cart", 0, noon, 8, 4), rowOf("cart", 1, noon, 8, 4),
		part(rowOf("cart", 2, noon, 8, 4), 230, 70), part(rowOf("new", 3, noon, 8, 4), 230, 70))
	s := serviceOf(t, d, "cart/app")
	if s.Containers != 3 || s.Unknown != 0 || s.Young != 0 || s.Half == nil || s.Double == nil ||
		s.Half.Containers != 2 || s.Double.Containers != 6 {
		t.Errorf("%+v", s)
	}
	near(t, "limit", s.Limit, 3.7)
	near(t, "after", s.CoresAfter, 3*3.7)
	if s := serviceOf(t, d, "new/app"); s.Unknown != 1 || s.Young != 1 || s.Limit != nil || s.Half != nil {
		t.Errorf("%+v", s)
	}
}

// How unlike hosts are is of the limit that most of them have, and of hosts that were observed for long enough.
func TestSpread(t *testing.T) {
	var rows []demand.Row
	add := func(no int, limit, stopped float64, slots int) {
		for slot := range slots {
			r := rowOf("cart", no, noon.Add(time.Duration(slot)*demand.SlotLength), limit, 4)
			r.Node, r.StoppedHighSeconds = fmt.Sprint("n", no), &stopped
			r.WaitingQuotaSeconds, r.WaitingAncestorSeconds, r.WaitingUnclearSeconds = new(0.0), new(0.0), new(0.0)
			r.WaitingContentionSeconds = new(10.4 * float64(no%3))
			rows = append(rows, r)
		}
	}
	for no, stopped := range []float64{0, 90, 3, 6} {
		add(no, 8, stopped, 4)
	}
	add(4, 8, 300, 1) // for too short a time
	for no := 10; no < 13; no++ {
		add(no, 4, 150, 4)
	}
	d, _ := written(t, rows...)
	s := serviceOf(t, d, "cart/app").OverHosts
	if s == nil || s.Hosts != 4 || s.Stopped == nil || *s.Stopped != (view.Range{Of: 4, Median: 0.02, Most: 0.3, MostOn: "eu1/n1"}) ||
		s.Contended == nil || *s.Contended != (view.Range{Of: 4, Median: 0.1, Most: 0.2, MostOn: "eu1/n2"}) || s.RequestP99 != nil {
		t.Errorf("%+v", s)
	}
	rows[0].StoppedHighSeconds, rows[0].StoppedLowSeconds = nil, nil // of a quarter of its time
	rows[4].WaitingContentionSeconds = nil
	d, _ = written(t, rows...)
	if s = serviceOf(t, d, "cart/app").OverHosts; s == nil || s.Hosts != 4 || s.Stopped == nil || s.Contended == nil {
		t.Errorf("%+v", s)
	}
	if d, _ = written(t, rows[:8]...); serviceOf(t, d, "cart/app").OverHosts != nil {
		t.Error("of two hosts")
	}
}

// How unlike shards are is of containers, and of those that took each other's place together. The p99 of requests is of hosts
// and shards with enough of them, where these are at least half.
func TestSpreadOfShards(t *testing.T) {
	var rows []demand.Row
	add := func(no, slot int, node string, stopped float64, requests int32, us int64) {
		r := rowOf("cart", no, noon.Add(time.Duration(slot)*demand.SlotLength), 8, 4)
		r.Node, r.Pod, r.StoppedHighSeconds = node, fmt.Sprintf("cart-7d9c5b8f6-bbbb%c", 'b'+no), &stopped
		if requests > 0 {
			r.RecordedSeconds, r.RequestCount = new(10.0), new(int64(requests))
			r.Requests = []demand.Request{{Microseconds: 1000, Count: requests - 5}, {Microseconds: us, Count: 5}}
		}
		rows = append(rows, r)
	}
	for slot := range 4 {
		add(0, slot, "n0", 30, 10, 20_000)
		add(1, slot, "n1", 0, 30, 40_000)
		add(2, slot, "n2", 0, 30, 10_000)
		add(3, slot, "n0", 0, 10, 80_000)
		add(4+slot/2, slot, "n3", 15*float64(slot/2), 0, 0) // one follows another
	}
	add(6, 0, "n4", 300, 30, 500_000) // for too short a time
	d, _ := written(t, rows...)
	s := serviceOf(t, d, "cart/app")
	if o := s.OverShards; o == nil || o.Shards != 5 || o.Hosts != 4 ||
		*o.Stopped != (view.Range{Of: 5, Most: 0.1, MostOn: "eu1/n0/cart-7d9c5b8f6-bbbbb"}) ||
		*o.RequestP99 != (view.Range{Of: 4, Least: 10, Median: 40, Most: 80, MostOn: "eu1/n0/cart-7d9c5b8f6-bbbbe"}) {
		t.Errorf("%+v", o)
	}
	if o := s.OverHosts; o == nil || o.Hosts != 4 || o.Shards != 5 ||
		*o.Stopped != (view.Range{Of: 4, Median: 0.025, Most: 0.05, MostOn: "eu1/n0"}) ||
		*o.RequestP99 != (view.Range{Of: 3, Least: 10, Median: 40, Most: 80, MostOn: "eu1/n0"}) {
		t.Errorf("%+v", o)
	}
	if *s.Requests != 350 || *s.RequestP99 != 500 {
		t.Errorf("%d requests, p99 %v", *s.Requests, *s.RequestP99)
	}
	for i := range rows {
		if rows[i].Node != "n1" { // of two in five nothing is known
			rows[i].RecordedSeconds, rows[i].RequestCount, rows[i].Requests = nil, nil, nil
		}
	}
	d, _ = written(t, rows...)
	if s = serviceOf(t, d, "cart/app"); s.OverHosts.RequestP99 != nil || s.OverShards.RequestP99 != nil || s.OverShards.Stopped == nil {
		t.Errorf("%+v, %+v", s.OverHosts, s.OverShards)
	}
}

// Stopped by its own quota, by its pod's, which a sidecar spends, and by one further up.
func TestWhoSpends(t *testing.T) {
	stopped := func(r demand.Row, seconds float64) demand.Row {
		r.StoppedLowSeconds, r.StoppedHighSeconds, r.ThrottledOwnSeconds = new(seconds), new(seconds), new(seconds)
		return r
	}
	own := stopped(rowOf("own", 0, noon, 2, 8), 30)
	app := stopped(rowOf("app", 1, noon, 2, 8), 15)
	app.ThrottledOwnSeconds, app.ThrottledPodSeconds = new(1.0), new(14.0)
	sidecar := rowOf("proxy", 1, noon, 2, 4)
	sidecar.Pod, sidecar.Container, sidecar.Cgroup, sidecar.UsedCPUSeconds = app.Pod, "proxy", 77, new(250.0)
	slice := stopped(rowOf("slice", 2, noon, 2, 8), 3)
	slice.ThrottledOwnSeconds, slice.ThrottledSliceSeconds = new(0.0), new(3.0)
	d, _ := written(t, own, app, sidecar, slice)
	for name, want := range map[string][2]string{"own/app": {"own", "own/app"}, "app/app": {"pod", "proxy/app"},
		"slice/app": {"slice", ""}, "proxy/app": {"", ""}} {
		s, by, spent := serviceOf(t, d, name), "", ""
		if s.StoppedBy != nil {
			by = *s.StoppedBy
		}
		if s.SpentBy != nil {
			spent = *s.SpentBy
		}
		if by != want[0] || spent != want[1] {
			t.Errorf("%s: by %q, spent by %q, want %q", name, by, spent, want)
		}
	}
	near(t, "stopped", serviceOf(t, d, "own/app").StoppedShare, 0.1)
	// It is stopped already: at the same stops nothing can go, and the limit that would end them is said.
	s := serviceOf(t, d, "own/app")
	near(t, "after", s.CoresAfter, 2)
	if *s.Remedy != view.Leave || *s.Limit < 7 {
		t.Errorf("%+v", s)
	}
}

// What a remedy did is over the containers that have rows without it too. Sizes are those of the limit of now.
func TestApplied(t *testing.T) {
	before, after := rowOf("cart", 0, noon, 2, 8), rowOf("cart", 0, noon.Add(demand.SlotLength), 3, 8)
	before.StoppedLowSeconds, before.StoppedHighSeconds, before.ThrottledOwnSeconds = new(30.0), new(30.0), new(60.0)
	after.Remedy = "raise"
	only := rowOf("mail", 1, noon, 2, 2)
	only.Remedy = "burst"
	d, _ := written(t, before, after, only)
	if len(d.Applied) != 1 || d.Applied[0].Remedy != "raise" || d.Applied[0].Containers != 1 {
		t.Fatalf("%+v", d.Applied)
	}
	a := d.Applied[0]
	near(t, "before", a.StoppedBefore, 0.1)
	near(t, "after", a.StoppedAfter, 0)
	near(t, "cores before", a.CoresBefore, 2)
	near(t, "cores after", a.CoresAfter, 3)
	missing(t, "forecast", a.StoppedForecast)
	near(t, "now", serviceOf(t, d, "cart/app").CoresNow, 3)
}

// A container that hardly works since tells nothing of its remedy: its stops ended with its work.
func TestAppliedOfLessWork(t *testing.T) {
	before, after := rowOf("cart", 0, noon, 2, 8), rowOf("cart", 0, noon.Add(demand.SlotLength), 2, 8)
	before.StoppedLowSeconds, before.StoppedHighSeconds, before.ThrottledOwnSeconds = new(30.0), new(30.0), new(60.0)
	after.Remedy = "burst"
	before.UsedCPUSeconds, after.UsedCPUSeconds = new(300.0), new(3.0)
	d, _ := written(t, before, after)
	if len(d.Applied) != 1 || d.Applied[0].Containers != 0 || d.Applied[0].DoLess != 1 {
		t.Fatalf("%+v", d.Applied)
	}
	missing(t, "before", d.Applied[0].StoppedBefore)
	missing(t, "after", d.Applied[0].StoppedAfter)
}

// Before a remedy is until it came into force: rows after its end are none of it, and neither is that of the slot in
// which a container ended, which may not tell the remedy. What was before another remedy is before the second one too.
func TestBeforeARemedyIsUntilItCame(t *testing.T) {
	row := func(slot int, remedy string, stopped float64) demand.Row {
		r := withCandidates(rowOf("cart", 0, noon.Add(time.Duration(slot)*demand.SlotLength), 1, 8))
		r.Remedy, r.StoppedLowSeconds, r.StoppedHighSeconds, r.ThrottledOwnSeconds = remedy, new(stopped), new(stopped), new(stopped)
		return r
	}
	odd := row(4, "", 150)
	for i := range odd.Candidates {
		odd.Candidates[i].StoppedMicroseconds *= 20
		odd.Candidates[i].BurstStoppedMicroseconds *= 20
	}
	d, _ := written(t, row(0, "", 30), row(1, "raise", 3), row(2, "", 60), row(3, "burst", 0), odd)
	got := map[string]view.Applied{}
	for _, a := range d.Applied {
		got[a.Remedy] = a
	}
	if len(got) != 2 || got["raise"].Containers != 1 || got["burst"].Containers != 1 {
		t.Fatalf("%+v", d.Applied)
	}
	near(t, "before the raise", got["raise"].StoppedBefore, 0.1)
	near(t, "with it", got["raise"].StoppedAfter, 0.01)
	near(t, "forecast of it", got["raise"].StoppedForecast, 3.0/300)
	near(t, "before the burst", got["burst"].StoppedBefore, 90.0/600)
	near(t, "forecast of it", got["burst"].StoppedForecast, 0.03/300)
	// Only rows after it: there is nothing to compare with.
	if d, _ := written(t, row(0, "raise", 3), row(1, "", 30)); len(d.Applied) != 0 {
		t.Errorf("%+v", d.Applied)
	}
}

// The periods before a remedy foretell it, if those of all its containers do, and for remedies that rows can tell of.
func TestAppliedAsForetold(t *testing.T) {
	pair := func(service string, no int, remedy string, limit float64, periods bool) []demand.Row {
		before, after := rowOf(service, no, noon, 1, 8), rowOf(service, no, noon.Add(demand.SlotLength), limit, 8)
		if periods {
			before = withCandidates(before)
		}
		after.Remedy = remedy
		return []demand.Row{before, after}
	}
	d, _ := written(t, slices.Concat(pair("a", 0, "raise", 2, true), pair("b", 1, "raise", 1, true),
		pair("c", 2, "burst", 1, true), pair("d", 3, "pin", 1, true),
		pair("e", 4, "period", 1, true))...)
	got := map[string]*float64{}
	for _, a := range d.Applied {
		got[a.Remedy] = a.StoppedForecast
	}
	if len(got) != 4 {
		t.Errorf("%+v", d.Applied)
	}
	near(t, "raise", got["raise"], (0.03+3)/600)
	near(t, "burst", got["burst"], 0.03/300)
	missing(t, "pin", got["pin"])
	missing(t, "period", got["period"])
	d, _ = written(t, slices.Concat(pair("a", 0, "raise", 2, true), pair("b", 1, "raise", 2, false))...)
	missing(t, "of some only", d.Applied[0].StoppedForecast)
	d, _ = written(t, pair("a", 0, "raise", 0.5, true)...)
	missing(t, "a limit that does not serve", d.Applied[0].StoppedForecast)
}

// Exclusive CPUs come back whole.
func TestPinned(t *testing.T) {
	r := rowOf("db", 0, noon, 2, 3)
	r.LimitCPUs, r.OwnLimitCPUs, r.LimitScope, r.AllowedCPUs, r.Remedy = nil, nil, "", new(int32(8)), "pin"
	d, _ := written(t, r)
	s := serviceOf(t, d, "db/app")
	near(t, "now", s.CoresNow, 8)
	near(t, "after", s.CoresAfter, 3)
	if !(d.Ledger.Rounding > 0 && d.Ledger.Rounding < 1) {
		t.Errorf("rounding %v", d.Ledger.Rounding)
	}
}

// candidates are those of a row: a container that one CPU stops for 3 s and two for 30 ms; with a burst one CPU stops
// it for 30 ms.
func withCandidates(r demand.Row) demand.Row {
	r.PeriodMicroseconds, r.CandidateSeconds, r.CandidateFrom = new(int64(100_000)), new(300.0), new(int32(0))
	for i, stopped := range []int64{3_000_000, 1_000_000, 300_000, 100_000, 30_000} {
		r.Candidates = append(r.Candidates, demand.Candidate{Step: int32(i), StoppedMicroseconds: stopped,
			ThrottledPeriods: int32(stopped / 50_000), DelayMicroseconds: 0, BurstStoppedMicroseconds: stopped / 100})
	}
	return r
}

// withLong adds what a burst in a period of 300 ms and of 1 s would have done, from half a CPU on: in the first it is stopped for 3 s at
// half a CPU and for 10 ms at a CPU, in the second for 10 ms at half a CPU.
func withLong(r demand.Row) demand.Row {
	for i, stopped := range []int64{3_000_000, 1_000_000, 300_000, 100_000, 10_000} {
		r.LongBursts = append(r.LongBursts,
			demand.LongBurst{BurstPeriodMicroseconds: 300_000, Step: int32(i - 4), StoppedMicroseconds: stopped})
	}
	r.LongBursts = append(r.LongBursts, demand.LongBurst{BurstPeriodMicroseconds: 1_000_000, Step: -4, StoppedMicroseconds: 10_000})
	return r
}

// A burst is told in the period in which it needs least, where all rows tell of that period; the limit is not below what is used.
func TestBurstInALongerPeriod(t *testing.T) {
	row := func(slot int) demand.Row {
		return withCandidates(rowOf("cart", 0, noon.Add(time.Duration(slot)*demand.SlotLength), 4, 4))
	}
	d, _ := written(t, withLong(row(0)), withLong(row(1)))
	s := serviceOf(t, d, "cart/app")
	if *s.Remedy != view.Burst || s.BurstPeriodMS == nil || *s.BurstPeriodMS != 1000 {
		t.Fatalf("%+v", s)
	}
	near(t, "after", s.CoresAfter, 0.5)
	near(t, "limit with a burst", s.BurstLimit, 0.5)
	if r := d.ByRemedy[0]; r.Remedy != view.Burst || r.PeriodMS == nil || *r.PeriodMS != 1000 || r.Saved != 3.5 {
		t.Errorf("%+v", r)
	}
	// Of 1 s the second does not tell: the quota held the container back for seconds, or an older program wrote it.
	second := withLong(row(1))
	second.LongBursts = second.LongBursts[:5]
	d, _ = written(t, withLong(row(0)), second)
	if s := serviceOf(t, d, "cart/app"); *s.BurstLimit < 0.7 || s.BurstPeriodMS == nil || *s.BurstPeriodMS != 300 {
		t.Errorf("%+v", s)
	}
	d, _ = written(t, withLong(row(0)), row(1))
	if s := serviceOf(t, d, "cart/app"); *s.BurstLimit != 1 || s.BurstPeriodMS != nil || *s.Remedy != view.Burst {
		t.Errorf("%+v", s)
	}
	// Another container of the service does not tell of it.
	other := row(0)
	other.Cgroup, other.Pod = 99, "cart-7d9c5b8f6-zzzzz"
	d, _ = written(t, withLong(row(0)), other)
	if s := serviceOf(t, d, "cart/app"); s.Containers != 2 || *s.BurstLimit != 1 || s.BurstPeriodMS != nil {
		t.Errorf("%+v", s)
	}
}

// Of equal limits the shorter period is the smaller intervention; one of tenths of a CPU is none.
func TestBestPeriod(t *testing.T) {
	const short, long = 300 * time.Millisecond, time.Second
	for _, c := range []struct {
		of   bursts
		want time.Duration
	}{
		{bursts{0: exactly(1), short: exactly(1), long: exactly(1)}, 0},
		{bursts{0: exactly(1), short: exactly(0.97), long: exactly(0.91)}, 0},
		{bursts{0: exactly(1), short: exactly(0.9), long: exactly(0.9)}, short},
		{bursts{0: exactly(1), short: exactly(0.9), long: exactly(0.5)}, long},
		{bursts{0: exactly(1), short: exactly(2), long: exactly(1.5)}, 0},
	} {
		if period, limit, ok := c.of.best(); !ok || period != c.want || limit != c.of[c.want] {
			t.Errorf("%v: %v, %v", c.of, period, limit)
		}
	}
	if _, _, ok := (bursts{}).best(); ok {
		t.Error("none is known, and one is best")
	}
}

// With periods the least limit is read off what other limits would have done; a burst that saves much more is the
// remedy.
func TestPeriodsTell(t *testing.T) {
	d, _ := written(t, withCandidates(rowOf("cart", 0, noon, 4, 4)), rowOf("mail", 1, noon, 4, 4))
	s := serviceOf(t, d, "cart/app")
	// 101 s to work: between the third candidate and the fourth, by the logarithm of the share.
	third, fourth := 0.3/101.3, 0.1/101.1
	limit := math.Exp2((2 + math.Log(third/0.001)/math.Log(third/fourth)) / 4)
	near(t, "limit", s.Limit, 1.7)
	near(t, "low", s.LimitLow, limit/1.15)
	near(t, "high", s.LimitHigh, limit*1.15)
	if *s.Remedy != view.Burst || s.ByBounds != 0 {
		t.Errorf("%+v", s)
	}
	near(t, "after", s.CoresAfter, 1) // the least that serves what came
	near(t, "limit with a burst", s.BurstLimit, 1)
	if by := serviceOf(t, d, "mail/app"); by.ByBounds != 1 || by.BurstLimit != nil || *by.Remedy != view.Lower || d.ByBounds != 1 {
		t.Errorf("%+v, %d by bounds", by, d.ByBounds)
	}
	// Too little of the time is known.
	little := withCandidates(rowOf("cart", 0, noon, 4, 4))
	*little.CandidateSeconds = 250
	if d, _ := written(t, little); d.ByBounds != 1 {
		t.Errorf("%d by bounds", d.ByBounds)
	}
	// A container that is stopped as much as its limit says keeps it, without a burst.
	held := withCandidates(rowOf("cart", 0, noon, 1, 4))
	for i := range held.Candidates {
		held.Candidates[i].BurstStoppedMicroseconds = held.Candidates[i].StoppedMicroseconds
	}
	d, _ = written(t, held)
	if s := serviceOf(t, d, "cart/app"); *s.Remedy != view.Leave || *s.CoresAfter != 1 || *s.Limit != 1.7 {
		t.Errorf("%+v", s)
	}
}

// Containers that ended are not there now, and what they needed counts.
func TestEndedContainers(t *testing.T) {
	old := rowOf("cart", 0, noon, 8, 5)
	var rows []demand.Row
	for i := range 4 {
		fresh := rowOf("cart", 2, noon.Add(time.Duration(i)*demand.SlotLength), 8, 2) // on the same host
		rows = append(rows, fresh)
	}
	d, _ := written(t, append(rows, old)...)
	s := serviceOf(t, d, "cart/app")
	if d.Containers != 1 || s.Containers != 1 {
		t.Errorf("%d containers", d.Containers)
	}
	near(t, "now", s.CoresNow, 8)
	near(t, "high", s.LimitHigh, 5)
	// As in a rolling deploy: the old one ended in the five minutes in which the new one came.
	d, _ = written(t, rowOf("log", 0, noon, 2, 2), part(rowOf("cart", 2, noon, 8, 4), 0, 200),
		part(rowOf("cart", 4, noon, 8, 4), 190, 110))
	if s := serviceOf(t, d, "cart/app"); d.Containers != 2 || s.Containers != 1 {
		t.Errorf("%d containers, %+v", d.Containers, s)
	}
}

// Pods that took each other's place are one replica: an hour of its day is not judged alone, and neither is a pod that
// came beside them for the peak. StatefulSet's pods keep their name, and are judged by it.
func TestReplacedPods(t *testing.T) {
	const slots = 6
	rows := func(name func(slot int) string, wide int32) (rows []demand.Row) {
		for slot := range slots {
			wants := int32(2)
			if slot == 2 {
				wants = wide
			}
			r := rowOf("cart", 10*int(wide)+slot, noon.Add(time.Duration(slot)*demand.SlotLength), 8, wants)
			if name != nil {
				r.Pod = name(slot)
			} else {
				r.Pod, r.Node, r.Cgroup = "cart-7d9c5b8f6-bbbbb", "n1", 7
			}
			rows = append(rows, r)
		}
		return rows
	}
	limit := func(rows []demand.Row) float64 {
		d, _ := written(t, rows...)
		return *serviceOf(t, d, "cart/app").Limit
	}
	replaced := func(slot int) string { return "cart-7d9c5b8f6-bbbb" + string("bcdfgh"[slot]) }
	stays := limit(rows(nil, 6))
	peak := rowOf("cart", 99, noon.Add(2*demand.SlotLength), 8, 6)
	peak.Pod = "cart-7d9c5b8f6-zzzzz"
	if alone := limit([]demand.Row{peak}); alone <= stays {
		t.Fatalf("the peak alone needs %v, the day %v", alone, stays)
	}
	if got := limit(rows(replaced, 6)); got != stays {
		t.Errorf("pods that were replaced need %v, one that stays %v", got, stays)
	}
	// Of 8 rows two are the peak's.
	if got, alone := limit(append(rows(nil, 6), peak)), limit([]demand.Row{peak}); got < stays || got >= alone {
		t.Errorf("beside a pod of the peak %v, alone %v and %v", got, stays, alone)
	}
	named := func(no int) func(int) string { return func(int) string { return fmt.Sprint("cart-", no) } }
	if got, want := limit(slices.Concat(rows(named(0), 6), rows(named(1), 2))), stays; got != want {
		t.Errorf("a StatefulSet of which one is wide needs %v, that one %v", got, want)
	}
}
