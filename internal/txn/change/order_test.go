package change_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup/cgroupmodel"
	"github.com/unthrottle/unthrottle/internal/txn/change"
)

func set(path, from, to string) change.Change {
	return change.Change{Kind: change.KindFile, Controller: cgroup.CPUSet, Path: path, File: "cpuset.cpus", From: from, To: to}
}

func quota(path, from, to string) change.Change {
	return change.Change{Kind: change.KindFile, Controller: cgroup.CPU, Path: path, File: "cpu.cfs_quota_us", From: from, To: to}
}

// lines are the steps as "path file from>to".
func lines(steps []change.Change) []string {
	var out []string
	for _, c := range steps {
		name := c.File
		if c.Kind != change.KindFile {
			name = string(c.Kind)
		}
		out = append(out, fmt.Sprintf("%s %s %s>%s", c.Path, name, c.From, c.To))
	}
	return out
}

func TestOrder(t *testing.T) {
	period := func(path string) map[change.Setting]string {
		return map[change.Setting]string{
			{Controller: cgroup.CPU, Path: path, File: "cpu.cfs_period_us"}: "100000",
			{Controller: cgroup.CPU, Path: path, File: "cpu.cfs_burst_us"}:  "0",
		}
	}
	for _, c := range []struct {
		name    string
		values  map[change.Setting]string
		changes []change.Change
		want    []string
	}{
		{"a child moves within its parent", nil,
			[]change.Change{set("/a", "0-3", "2-5"), set("/a/b", "0-1", "4-5")},
			[]string{"/a cpuset.cpus 0-3>0-5", "/a/b cpuset.cpus 0-1>0-1,4-5", "/a/b cpuset.cpus 0-1,4-5>4-5", "/a cpuset.cpus 0-5>2-5"}},
		{"what is there already is no step", nil,
			[]change.Change{set("/a", "0-3", "0,1,2,3")}, nil},
		{"the documented example, shrinking", nil,
			[]change.Change{set("/pods", "0-7", "0-3"), set("/pods/a", "0-7", "0-1")},
			[]string{"/pods/a cpuset.cpus 0-7>0-1", "/pods cpuset.cpus 0-7>0-3"}},
		{"cgroups and controllers first or last, moves in between", nil,
			[]change.Change{
				{Kind: change.KindTask, Controller: cgroup.CPUSet, Path: "/n/m", From: "/", To: "/n/m"},
				{Kind: change.KindCgroup, Controller: cgroup.CPUSet, Path: "/n/m"},
				{Kind: change.KindSubtree, Controller: cgroup.CPUSet, Path: "/n", From: "-cpuset", To: "+cpuset"},
				{Kind: change.KindCgroup, Controller: cgroup.CPUSet, Path: "/n"},
				set("/n/m", "", "1"), set("/x", "0-3", "0,2-3"),
				{Kind: change.KindCgroup, Controller: cgroup.CPUSet, Path: "/o", From: change.Present},
				{Kind: change.KindCgroup, Controller: cgroup.CPUSet, Path: "/o/p", From: change.Present},
			},
			[]string{"/n cgroup >present", "/n subtree_control -cpuset>+cpuset", "/n/m cgroup >present", "/n/m cpuset.cpus >1",
				"/n/m task />/n/m", "/x cpuset.cpus 0-3>0,2-3", "/o/p cgroup present>", "/o cgroup present>"}},
		{"quotas rise parent first, after the sets", period("/p"),
			[]change.Change{quota("/p/c", "100000", "300000"), quota("/p", "200000", "-1"), set("/p/c", "0-7", "6-7")},
			[]string{"/p/c cpuset.cpus 0-7>6-7", "/p cpu.cfs_quota_us 200000>-1", "/p/c cpu.cfs_quota_us 100000>300000"}},
		{"quotas fall child first, before the sets", period("/p"),
			[]change.Change{quota("/p", "-1", "200000"), quota("/p/c", "300000", "100000"), set("/p/c", "6-7", "0-7")},
			[]string{"/p/c cpu.cfs_quota_us 300000>100000", "/p cpu.cfs_quota_us -1>200000", "/p/c cpuset.cpus 6-7>0-7"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := change.State{Versions: map[cgroup.Controller]cgroup.Version{cgroup.CPU: cgroup.V1,
				cgroup.CPUSet: cgroup.V1}, Values: c.values}
			for range 3 {
				steps, err := change.Order(s, slices.Clone(c.changes))
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(c.want, lines(steps)); diff != "" {
					t.Error(diff)
				}
				slices.Reverse(c.changes)
			}
		})
	}
}

func TestOrderRefuses(t *testing.T) {
	v1 := change.State{Versions: map[cgroup.Controller]cgroup.Version{cgroup.CPUSet: cgroup.V1, cgroup.CPU: cgroup.V1}}
	for name, changes := range map[string][]change.Change{
		"twice":   {set("/a", "0", "1"), set("/a", "0", "2")},
		"no list": {set("/a", "0", "one")},
		"nothing": {{Kind: change.KindFile, Op: change.OpRemoveCPUs, Controller: cgroup.CPUSet, Path: "/a",
			File: "cpuset.cpus", From: "0-1", To: "0-1"}},
		"unknown":     {{Kind: "unheard_of", Path: "/a"}},
		"not mounted": {{Kind: change.KindFile, Controller: "memory", Path: "/a", File: "memory.max"}},
		"quota":       {quota("/a", "-1", "10")},
	} {
		if steps, err := change.Order(v1, changes); err == nil {
			t.Errorf("%s: accepted: %v", name, lines(steps))
		}
	}
}

// node is one cgroup of a random state that the kernel accepts as a whole: on v1 a child's CPUs within its parent's, its
// quota not above it.
type node struct {
	cpus          []int
	quota, period int // quota below 0: none
}

