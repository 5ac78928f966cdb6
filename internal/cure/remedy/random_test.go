package remedy

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup/cgroupmodel"
	"github.com/unthrottle/unthrottle/internal/txn/apply"
)

// randomHost draws a host: a tree of cgroups with limits, weights, processes,
// cpusets of their own, and for the v1 hierarchies some without a counterpart.
func randomHost(t *rapid.T, state string) (h *host, leaves []container.Container, inner []string) {
	last := rapid.SampledFrom([]int{1, 2, 3, 5, 7, 11, 15}).Draw(t, "lastCPU")
	kernels := configs(fmt.Sprintf("0-%d", last))
	old := kernels["v2"]
	old.ClearsPopulated = false
	kernels["v2 before 7.0"] = old
	name := rapid.SampledFrom([]string{"v1", "v1 together", "v2", "v2 before 7.0"}).Draw(t, "kernel")
	h = newHost(t, kernels[name], state)
	h.noClear = name == "v2 before 7.0"
	pid := 100
	h.hand("/", cgroup.CPU)
	handed := rapid.Bool().Draw(t, "cpuset handed down")
	if handed {
		h.hand("/", cgroup.CPUSet)
	}
	h.k.Spawn("/", 1)
	var grow func(path string, depth int, sets bool)
	grow = func(path string, depth int, sets bool) {
		for i := range rapid.IntRange(1, 3).Draw(t, "children") {
			child := cgroup.Join(path, fmt.Sprintf("g%d", i))
			here := sets && !(h.v == cgroup.V1 && !h.oneTree && rapid.IntRange(0, 5).Draw(t, "no set") == 0)
			h.makeIn(cgroup.CPU, child)
			if here && !h.oneTree {
				h.makeIn(cgroup.CPUSet, child)
			}
			if h.v == cgroup.V1 && here {
				for _, file := range []string{cgroup.FileCPUs, cgroup.FileMems} {
					h.write(cgroup.CPUSet, child, file, h.read(cgroup.CPUSet, path, file))
				}
			}
			h.adorn(t, child, here && (handed || h.v == cgroup.V1), last)
			if depth < 2 && rapid.IntRange(0, 2).Draw(t, "inner") > 0 {
				h.hand(child, cgroup.CPU)
				if handed {
					h.hand(child, cgroup.CPUSet)
				}
				grow(child, depth+1, here)
				inner = append(inner, child)
				if h.v == cgroup.V1 && rapid.IntRange(0, 9).Draw(t, "crowded") == 0 {
					pid++
					h.k.Spawn(child, pid)
				}
				continue
			}
			for range rapid.IntRange(0, 2).Draw(t, "processes") {
				pid++
				h.k.Spawn(child, pid)
			}
			leaves = append(leaves, h.contain(child))
		}
	}
	grow("/", 0, true)
	for _, c := range leaves {
		if set := c.Group.CPUSetPath; h.v == cgroup.V1 && set != "/" && rapid.IntRange(0, 9).Draw(t, "exclusive") == 0 {
			_ = h.k.Write(cgroup.CPUSet, set, cgroup.FileExclusiveV1, "1") // refused where a sibling has its CPUs
		}
	}
	for _, c := range leaves {
		if h.v == cgroup.V2 && handed && rapid.IntRange(0, 9).Draw(t, "partition") == 0 {
			_ = h.k.Write(cgroup.CPUSet, c.Group.Path, cgroup.FilePartition, "root") // invalid where it has no CPUs of its own
		}
	}
	return h, leaves, inner
}

