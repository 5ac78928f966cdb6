package policy

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/cure/hoststate"
	"github.com/unthrottle/unthrottle/internal/cure/hoststate/gather"
	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup/cgroupmodel"
	"github.com/unthrottle/unthrottle/internal/see/observe"
)

// facts of a host of cpus CPUs (a core each) with one container "/a" that has a
// quota of limit CPUs.
func facts(t *testing.T, cpus int, limit float64) (hoststate.Facts, container.Container) {
	t.Helper()
	list := fmt.Sprintf("0-%d", cpus-1)
	root := fstest.MapFS{
		"sys/devices/system/cpu/present": {Data: []byte(list)},
		"sys/devices/system/cpu/online":  {Data: []byte(list)},
	}
	for id := range cpus {
		dir := fmt.Sprintf("sys/devices/system/cpu/cpu%d/topology/", id)
		root[dir+"core_cpus_list"] = &fstest.MapFile{Data: fmt.Append(nil, id)}
		root[dir+"package_cpus_list"] = &fstest.MapFile{Data: []byte(list)}
	}
	k := cgroupmodel.New(cgroupmodel.V1(list))
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(k.Make(cgroup.CPU, "/a"))
	must(k.Make(cgroup.CPUSet, "/a"))
	must(k.Write(cgroup.CPUSet, "/a", "cpuset.mems", "0"))
	must(k.Write(cgroup.CPUSet, "/a", "cpuset.cpus", list))
	must(k.Write(cgroup.CPU, "/a", "cpu.cfs_quota_us", fmt.Sprint(max(-1, int(limit*100000)))))
	k.Spawn("/a", 10)
	a := container.Container{Group: cgroup.Group{Path: "/a", CPUSetPath: "/a"}, Name: "a"}
	f, err := gather.From(t.Context(), k, false, []container.Container{a}, gather.Options{Root: root})
	must(err)
	return f, a
}

func seen(a container.Container, limit, used float64, stopped time.Duration) observe.Observation {
	periods, throttled := uint64(10), uint64(9)
	o := observe.Observation{Container: a, Window: time.Second, UsedCPUs: &used, StoppedLow: &stopped, StoppedHigh: &stopped,
		Periods: &periods, ThrottledPeriods: &throttled}
	if limit > 0 {
		o.LimitCPUs = &limit
	}
	return o
}

func TestPropose(t *testing.T) {
	auto, judged := Wish{Auto: true}, Wish{Auto: true, Judged: true}
	for _, tc := range []struct {
		name     string
		cpus     int
		limit    float64
		used     float64
		stopped  time.Duration
		wish     Wish
		remedy   remedy.Kind // "": nothing
		says     string
		rejected string
	}{
		{"time counts, not periods", 4, 1, 0.9, 10 * time.Millisecond, auto, "", "9 of 10 periods were throttled, but time counts", ""},
		{"use far below the limit: burst", 4, 1, 0.5, 300 * time.Millisecond, auto, remedy.Burst,
			"stopped for 300 ms to 300 ms of each second; nothing was forecast", "pin narrow raise period weight"},
		{"use near the limit: nothing is certain", 4, 1, 0.9, 300 * time.Millisecond, auto, "",
			"nothing can be recommended", "burst pin narrow raise period weight"},
		{"use near the limit, judged by latency: pin", 4, 1, 0.9, 300 * time.Millisecond, judged, remedy.Pin,
			"whether that helps", "burst narrow raise period weight"},
		{"uses its limit up: more work needs more", 4, 1, 1, 900 * time.Millisecond, auto, "",
			"to get more done, raise the limit", "burst pin narrow raise period weight"},
		{"uses its limit up, and raise may be", 4, 1, 1, 900 * time.Millisecond,
			Wish{Auto: true, May: []remedy.Kind{remedy.Raise}}, remedy.Raise, "what is left", "burst pin narrow period weight"},
		{"2 CPUs, limit 1: the other CPU is the reserve", 2, 1, 1, 900 * time.Millisecond, judged, remedy.Pin, "",
			"burst narrow raise period weight"},
		{"no room to pin", 4, 3.5, 3, 300 * time.Millisecond, judged, remedy.Narrow, "others may use too", "burst pin raise period weight"},
		{"more than there is", 2, 2.5, 2.4, 300 * time.Millisecond,
			Wish{Auto: true, Judged: true, Request: remedy.Request{To: 3}}, "", "nothing can be recommended",
			"burst pin narrow raise period weight"},
		{"asked for", 4, 1, 0.5, 300 * time.Millisecond, Wish{Request: remedy.Request{Kind: remedy.Weight}},
			remedy.Weight, "was asked for", ""},
		{"asked for, refused", 4, 1, 0.5, 300 * time.Millisecond,
			Wish{Request: remedy.Request{Kind: remedy.Pin, CPUs: 9}}, "", "cannot be done", "pin"},
		{"no finding though asked for", 4, 1, 0.5, 0, Wish{Request: remedy.Request{Kind: remedy.Pin}}, "", "nothing to fix", ""},
		{"a bound of its own", 4, 1, 0.5, 300 * time.Millisecond, Wish{Auto: true, Bound: 0.5}, "", "nothing to fix", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f, a := facts(t, tc.cpus, tc.limit)
			got, err := Propose(seen(a, tc.limit, tc.used, tc.stopped), f, tc.wish, nil)
			if err != nil {
				t.Fatal(err)
			}
			var kind remedy.Kind
			if got.Plan != nil {
				kind = got.Plan.Remedy
			}
			var not []string
			for _, n := range got.Not {
				not = append(not, string(n.Remedy))
				if n.Why == "" {
					t.Errorf("not %s: no reason", n.Remedy)
				}
			}
			if kind != tc.remedy || !strings.Contains(got.Why, tc.says) || strings.Join(not, " ") != tc.rejected {
				t.Errorf("proposes %q because %q, not %q; want %q, %q, not %q", kind, got.Why, not, tc.remedy, tc.says, tc.rejected)
			}
		})
	}
}