func drawState(t *rapid.T, v cgroup.Version, paths []string, label string) map[string]node {
	nodes := map[string]node{"/": {cpus: []int{0, 1, 2, 3, 4, 5}, quota: -1, period: 100000}}
	for _, path := range paths {
		above := nodes[cgroup.Parent(path)]
		if v == cgroup.V2 {
			above = nodes["/"]
		}
		n := node{quota: -1, period: rapid.SampledFrom([]int{50000, 100000, 200000}).Draw(t, label+path+" period")}
		n.cpus = rapid.SliceOfNDistinct(rapid.SampledFrom(above.cpus), 1, len(above.cpus), rapid.ID[int]).Draw(t, label+path)
		limit := 6 * n.period
		if v == cgroup.V1 {
			if bound := boundAbove(nodes, path); bound >= 0 {
				limit = int(bound * float64(n.period))
			}
		}
		if limit >= 1000 && rapid.Bool().Draw(t, label+path+" limited") {
			n.quota = rapid.IntRange(1000, limit).Draw(t, label+path+" quota")
		}
		nodes[path] = n
	}
	return nodes
}

// boundAbove is the ratio of the nearest ancestor that has a quota, below 0 for none.
func boundAbove(nodes map[string]node, path string) float64 {
	for path != "/" {
		path = cgroup.Parent(path)
		if n := nodes[path]; n.quota >= 0 {
			return float64(n.quota) / float64(n.period)
		}
	}
	return -1
}

func text(v cgroup.Version, n node) map[string]string {
	list := slices.Clone(n.cpus)
	slices.Sort(list)
	cpus := ""
	for i, c := range list {
		if i > 0 {
			cpus += ","
		}
		cpus += fmt.Sprint(c)
	}
	out := map[string]string{"cpuset.cpus": cpus}
	if v == cgroup.V2 {
		quota := "max"
		if n.quota >= 0 {
			quota = fmt.Sprint(n.quota)
		}
		out["cpu.max"] = fmt.Sprintf("%s %d", quota, n.period)
		return out
	}
	out["cpu.cfs_quota_us"], out["cpu.cfs_period_us"] = fmt.Sprint(n.quota), fmt.Sprint(n.period)
	return out
}

func controllerOf(file string) cgroup.Controller {
	if file == "cpuset.cpus" {
		return cgroup.CPUSet
	}
	return cgroup.CPU
}

// TestOrderIsAccepted: for random trees and two random states that the kernel accepts, the steps from one to the
// other are accepted one by one, no task is ever without a CPU, and the end is what was wanted.
func TestOrderIsAccepted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.SampledFrom([]cgroup.Version{cgroup.V1, cgroup.V2}).Draw(t, "version")
		config := cgroupmodel.V1("0-5")
		if v == cgroup.V2 {
			config = cgroupmodel.V2("0-5")
		}
		k := cgroupmodel.New(config)
		paths := []string{"/a", "/a/b", "/a/b/c", "/a/d", "/e", "/e/f"}
		must := func(err error) {
			if err != nil {
				t.Fatal(err)
			}
		}
		if v == cgroup.V2 {
			must(k.Write(cgroup.CPU, "/", "cgroup.subtree_control", "+cpu +cpuset"))
		}
		first, last := drawState(t, v, paths, "from "), drawState(t, v, paths, "to ")
		for _, path := range paths {
			must(k.Make(cgroup.CPU, path))
			if v == cgroup.V1 {
				must(k.Make(cgroup.CPUSet, path))
			} else if path == "/a" || path == "/a/b" || path == "/e" {
				must(k.Write(cgroup.CPU, path, "cgroup.subtree_control", "+cpu +cpuset"))
			}
			must(k.Write(cgroup.CPUSet, path, "cpuset.mems", "0"))
			values := text(v, first[path])
			for _, file := range []string{"cpu.cfs_period_us", "cpu.cfs_quota_us", "cpu.max", "cpuset.cpus"} {
				if value, ok := values[file]; ok {
					must(k.Write(controllerOf(file), path, file, value))
				}
			}
		}
		for i, path := range []string{"/a/b/c", "/a/d", "/e/f"} {
			k.Spawn(path, 100+i)
		}
		s := change.State{Versions: map[cgroup.Controller]cgroup.Version{cgroup.CPU: v, cgroup.CPUSet: v},
			Values: map[change.Setting]string{}}
		var changes []change.Change
		for _, path := range paths {
			for file, to := range text(v, last[path]) {
				c := controllerOf(file)
				from, err := k.Read(c, path, file)
				must(err)
				s.Values[change.Setting{Controller: c, Path: path, File: file}] = from
				changes = append(changes, change.Change{Kind: change.KindFile, Controller: c, Path: path, File: file, From: from, To: to})
			}
		}
		steps, err := change.Order(s, changes)
		must(err)
		for _, c := range steps {
			now, err := k.Read(c.Controller, c.Path, c.File)
			must(err)
			if !change.Same(c.File, now, c.From) {
				t.Fatalf("%s: From is %q, there is %q", c.Key(), c.From, now)
			}
			if err := k.Write(c.Controller, c.Path, c.File, c.To); err != nil {
				t.Fatalf("%v\nsteps %q", err, lines(steps))
			}
			if bad := k.Check(); len(bad) > 0 {
				t.Fatalf("after %s: %v", c.Key(), bad)
			}
		}
		for _, c := range changes {
			now, err := k.Read(c.Controller, c.Path, c.File)
			must(err)
			if !change.Same(c.File, now, c.To) {
				t.Errorf("%s: wanted %q, is %q", c.Key(), c.To, now)
			}
		}
	})
}
