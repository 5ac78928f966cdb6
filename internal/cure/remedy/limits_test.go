package remedy

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/cure/hoststate"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
)

const podUID = "1b4e28ba-2fa1-11d2-883f-0016d3cca427"

// tree builds facts by hand: limits in CPUs by path, 0 for none; the rest of
// the machine is 8 CPUs.
func tree(t *testing.T, v cgroup.Version, limits map[string]float64) hoststate.Facts {
	t.Helper()
	f := hoststate.Facts{Machine: machine(t, "0-7"), CPUVersion: v, CPUSetVersion: v, OneTree: true, HasBurst: true,
		Groups: map[string]hoststate.Group{"/": {Limit: cgroup.Unlimited()}}, Sets: map[string]hoststate.Set{}}
	for path, limit := range limits {
		g := hoststate.Group{Limit: cgroup.Unlimited(), Shares: cgroup.DefaultShares}
		if limit > 0 {
			g.Limit.Quota = time.Duration(limit * float64(g.Limit.Period))
		}
		f.Groups[path] = g
	}
	for path := range f.Groups {
		s := hoststate.Set{Cpus: "0-7"}
		s.Configured, s.Effective, s.EffectiveMems = parse(t, "0-7"), parse(t, "0-7"), parse(t, "0")
		f.Sets[path] = s
	}
	return f
}

func target(path, uid string) container.Container {
	return container.Container{Name: cgroup.Base(path), PodUID: uid, Group: cgroup.Group{Path: path, CPUSetPath: path}}
}

// wrote lists what a plan does to limits, as "path file value".
func wrote(p Plan) []string {
	var all []string
	for _, c := range p.Changes {
		if c.Controller == cgroup.CPU {
			all = append(all, c.Path+" "+c.File+" "+c.To)
		}
	}
	slices.Sort(all)
	return all
}