func TestProposeWithoutMeasurement(t *testing.T) {
	f, a := facts(t, 4, 1)
	for name, tc := range map[string]struct {
		change func(*observe.Observation)
		says   string
	}{
		"no limit": {func(o *observe.Observation) { o.LimitCPUs = nil }, "has a limit"},
		"a quota inside": {func(o *observe.Observation) { o.LimitCPUs, o.ThrottledBy = nil, "/a/vcpu0" },
			"stopped for 1000 ms to 1000 ms of each second by the quota of a cgroup in it; name that one: /a/vcpu0"},
		"a quota inside, below the bound": {func(o *observe.Observation) {
			o.LimitCPUs, o.ThrottledBy, *o.StoppedLow, *o.StoppedHigh = nil, "/a/vcpu0", 0, time.Millisecond
		}, "nothing to fix"},
		"inside not measured": {func(o *observe.Observation) {
			o.LimitCPUs, o.StoppedLow, o.StoppedHigh = nil, nil,
				nil
		}, "was not measured"},
		"not measured": {func(o *observe.Observation) { o.StoppedLow, o.StoppedHigh = nil, nil }, "not measured"},
	} {
		o := seen(a, 1, 1, time.Second)
		tc.change(&o)
		got, err := Propose(o, f, Wish{Auto: true}, nil)
		if err != nil || got.Plan != nil || !strings.Contains(got.Why, tc.says) {
			t.Errorf("%s: %+v, error %v", name, got, err)
		}
	}
}

func TestGlobOfEverything(t *testing.T) {
	for _, path := range []string{"/", "/a", "/a/b/c"} {
		if !globPath("/**", path) {
			t.Errorf("/** does not fit %s", path)
		}
	}
	if globPath("/a/**", "/b") || !globPath("/a/**", "/a/b/c") || globPath("/a/*", "/a/b/c") {
		t.Error("globs below a cgroup")
	}
}

// A secondary is not for its own sake: a calm container becomes one too, with a
// limit or without. Other remedies need a finding.
func TestProposeSecondaryOfACalmContainer(t *testing.T) {
	for _, limit := range []float64{1, -1} {
		f, a := facts(t, 4, limit)
		o := seen(a, max(0, limit), 0.2, 0)
		p, err := Propose(o, f, Wish{Request: remedy.Request{Kind: remedy.Secondary}}, nil)
		if err != nil || p.Plan == nil || p.Plan.Remedy != remedy.Secondary || !strings.Contains(p.Why, "leave idle") {
			t.Errorf("limit %g: %+v, %v", limit, p, err)
		}
		if p, err := Propose(o, f, Wish{Request: remedy.Request{Kind: remedy.Pin}}, nil); err != nil || p.Plan != nil {
			t.Errorf("limit %g: a calm container is pinned: %+v, %v", limit, p, err)
		}
	}
}
