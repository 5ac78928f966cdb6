package apply

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/internal/txn/change"
	"github.com/unthrottle/unthrottle/test/lab/require"
)

// transactions are three that overlap: the first and the second lift the same ancestor's quota, the third makes a
// cpuset (v1) or enables the controller (v2).
func transactions(v cgroup.Version, root, last string) []func() (txn.Purpose, []change.Change) {
	s := &scene{v: v}
	pod := func(name string) string { return root + "/pods/" + name }
	pin := func() (txn.Purpose, []change.Change) {
		changes := append(s.unlimited(pod("a")), s.unlimited(root+"/pods")...)
		return txn.Purpose{Target: txn.Target{Path: pod("a")}, Remedy: "pin"},
			append(changes, cpus(pod("a"), last), without(pod("b"), last), without(pod("c"), last))
	}
	raise := func() (txn.Purpose, []change.Change) {
		return txn.Purpose{Target: txn.Target{Path: pod("c")}, Remedy: "raise"}, append(s.unlimited(pod("c")), s.unlimited(root+"/pods")...)
	}
	alone := func() (txn.Purpose, []change.Change) {
		purpose := txn.Purpose{Target: txn.Target{Path: root + "/svc"}, Remedy: "pin"}
		if v == cgroup.V2 {
			return purpose, append(s.unlimited(root+"/svc"),
				change.Change{Kind: change.KindSubtree, Controller: cgroup.CPUSet, Path: root + "/svc", To: "+cpuset"},
				cpus(root+"/svc/unit", last))
		}
		mems := cpus(root+"/svc", "0")
		mems.File = cgroup.FileMems
		return purpose, append(s.unlimited(root+"/svc"),
			change.Change{Kind: change.KindCgroup, Controller: cgroup.CPUSet, Path: root + "/svc"},
			cpus(root+"/svc", last), mems,
			change.Change{Kind: change.KindTask, Controller: cgroup.CPUSet, From: root, To: root + "/svc",
				MembersController: cgroup.CPU, MembersPath: root + "/svc"})
	}
	return []func() (txn.Purpose, []change.Change){pin, raise, alone}
}

// writeForEver applies and restores crosswise until it is killed; all that it applies is on trial for so long.
func writeForEver(root, stateDir string, trial time.Duration) error {
	h, err := cgroup.Open("/proc")
	if err != nil {
		return err
	}
	boot, err := BootID("/proc")
	if err != nil {
		return err
	}
	env := Env{FS: h, StateDir: stateDir, BootID: boot, By: "child", Scope: root, Proc: NewProc("/proc")}
	v, _ := h.Version(cgroup.CPU)
	_, online, err := cgroup.CPUs(h, h.Top(cgroup.CPUSet))
	if err != nil {
		return err
	}
	all := online.List()
	txns := transactions(v, root, strconv.Itoa(all[len(all)-1]))
	fmt.Println("ready")
	ctx := context.Background()
	for i := 0; ; i++ {
		var ids []string
		for n := range txns {
			purpose, changes := txns[(i+n)%len(txns)]()
			purpose.Trial = trial
			r, err := Apply(ctx, env, purpose, changes)
			if err != nil {
				return err
			}
			ids = append(ids, r.ID)
		}
		if _, err := Restore(ctx, env, Selector{IDs: []string{ids[i%len(ids)]}}); err != nil {
			return err
		}
		if _, err := Restore(ctx, env, Selector{}); err != nil {
			return err
		}
	}
}

// TestKilledOnTheRealKernel kills a process that applies and restores for real, at random times. Whatever it was
// doing, one restore brings back every byte. Where all was on trial, the next writer does.
func TestKilledOnTheRealKernel(t *testing.T) {
	require.EachCgroup(t, "the files that are written")
	for _, v := range []cgroup.Version{cgroup.V1, cgroup.V2} {
		t.Run(v.String(), func(t *testing.T) {
			r := newReal(t, v)
			before := r.snapshot()
			seed := uint64(time.Now().UnixNano())
			chance := rand.New(rand.NewPCG(seed, 0))
			unfinished := map[string]int{}
			for round := range max(10, require.Rounds(t, 40)) {
				kind := []string{childWriter, childTrier}[round%2]
				cmd, out := startChild(t, kind, envRoot+"="+r.root, envState+"="+r.env.StateDir)
				if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
					t.Fatalf("the child did not start: %q, %v", line, err)
				}
				// From 1 ms to half a second, each order of magnitude in turn: on a fast machine as on a slow one some
				// are within the first transaction and some in the middle of many.
				time.Sleep(time.Duration(1000<<(5*round%9)+chance.IntN(1000)) * time.Microsecond)
				r.must(cmd.Process.Kill())
				_ = cmd.Wait()
				open, err := Status(r.env)
				r.must(err)
				for _, f := range open {
					unfinished[f.Verdict]++
				}
				// What was on trial needs no more than the next writer.
				res, err := Recover(t.Context(), r.env)
				if kind == childWriter {
					res, err = Restore(t.Context(), r.env, Selector{})
				}
				if err != nil || len(res.Skipped) > 0 {
					t.Fatalf("round %d, seed %d: %v, skipped %v", round, seed, err, res.Skipped)
				}
				if diff := cmp.Diff(before, r.snapshot()); diff != "" {
					t.Fatalf("round %d, seed %d: not as before:\n%s", round, seed, diff)
				}
			}
			t.Logf("transactions found open: %v", unfinished)
			if len(unfinished) == 0 {
				t.Error("no round was killed with anything in force")
			}
		})
	}
}

// TestInheritedListOnTheRealKernel: a v2 list that was empty comes back empty where the kernel takes that, and else
// as all that the parent has, which is said.
func TestInheritedListOnTheRealKernel(t *testing.T) {
	require.EachCgroup(t, "the files that are written")
	r := newReal(t, cgroup.V2)
	path := r.path("/pods/d")
	r.must(r.h.Make(cgroup.CPU, path))
	cmd, _ := startChild(t, childSleeper)
	r.must(r.h.Attach(cgroup.CPU, path, cmd.Process.Pid))
	before := r.snapshot()
	done, err := Apply(t.Context(), r.env, txn.Purpose{}, []change.Change{without(path, r.last)})
	if err != nil || len(done.Writes) != 1 {
		t.Fatalf("%+v, %v", done, err)
	}
	back, err := Restore(t.Context(), r.env, Selector{})
	r.must(err)
	after := r.snapshot()
	if len(back.Skipped) > 0 {
		if back.Skipped[0].Why != WhyNotCleared {
			t.Fatalf("skipped %v", back.Skipped)
		}
		file := "cpuset" + path + "/" + cgroup.FileCPUs
		if after[file] != before["cpuset"+path+"/"+cgroup.EffectiveCPUsFile(cgroup.V2)] {
			t.Errorf("it has %q", after[file])
		}
		for _, c := range []string{"cpu", "cpuset"} {
			after[c+path+"/"+cgroup.FileCPUs] = before[c+path+"/"+cgroup.FileCPUs]
		}
	}
	t.Logf("skipped %v", back.Skipped)
	if diff := cmp.Diff(before, after); diff != "" {
		t.Error(diff)
	}
}