// adorn gives a cgroup a limit, a weight and CPUs, where the kernel lets it.
func (h *host) adorn(t *rapid.T, path string, sets bool, last int) {
	if rapid.IntRange(0, 2).Draw(t, "limited") > 0 {
		cur, err := cgroup.ReadLimit(h.k, path)
		if err != nil {
			t.Fatal(err)
		}
		want := cur
		want.Quota = time.Duration(rapid.IntRange(2, 60).Draw(t, "quota")) * 10 * time.Millisecond
		for _, w := range cgroup.LimitWrites(h.v, cur, want, false) {
			_ = h.k.Write(cgroup.CPU, path, w.File, w.Value) // v1 refuses one above the parent's
		}
	}
	if rapid.IntRange(0, 3).Draw(t, "weighed") == 0 {
		h.shares(path, uint64(rapid.IntRange(2, 3000).Draw(t, "shares")))
	}
	if sets && rapid.IntRange(0, 7).Draw(t, "narrow") == 0 {
		from := rapid.IntRange(0, last).Draw(t, "narrow from")
		cpus := fmt.Sprintf("%d-%d", from, rapid.IntRange(from, last).Draw(t, "narrow to"))
		_ = h.k.Write(cgroup.CPUSet, path, cgroup.FileCPUs, cpus)
	}
}

// randomRequest draws a remedy.
func randomRequest(t *rapid.T) Request {
	r := Request{Kind: rapid.SampledFrom([]Kind{Pin, Pin, Pin, Narrow, Burst, Period, Cap, Weight, Raise, Secondary}).Draw(t, "remedy")}
	if r.Kind == Pin && rapid.Bool().Draw(t, "sized") {
		r.CPUs = rapid.IntRange(1, 3).Draw(t, "cpus")
	}
	r.Shares = r.Kind == Pin && rapid.IntRange(0, 2).Draw(t, "lends") == 0
	r.Strict = r.Kind == Secondary && rapid.Bool().Draw(t, "strict")
	if (r.Kind == Burst || r.Kind == Period) && rapid.Bool().Draw(t, "paced") {
		r.Period = time.Duration(rapid.IntRange(10, 200).Draw(t, "period")) * time.Millisecond
	}
	r.WeightFromLimit = r.Kind == Weight && rapid.Bool().Draw(t, "weighed")
	return r
}

// besideOf are the paths of leaves in the cgroup that holds a container, but its own.
func besideOf(target container.Container, leaves []container.Container) (paths []string) {
	for _, l := range leaves {
		if p := l.Group.Path; p != target.Group.Path && path.Dir(p) == path.Dir(target.Group.Path) {
			paths = append(paths, p)
		}
	}
	return paths
}

// reconcileOrRevoke does at times what the agent does: it reconciles what is in force, or revokes
// what is lent, which leaves nothing to revoke.
func (h *host) reconcileOrRevoke(t *rapid.T) {
	switch rapid.IntRange(0, 3).Draw(t, "later") {
	case 0:
		h.upkeep()
	case 1:
		for _, lender := range h.sharings() {
			if p := h.revoke(lender.ID); len(p.Changes) > 0 {
				h.apply(p)
			}
			if again := h.revoke(lender.ID); len(again.Changes) > 0 {
				t.Fatalf("%s still lends: %+v", lender.Target, again.Changes)
			}
		}
	}
}

