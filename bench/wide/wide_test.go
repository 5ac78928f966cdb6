package main

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/experiment/capacity"
	"github.com/unthrottle/unthrottle/internal/kernel/procfs"
	"github.com/unthrottle/unthrottle/test/lab/require"
	"github.com/unthrottle/unthrottle/test/lab/slow"
	"github.com/unthrottle/unthrottle/test/lab/wire"
	"github.com/unthrottle/unthrottle/test/study"
)

// measuredAs gives a piece's record, as a service with its knee at a share would have it.
func measuredAs(p piece, knee float64) record {
	r := record{Piece: p, Release: "6.18.15", Calibration: slow.Result{Factor: slow.Factor(p.Machine.K), SwitchNs: 2000,
		StealShare: new(0.1), OK: true}}
	switch p.Kind {
	case point:
		// p99 doubles with each tenth of the load.
		p99 := boundMs * math.Pow(2, 10*(p.Share-knee))
		r.Point = &figures{Load: 1000 * p.Share, Met: p99 <= boundMs, Requests: 2000, P50: new(p99 / 10), P99: &p99,
			CPUUsed: new(4 * p.Share),
			Periods: new(uint64(30)), Throttled: new(uint64(3)), Latencies: []slotCount{{slotOf(p99 / 10), 1970}, {slotOf(p99), 30}}}
	case fixed:
		r.Fix = &fixFigures{Load: 1000 * p.Share, Seconds: 40, Remedy: capacity.Burst, Kept: true,
			Tries: []fixTry{{capacity.Burst, map[string]string{"burst": "200ms"}, "better", true}}}
	}
	return r
}

// knees of the fake services.
var knees = map[string]float64{capacity.Quota: 0.45, capacity.Burst: 0.85, capacity.NarrowSchedExt: 0.95,
	capacity.Pin: 0.65, capacity.Period: 0.25, capacity.Cpuset: 0.55, capacity.Pools: 0.75, longCredit: 0.95, capacity.Budget: 0.75,
	capacity.Burst1s: 0.95, capacity.Burst300: 0.85, capacity.Weight: 0.95}

// Every search ends, asks for no piece twice, and finds the knee between two loads.
func TestSearchesEnd(t *testing.T) {
	require.Unraced(t, "a search has no goroutines")
	have := &records{}
	have.File = filepath.Join(t.TempDir(), "records.jsonl.gz")
	for n := 0; ; n++ {
		pieces := missing(have)
		if len(pieces) == 0 {
			break
		}
		if n > 2000 {
			t.Fatalf("still asks for %v", pieces[0])
		}
		if have.has(pieces[0]) {
			t.Fatalf("%v again", pieces[0])
		}
		if err := have.Add(measuredAs(pieces[0], knees[pieces[0].Remedy])); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range allRemedies() {
		for repeat := 1; repeat <= 3; repeat++ {
			k, ok := have.kneeOf(small, "pools", name, repeat)
			switch want := knees[name]; {
			case !ok || k.Open:
				t.Errorf("%s, repeat %d: open: %v", name, repeat, k)
			case want > 0.9 && !k.AtLeast, want < 0.3 && !k.AtMost:
				t.Errorf("%s: %v, want one beyond the grid", name, k)
			case want > 0.3 && want < 0.9 && math.Abs(k.Share-want) > 1e-6:
				t.Errorf("%s: %v, want %g", name, k, want)
			}
		}
	}
	again, err := readRecords(have.File)
	if err != nil || len(again.All) != len(have.All) {
		t.Fatalf("%d records read, %d kept: %v", len(again.All), len(have.All), err)
	}
	if len(missing(again)) != 0 {
		t.Errorf("read again it asks for %v", missing(again))
	}
	page := markdown(again)
	for _, want := range []string{
		"`pools` (short requests beside bursts of jobs): **narrow by sched_ext** at least 2.00 (3 repeats: at least 2.00, " +
			"the grid ended at 90 %; ", "**burst of one quota** 1.89 (3 repeats: 1.89; 1.89; 1.89); ",
		"**period of 10 ms** at most 0.67", "`pools` burst 200ms",
		"narrow with credit comes to `pools` on 8 CPUs at least 2.00", "`pools` on 8 CPUs 2.22",
		"\n- 16 CPUs, `shard`, burst of one quota: 1.89 (3 repeats: ", "`pools` on 8 CPUs: no larger K was measured.",
		"it is at most half at 14 of 14 loads", "| narrow by sched_ext | 10 | ", "| 1.00 |",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q in\n%s", want, page)
		}
	}
	if strings.Contains(page, "%!") {
		t.Errorf("a verb without its value:\n%s", page)
	}
}