func TestAncestors(t *testing.T) {
	const pod = "/kubepods/pod" + podUID
	const slice = "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1b4e28ba_2fa1_11d2_883f_0016d3cca427.slice"
	for name, c := range map[string]struct {
		limits  map[string]float64
		target  string
		uid     string
		arrange func(f *hoststate.Facts)
		r       Request
		want    []string
		refused string
	}{
		"a pod's quota is lifted where all others in it have one": {
			limits: map[string]float64{"/kubepods": 0, pod: 2.5, pod + "/web": 2, pod + "/side": 0.5}, target: pod + "/web", uid: podUID,
			r: Request{Kind: Pin}, want: []string{pod + " cpu.max max 100000", pod + "/web cpu.max max 100000"}},
		"also with systemd's names": {
			limits: map[string]float64{"/kubepods.slice": 0, "/kubepods.slice/kubepods-burstable.slice": 0, slice: 1,
				slice + "/a.scope": 1},
			target: slice + "/a.scope", uid: podUID, r: Request{Kind: Pin},
			want: []string{slice + " cpu.max max 100000", slice + "/a.scope cpu.max max 100000"}},
		"not where another would become unlimited": {
			limits: map[string]float64{pod: 2, pod + "/web": 2, pod + "/free": 0, "/kubepods": 0}, target: pod + "/web", uid: podUID,
			r: Request{Kind: Pin}, refused: "these would become unlimited: " + pod + "/free"},
		"the pause process counts for nothing": {
			limits: map[string]float64{pod: 2, pod + "/web": 2, pod + "/pause": 0, "/kubepods": 0}, target: pod + "/web", uid: podUID,
			arrange: func(f *hoststate.Facts) { g := f.Groups[pod+"/pause"]; g.Sandbox = true; f.Groups[pod+"/pause"] = g },
			r:       Request{Kind: Pin}, want: []string{pod + " cpu.max max 100000", pod + "/web cpu.max max 100000"}},
		"nor where processes of the level itself would": {
			limits: map[string]float64{pod: 2, pod + "/web": 2, "/kubepods": 0}, target: pod + "/web", uid: podUID,
			arrange: func(f *hoststate.Facts) { g := f.Groups[pod]; g.Procs = 3; f.Groups[pod] = g },
			r:       Request{Kind: Weight}, refused: "its own processes"},
		"a slice's quota is not ours": {
			limits: map[string]float64{"/slice": 1, "/slice/a": 1, "/slice/b": 1}, target: "/slice/a",
			r: Request{Kind: Pin}, refused: "the quota of 1 CPU at /slice would still bind, and it is neither a pod's"},
		"unless it is below a cgroup that the user named": {
			limits: map[string]float64{"/top": 0, "/top/slice": 1, "/top/slice/a": 1, "/top/slice/b": 1}, target: "/top/slice/a",
			arrange: func(f *hoststate.Facts) { f.Named = "/top" },
			r:       Request{Kind: Pin}, want: []string{"/top/slice cpu.max max 100000", "/top/slice/a cpu.max max 100000"}},
		"the named cgroup itself is not below it": {
			limits: map[string]float64{"/slice": 1, "/slice/a": 1, "/slice/b": 1}, target: "/slice/a",
			arrange: func(f *hoststate.Facts) { f.Named = "/slice" },
			r:       Request{Kind: Pin}, refused: "/slice would still bind"},
		"a quota that cannot bind stays": {
			limits: map[string]float64{"/slice": 5, "/slice/a": 2, "/slice/b": 1}, target: "/slice/a",
			r: Request{Kind: Pin}, want: []string{"/slice/a cpu.max max 100000"}},
		"one that equals what can be used below it stays too": {
			limits: map[string]float64{"/slice": 3, "/slice/a": 2, "/slice/b": 1}, target: "/slice/a",
			r: Request{Kind: Pin}, want: []string{"/slice/a cpu.max max 100000"}},
		"without CPUs of its own anything binds": {
			limits: map[string]float64{"/slice": 5, "/slice/a": 2, "/slice/b": 1}, target: "/slice/a",
			r: Request{Kind: Weight}, refused: "the quota of 5 CPUs at /slice would still bind"},
		"exclusive CPUs bound a neighbour as a quota does": {
			limits: map[string]float64{pod: 2, pod + "/web": 2, pod + "/own": 0, "/kubepods": 0}, target: pod + "/web", uid: podUID,
			arrange: func(f *hoststate.Facts) {
				s := f.Sets[pod+"/own"]
				s.Partition, s.Effective = "root", parse(t, "7")
				f.Sets[pod+"/own"] = s
			},
			r: Request{Kind: Pin}, want: []string{pod + " cpu.max max 100000", pod + "/web cpu.max max 100000"}},
		"raise gives the pod the difference": {
			limits: map[string]float64{pod: 1.5, pod + "/web": 1, pod + "/side": 0.5}, target: pod + "/web", uid: podUID,
			r: Request{Kind: Raise}, want: []string{pod + " cpu.max 250000 100000", pod + "/web cpu.max 200000 100000"}},
		"raise of one that only an ancestor limits": {
			limits: map[string]float64{pod: 1, pod + "/web": 0}, target: pod + "/web", uid: podUID,
			r: Request{Kind: Raise, To: 3}, want: []string{pod + " cpu.max 300000 100000"}},
		"raise beyond the host": {
			limits: map[string]float64{"/a": 5}, target: "/a", r: Request{Kind: Raise},
			refused: "10 CPUs is more than the 8 CPUs of this host"},
		"raise to less": {
			limits: map[string]float64{"/a": 5}, target: "/a", r: Request{Kind: Raise, To: 4}, refused: "4 CPUs is no more than its limit"},
		"weight from the limit": {
			limits: map[string]float64{"/a": 3}, target: "/a", r: Request{Kind: Weight, WeightFromLimit: true},
			want: []string{"/a cpu.max max 100000", "/a cpu.weight 300"}},
		"burst": {
			limits: map[string]float64{"/a": 2}, target: "/a", r: Request{Kind: Burst}, want: []string{"/a cpu.max.burst 200000"}},
		"burst with another period": {
			limits: map[string]float64{"/a": 2}, target: "/a", r: Request{Kind: Burst, Period: 20_000_000},
			want: []string{"/a cpu.max 40000 20000", "/a cpu.max.burst 40000"}},
		"burst above the quota": {
			limits: map[string]float64{"/a": 2}, target: "/a", r: Request{Kind: Burst, Burst: 300_000_000},
			refused: "burst 300ms is above the quota 200ms"},
		"burst of the pod that stops it": {
			limits: map[string]float64{pod: 1, pod + "/web": 0}, target: pod + "/web", uid: podUID,
			r: Request{Kind: Burst}, want: []string{pod + " cpu.max.burst 100000"}},
		"burst with a shorter period of the pod that stops it": {
			limits: map[string]float64{pod: 1, pod + "/web": 0}, target: pod + "/web", uid: podUID,
			r: Request{Kind: Burst, Period: 20_000_000}, want: []string{pod + " cpu.max 20000 20000", pod + " cpu.max.burst 20000"}},
		"burst without unused time": {
			limits: map[string]float64{"/a": 2}, target: "/a",
			r:       Request{Kind: Burst, Observed: &hoststate.Observed{UsedCPUs: number(1.93)}},
			refused: "no unused time to spend"},
		"burst that a trial measures": {
			limits: map[string]float64{"/a": 2}, target: "/a",
			r:    Request{Kind: Burst, OnTrial: true, Observed: &hoststate.Observed{UsedCPUs: number(1.99), Window: 6_000_000_000}},
			want: []string{"/a cpu.max.burst 200000"}},
		"burst at a peak that half a second shows": {
			limits: map[string]float64{"/a": 2}, target: "/a",
			r:    Request{Kind: Burst, Observed: &hoststate.Observed{UsedCPUs: number(1.99), Window: 500_000_000}},
			want: []string{"/a cpu.max.burst 200000"}},
		"burst on an old kernel": {
			limits: map[string]float64{"/a": 2}, target: "/a", arrange: func(f *hoststate.Facts) { f.HasBurst = false },
			r:       Request{Kind: Burst},
			refused: "this kernel has no burst"},
		"period": {
			limits: map[string]float64{"/a": 2}, target: "/a", r: Request{Kind: Period}, want: []string{"/a cpu.max 40000 20000"}},
		"period cuts a burst to the quota": {
			limits: map[string]float64{"/a": 2}, target: "/a", r: Request{Kind: Period, Period: 10_000_000},
			arrange: func(f *hoststate.Facts) {
				g := f.Groups["/a"]
				g.Limit.Burst = 100_000_000
				f.Groups["/a"] = g
			},
			want: []string{"/a cpu.max 20000 10000", "/a cpu.max.burst 20000"}},
		"period of the pod that stops it, and its own": {
			limits: map[string]float64{pod: 1, pod + "/web": 2, pod + "/side": 1}, target: pod + "/web", uid: podUID,
			r: Request{Kind: Period}, want: []string{pod + " cpu.max 20000 20000", pod + "/web cpu.max 40000 20000"}},
		"period leaves an ancestor that does not bind": {
			limits: map[string]float64{pod: 3, pod + "/web": 2}, target: pod + "/web", uid: podUID,
			r: Request{Kind: Period}, want: []string{pod + "/web cpu.max 40000 20000"}},
		"period of a slice that is not ours": {
			limits: map[string]float64{"/slice": 1, "/slice/a": 2}, target: "/slice/a", r: Request{Kind: Period},
			refused: "the quota that binds is that of /slice"},
		"period as it is": {
			limits: map[string]float64{"/a": 2}, target: "/a", r: Request{Kind: Period, Period: 100_000_000},
			refused: "its period is 100ms already"},
		"period without a limit": {
			limits: map[string]float64{"/a": 0}, target: "/a", r: Request{Kind: Period}, refused: "neither it nor an ancestor has a quota"},
		"period too short for the kernel": {
			limits: map[string]float64{"/a": 0.05}, target: "/a", r: Request{Kind: Period, Period: 10_000_000},
			refused: "quota 500µs is below the least of 1ms"},
		"a threaded cgroup": {
			limits:  map[string]float64{"/a": 2},
			target:  "/a",
			arrange: func(f *hoststate.Facts) { g := f.Groups["/a"]; g.Type = "threaded"; f.Groups["/a"] = g },
			r:       Request{Kind: Pin}, refused: `its cgroup.type is "threaded"`},
		"a limit alone can change in a threaded cgroup": {
			limits: map[string]float64{"/a": 1}, target: "/a",
			arrange: func(f *hoststate.Facts) { g := f.Groups["/a"]; g.Type = "threaded"; f.Groups["/a"] = g },
			r:       Request{Kind: Raise}, want: []string{"/a cpu.max 200000 100000"}},
		"no thread can be in an invalid domain": {
			limits: map[string]float64{"/a": 1}, target: "/a",
			arrange: func(f *hoststate.Facts) { g := f.Groups["/a"]; g.Type = "domain invalid"; f.Groups["/a"] = g },
			r:       Request{Kind: Raise}, refused: `its cgroup.type is "domain invalid"`},
	} {
		t.Run(name, func(t *testing.T) {
			f := tree(t, cgroup.V2, c.limits)
			if c.arrange != nil {
				c.arrange(&f)
			}
			if c.refused != "" {
				if got := refusal(t, f, target(c.target, c.uid), c.r).Error(); !strings.Contains(got, c.refused) {
					t.Errorf("got %q, want %q in it", got, c.refused)
				}
				return
			}
			p, err := Make(f, target(c.target, c.uid), c.r)
			if err != nil {
				t.Fatal(err)
			}
			if got := wrote(p); !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func number(x float64) *float64 { return &x }

// A large host: 1,000 containers on 128 CPUs, none of them measured.
func BenchmarkPinAmong1000(b *testing.B) {
	f := large(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Make(f, target("/pods/c500", ""), Request{Kind: Pin}); err != nil {
			b.Fatal(err)
		}
	}
}

func large(t testing.TB) hoststate.Facts {
	f := hoststate.Facts{Machine: machine(t, "0-127"), CPUVersion: cgroup.V1, CPUSetVersion: cgroup.V1, OneTree: true, HasBurst: true,
		Groups: map[string]hoststate.Group{}, Sets: map[string]hoststate.Set{}}
	set := parse(t, "0-127")
	paths := []string{"/", "/pods"}
	for i := range 1000 {
		paths = append(paths, "/pods/c"+strconv.Itoa(i))
	}
	for _, path := range paths {
		g := hoststate.Group{Limit: cgroup.Unlimited(), Shares: 102}
		if depth(path) == 2 {
			g.Limit.Quota = 4 * g.Limit.Period
			f.Containers = append(f.Containers, hoststate.Container{Container: target(path, ""), OwnSet: true})
		}
		f.Groups[path] = g
		s := hoststate.Set{Cpus: "0-127"}
		s.Configured, s.Effective, s.EffectiveMems = set, set, parse(t, "0")
		f.Sets[path] = s
	}
	return f
}

func TestKeepingLimit(t *testing.T) {
	if got, want := KeepingLimit(), []Kind{Narrow, Burst, Period, Cap}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