// TestRandomHosts applies remedies to random containers of random hosts and
// undoes them in a random order. At every step each task has a CPU. While a
// pin is in force no other container can run on its CPUs. In the end every setting is
// as it was (a populated cpuset that was empty is not, on v2 before 7.0: the
// kernel refuses that).
func TestRandomHosts(t *testing.T) {
	if !testing.Short() && !flagGiven("rapid.checks") {
		// The library's default of 100 draws too few hosts for what is rare.
		if err := flag.Set("rapid.checks", "500"); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { flag.Set("rapid.checks", "100") })
	}
	made, refused := map[Kind]int{}, map[Kind]int{}
	dirs, n := quickDir(t), 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		h, leaves, inner := randomHost(t, filepath.Join(dirs, strconv.Itoa(n)))
		if rapid.IntRange(0, 3).Draw(t, "scoped") == 0 {
			h.options.Scope = "/g0"
		}
		before := h.k.Snapshot().Settings()
		h.k.Before = func(op cgroupmodel.Op) error {
			if wrong := h.k.Check(); op.Changes() && len(wrong) > 0 {
				t.Fatalf("before %s: %q", op, wrong)
			}
			return nil
		}
		pins := map[string]Plan{}
		var inForce []string
		for range rapid.IntRange(1, 4).Draw(t, "remedies") {
			target := rapid.SampledFrom(leaves).Draw(t, "target")
			if len(inner) > 0 && rapid.IntRange(0, 4).Draw(t, "no leaf") == 0 {
				target = h.at(rapid.SampledFrom(inner).Draw(t, "inner"))
			}
			target = h.refresh(target)
			r := randomRequest(t)
			if beside := besideOf(target, leaves); r.Kind == Cap && len(beside) > 0 { // nothing tells which of them uses most
				r.Sibling, r.To = rapid.SampledFrom(beside).Draw(t, "sibling"), rapid.Float64Range(0.05, 0.5).Draw(t, "to")
			}
			p, err := Make(h.facts(), target, r)
			var no *Refused
			if errors.As(err, &no) {
				refused[r.Kind]++
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			made[r.Kind]++
			h.apply(p)
			inForce = append(inForce, target.Group.Path)
			if r.Kind == Pin {
				pins[target.Group.Path] = p
			}
			h.reconcileOrRevoke(t)
			for _, pin := range pins {
				if wrong := h.exclusive(pin.Target, pin.CPUs); len(wrong) > 0 {
					t.Fatalf("%s pinned to %s: %q", pin.Target.Group.Path, pin.CPUs, wrong)
				}
			}
		}
		for _, path := range rapid.Permutation(inForce).Draw(t, "order") {
			for _, skip := range h.restore(path).Skipped {
				if !h.noClear || skip.Why != apply.WhyNotCleared {
					t.Fatalf("restore %s: %+v", path, skip)
				}
			}
			delete(pins, path)
			for _, pin := range pins {
				if wrong := h.exclusive(pin.Target, pin.CPUs); len(wrong) > 0 {
					t.Fatalf("after restoring %s: %s pinned to %s: %q", path, pin.Target.Group.Path, pin.CPUs, wrong)
				}
			}
		}
		diff := slices.DeleteFunc(before.Diff(h.k.Snapshot().Settings()), func(line string) bool {
			return h.noClear && strings.Contains(line, ` cpuset.cpus: was "", is `)
		})
		if len(diff) > 0 {
			t.Fatalf("not as it was: %q", diff)
		}
	})
	t.Log("plans made", made, "refused", refused)
	for _, kind := range Kinds() {
		// Twenty hosts may leave one out, and any number of them cap: a quota that two containers share, and the one without less.
		if made[kind] == 0 && !testing.Short() && kind != Cap {
			t.Errorf("no random host let %s be applied", kind)
		}
	}
}

func flagGiven(name string) (given bool) {
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == name })
	return given
}

// quickDir is a directory in memory where there is such, since each write of a
// journal goes to the disk.
func quickDir(t *testing.T) string {
	dir, err := os.MkdirTemp("/dev/shm", "unthrottle-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// at is a cgroup that is no leaf and in no list, named by its path.
func (h *host) at(path string) container.Container {
	c := h.contain(path)
	h.containers = h.containers[:len(h.containers)-1]
	return c
}

// refresh looks up the cpuset of a container again: a pin may have made one.
func (h *host) refresh(c container.Container) container.Container {
	pids, err := h.k.Procs(cgroup.CPU, c.Group.Path)
	if err != nil {
		h.t.Fatal(err)
	}
	for _, pid := range pids {
		c.Group.CPUSetPath, _ = h.k.At(pid, cgroup.CPUSet)
	}
	for i := range h.containers {
		if h.containers[i].Group.Path == c.Group.Path {
			h.containers[i] = c
		}
	}
	return c
}