// The first pieces are one load of all remedies, so that the first half hour compares them all.
func TestOrderOfWorth(t *testing.T) {
	have := &records{}
	pieces := missing(have)
	var of []string
	for _, p := range pieces {
		if p.Shape != capacity.Shard || p.Share != levels[comparedLevel] {
			t.Errorf("%v is among the first", p)
		}
		of = append(of, p.Remedy)
	}
	if !slices.Equal(of, remedies) {
		t.Errorf("the first pieces are %v", of)
	}
	// A piece that failed twice, on a host that was quiet enough, is left out.
	have.failed = map[piece]int{pieces[0]: mostFailed, pieces[1]: mostFailed - 1}
	if left := missing(have); !slices.Equal(left, pieces[1:]) {
		t.Errorf("after failures: %v", left)
	}
	if page := markdown(&records{}); strings.Count(page, "not measured yet") != 5+1+2+7+9 || strings.Count(page, "Not measured yet") != 2 {
		t.Errorf("a page of nothing is\n%s", page)
	}
}

// A bound of one repeat counts as one: neither is it left out, nor is it taken for all.
func TestBoundsOfRepeats(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct {
		g      gain
		text   string
		factor float64
	}{
		{gain{[]float64{1.45, 1.58, 1.47}, []float64{1.45, 1.58, inf}, []float64{0, 0, 0.9}},
			"at least 1.47 (3 repeats: 1.45; 1.58; at least 1.47, the grid ended at 90 %)", 1.47},
		{gain{low: []float64{0, 0, 0.74}, high: []float64{0.51, 0.55, 0.74}}, "at most 0.55 (3 repeats: at most 0.51; at most 0.55; 0.74)", 0.55},
		{gain{[]float64{1.53, 1.66}, []float64{inf, inf}, []float64{0.9, 0.9}},
			"at least 1.59 (2 repeats: at least 1.53, the grid ended at 90 %; at least 1.66, the grid ended at 90 %)", 1.595},
		{gain{low: []float64{1.4, 1.3, 1.38}, high: []float64{1.4, 1.3, 1.38}}, "1.38 (3 repeats: 1.40; 1.30; 1.38)", 1.38},
		{gain{low: []float64{0}, high: []float64{inf}}, "not told by these loads (1 repeat)", 0},
	} {
		if c.g.String() != c.text || math.Abs(c.g.factor()-c.factor) > 1e-9 {
			t.Errorf("%+v: %v, %v", c.g, c.g, c.g.factor())
		}
	}
}

// A gain is a headline only where p99 of neither the quota nor the remedy moves with K.
func TestHeadlinesAreSettled(t *testing.T) {
	for _, c := range []struct {
		quotaFar, burstFar float64 // p99 at twice the K, of 44 and 10 ms
		want               int
	}{{42, 9.5, 1}, {28, 9.5, 0}, {42, 8.5, 0}, {0, 9.5, 0}} {
		have := &records{}
		add := func(p piece, p99 float64) {
			have.All = append(have.All, record{Piece: p, Point: &figures{P50: new(1.0), P99: &p99, Met: p99 <= boundMs}})
		}
		for remedy, p99 := range map[string][]float64{capacity.Quota: {44, 60}, capacity.Burst: {10, 20, 30, 60}} {
			for i, v := range p99 {
				add(pointOf(wide, capacity.Shard, remedy, comparedLevel+i, 1), v)
			}
		}
		if c.quotaFar > 0 {
			add(pointOf(slower, capacity.Shard, capacity.Quota, comparedLevel, 1), c.quotaFar)
		}
		add(pointOf(slower, capacity.Shard, capacity.Burst, comparedLevel, 1), c.burstFar)
		p := page{have: have, Gains: []gained{{wide, capacity.Shard, ""}}}
		if got := p.Headlines(); len(got) != c.want {
			t.Errorf("%+v: headlines %q", c, got)
		}
		if got := p.Unsettled(); (c.quotaFar == 42) != (len(got) == 0) {
			t.Errorf("%+v: not settled: %q", c, got)
		}
	}
}

// Every record of the tree is read by the page, and written again as it is.
func TestEachRecordIsRead(t *testing.T) {
	have, err := readRecords("records.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	have.asked = map[piece]bool{}
	text := markdown(have)
	for _, p := range have.unread() {
		t.Errorf("no page reads %v", p)
	}
	published, err := os.ReadFile("../../docs/results/wide.md")
	if err != nil {
		t.Fatal(err)
	}
	if string(published) != text {
		t.Errorf("docs/results/wide.md is out of date: make results-wide WIDE_FOR=0s; it would read\n%s", text)
	}
	raw, err := study.ReadLines[any]("records.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	for i, one := range have.All {
		again, err := json.Marshal(one)
		if err != nil {
			t.Fatal(err)
		}
		var got any
		if err := json.Unmarshal(again, &got); err != nil {
			t.Fatal(err)
		}
		if lost := lostOf("", raw.All[i], got); len(lost) > 0 {
			t.Errorf("line %d, %v: written again it lacks %v", i+1, one.Piece, lost)
		}
	}
}

// lostOf are the values of a JSON document that another one lacks.
func lostOf(path string, was, is any) (lost []string) {
	fields, ok := was.(map[string]any)
	if !ok {
		if !reflect.DeepEqual(was, is) {
			return []string{path}
		}
		return nil
	}
	now, _ := is.(map[string]any)
	for name, value := range fields {
		if value != nil {
			lost = append(lost, lostOf(path+"."+name, value, now[name])...)
		}
	}
	return lost
}

// Of two loads each a page says what they tell of the ratio, and no more.
func TestTwoLoadsTellBounds(t *testing.T) {
	for _, c := range []struct {
		quota, of [2]bool // met at 60 and at 80 %
		want      string
	}{
		{[2]bool{false, false}, [2]bool{true, true}, "at least 1.33"},
		{[2]bool{true, false}, [2]bool{true, true}, "at least 1.00"},
		{[2]bool{true, false}, [2]bool{true, false}, "0.75 to 1.33"},
		{[2]bool{true, false}, [2]bool{false, false}, "at most 1.00"},
		{[2]bool{false, false}, [2]bool{false, false}, "not told by these loads"},
		{[2]bool{true, true}, [2]bool{true, true}, "not told by these loads"},
	} {
		have := &records{}
		for i, level := range []int{comparedLevel, comparedLevel + 2} {
			have.All = append(have.All, record{Piece: pointOf(small, "pool", capacity.Quota, level, 1), Point: &figures{Met: c.quota[i]}},
				record{Piece: pointOf(small, "pool", capacity.Burst, level, 1), Point: &figures{Met: c.of[i]}})
		}
		if got := (page{have: have}).gain(small, "pool", capacity.Burst).String(); got != c.want+" (1 repeat)" {
			t.Errorf("quota %v, burst %v: %s, want %s", c.quota, c.of, got, c.want)
		}
	}
	if searched(small, "pool", capacity.Burst) || !searched(small, "mixed", capacity.Burst) {
		t.Error("the plan has other pieces")
	}
}

// What fix left is named.
func TestWhatFixLeft(t *testing.T) {
	for text, try := range map[string]fixTry{
		"narrow to 2 CPUs, credit 400ms": {Remedy: "narrow", Parameters: map[string]string{"cap": "2 CPUs, credit 400ms"}},
		"narrow, cpus 2":                 {Remedy: "narrow", Parameters: map[string]string{"cpus": "2"}},
		"burst 20ms, period 10ms":        {Remedy: "burst", Parameters: map[string]string{"burst": "20ms", "period": "10ms"}},
		"burst":                          {Remedy: "burst"},
	} {
		if got := try.String(); got != text {
			t.Errorf("%q, want %q", got, text)
		}
	}
	f := fixFigures{Tries: []fixTry{{Remedy: "pin", Verdict: "worse"}, {Remedy: "burst", Kept: true}}}
	if left := f.left(); left == nil || left.Remedy != "burst" {
		t.Errorf("left %v", left)
	}
}

func TestKneeWhileOpen(t *testing.T) {
	have := &records{}
	add := func(level int, met bool) {
		r := measuredAs(pointOf(wide, "pool", capacity.Quota, level, 1), 0.45)
		r.Point.Met = met
		have.All = append(have.All, r)
	}
	if _, ok := have.kneeOf(wide, "pool", capacity.Quota, 1); ok {
		t.Error("a knee of nothing")
	}
	add(3, false)
	if k, _ := have.kneeOf(wide, "pool", capacity.Quota, 1); k != (knee{Share: 0.6, Open: true, Upto: 0.6}) {
		t.Errorf("%+v", k)
	}
	add(1, true)
	if k, _ := have.kneeOf(wide, "pool", capacity.Quota, 1); k != (knee{Share: 0.4, Open: true, Upto: 0.6}) {
		t.Errorf("%+v", k)
	}
	// A load that is missed below one that was met counts: the search goes on below.
	add(0, false)
	if met, missed := have.bracket(wide, "pool", capacity.Quota, 1); met != -1 || missed != 0 {
		t.Error(met, missed)
	}
}

func TestBatch(t *testing.T) {
	pieces := missing(&records{})
	one := pieces[0].takes()
	for _, c := range []struct {
		left time.Duration
		want int
	}{{0, 0}, {pieces[0].Machine.boots(), 0}, {pieces[0].Machine.boots() + one, 1},
		{pieces[0].Machine.boots() + 3*one, 3}, {time.Hour, 6}} {
		if got := batch(pieces, c.left); len(got) != c.want {
			t.Errorf("%v left: %d pieces, want %d", c.left, len(got), c.want)
		}
	}
	other := pieces[0]
	other.Machine.K = 40
	if got := batch([]piece{pieces[0], other, pieces[1]}, time.Hour); len(got) != 2 {
		t.Errorf("%v in one guest", got)
	}
	if batch(nil, time.Hour) != nil {
		t.Error("pieces of nothing")
	}
}

// Latencies of several points add up to a quantile that is within a slot.
func TestPooled(t *testing.T) {
	var points []*figures
	for range 2 {
		f := &figures{}
		for ms := 1; ms <= 1000; ms++ {
			f.Latencies = append(f.Latencies, slotCount{slotOf(float64(ms)), 1})
		}
		points = append(points, f)
	}
	for q, want := range map[float64]float64{0.5: 500, 0.99: 990} {
		got := pooled(points, q)
		if got == nil || math.Abs(*got/want-1) > slotGrowth-1 {
			t.Errorf("%g: %v, want %g", q, study.Decimals(got, 1), want)
		}
	}
	if pooled(points, 0.999) != nil {
		t.Error("a quantile of 2 requests")
	}
	for _, ms := range []float64{0.5, 1, 50, 999} {
		if at := slotMs(slotOf(ms)); at < ms*(1-1e-9) || at > ms*slotGrowth*(1+1e-9) {
			t.Errorf("%g ms are in the slot up to %g", ms, at)
		}
	}
}

func TestDamagedRecords(t *testing.T) {
	file := filepath.Join(t.TempDir(), "r")
	if err := os.WriteFile(file, []byte("{}\n{\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := readRecords(file); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Error(err)
	}
}

// The guest's lines become pieces, and one that the host was too busy for is told.
func TestFollow(t *testing.T) {
	pieces := missing(&records{})[:2]
	var got []string
	g := guest{done: func(p piece, m message, release string, c slow.Result, failed string) error {
		got = append(got, p.Remedy+" "+release+" "+failed)
		return nil
	}}
	lines := `{"speed":{"sleep_late_us":100},"release":"6.18"}
{"began":0}
{"ended":0,"took_ns":1000000000,"failed":"no luck"}
{"began":1}
{"ended":1,"took_ns":1000000000,"point":{}}
`
	if err := g.follow(strings.NewReader(lines), pieces, os.Getpid()); err != nil {
		t.Fatal(err)
	}
	// The second did run, but not at the pace of the guest's clock.
	if len(got) != 2 || got[0] != "quota 6.18 no luck" ||
		!strings.Contains(got[1], "burst 6.18 the guest's clock ran") &&
			!strings.Contains(got[1], "; the guest's clock ran") && !strings.Contains(got[1], "others") {
		t.Errorf("%q", got)
	}
	for _, bad := range []string{"hello\n", `{"ended":7}` + "\n"} {
		if err := g.follow(strings.NewReader(bad), pieces, os.Getpid()); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

func TestWorth(t *testing.T) {
	start := time.Now()
	before := look{at: start, total: procfs.Times{}}
	after := look{at: start.Add(60 * time.Second), total: procfs.Times{All: 120 * time.Second, Idle: 30 * time.Second},
		own: 70 * time.Second}
	speed := wire.Speed{SleepLateUs: 100}
	c := worth(machine{K: 20}, speed, before, after, 3*time.Second)
	if !c.OK || math.Abs(*c.StealShare-20./120) > 1e-9 || c.Pace != 20 {
		t.Errorf("%+v", c)
	}
	after.own = 20 * time.Second
	if c := worth(machine{K: 20}, speed, before, after, 3*time.Second); c.OK || !strings.Contains(c.String(), "others had 58 %") {
		t.Error(c)
	}
}

// Other containers use the share of the host that is said.
func TestNeighbours(t *testing.T) {
	s, err := neighbours(besideOthers(small, capacity.Shard, capacity.Quota, comparedLevel, 1), cpuset.New(1, 2, 3, 4, 5, 6, 7))
	if err != nil {
		t.Fatal(err)
	}
	w := s.Workloads[0]
	if on, off := w.On.Seconds(), w.Off.Seconds(); s.Host.CPUs != small.CPUs || w.Threads != small.CPUs-1 ||
		on/(on+off) < 0.899 || on/(on+off) > 0.901 {
		t.Errorf("%+v", w)
	}
}

// Beside a full host the plan has the same points as on an empty one.
func TestFullHostIsInThePlan(t *testing.T) {
	full := 0
	for _, s := range stages() {
		pieces := s.next(&records{failed: map[piece]int{}})
		for _, p := range pieces {
			if p.Setting == "" {
				continue
			}
			full++
			if p.Setting = ""; !slices.Contains(pieces, p) {
				t.Errorf("%v: it is not there on an empty host", p)
			}
		}
	}
	if full != len(predictable)+len(bounding) {
		t.Errorf("%d points on a full host", full)
	}
}
