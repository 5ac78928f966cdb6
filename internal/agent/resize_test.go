package agent

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup/cgroupmodel"
	"github.com/unthrottle/unthrottle/internal/see/observe"
	"github.com/unthrottle/unthrottle/internal/see/recording"
	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/internal/txn/apply"
	"github.com/unthrottle/unthrottle/internal/txn/change"
)

// A resize below a burst of ours goes through: the burst is lowered first, by a transaction that can be undone.
func TestMakeRoom(t *testing.T) {
	for _, v := range []cgroup.Version{cgroup.V1, cgroup.V2} {
		config := cgroupmodel.V1("0-3")
		quota, burst, lower := "cpu.cfs_quota_us", "cpu.cfs_burst_us", "30000"
		if v == cgroup.V2 {
			config, quota, burst, lower = cgroupmodel.V2("0-3"), "cpu.max", "cpu.max.burst", "30000 100000"
		}
		k := cgroupmodel.New(config)
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatalf("%v: %v", v, err)
			}
		}
		if v == cgroup.V2 {
			must(k.Write(cgroup.CPU, "/", cgroup.FileSubtreeControl, "+cpu"))
		}
		must(k.Make(cgroup.CPU, "/app"))
		must(k.Write(cgroup.CPU, "/app", quota, map[cgroup.Version]string{cgroup.V1: "50000", cgroup.V2: "50000 100000"}[v]))
		a := &agent{wake: make(chan struct{}, 1), Config: Config{Direct: k, Log: slog.New(slog.DiscardHandler),
			Env: apply.Env{FS: k, StateDir: t.TempDir(), BootID: "this", By: "test"}}}
		_, err := apply.Apply(t.Context(), a.Env, txn.Purpose{Target: txn.Target{Path: "/app", Name: "app"}, Remedy: "burst"},
			[]change.Change{{Kind: change.KindFile, Op: change.OpSet, Controller: cgroup.CPU, Path: "/app", File: burst,
				From: "0", To: "50000"}})
		must(err)
		if k.Write(cgroup.CPU, "/app", quota, lower) == nil {
			t.Fatalf("%v: the kernel takes a quota below the burst: this test is about nothing", v)
		}
		lowered := a.makeRoom(t.Context(), func(path string) bool { return path == "/app" },
			cgroup.Limit{Quota: 30 * time.Millisecond, Period: 100 * time.Millisecond})
		if len(lowered) != 1 || lowered[0].Value != "30000" || lowered[0].File != burst {
			t.Errorf("%v: lowered %+v", v, lowered)
		}
		must(k.Write(cgroup.CPU, "/app", quota, lower))
		_, err = apply.Restore(t.Context(), a.Env, apply.Selector{})
		must(err)
		if l, err := cgroup.ReadLimit(k, "/app"); err != nil || l.Burst != 0 || l.Quota != 30*time.Millisecond {
			t.Errorf("%v: restored %+v, %v", v, l, err)
		}
	}
}

// A container whose limit others change is known as such, but not by what we wrote.
func TestResizedByOthers(t *testing.T) {
	c := newChooser(policy.Rules{Bound: 0.01}, "")
	c.pods = podsOf(nil)
	of := container.Container{Group: cgroup.Group{Path: "/app"}, Name: "app"}
	changed := observe.Observation{Container: of, LimitChanges: []recording.LimitChange{{Before: recording.Level{Path: "/app"}}}}
	above := changed
	above.LimitChanges = []recording.LimitChange{{Before: recording.Level{Path: "/"}}}
	now := time.Unix(1000, 0)
	for _, round := range []struct {
		o    observe.Observation
		held []txn.InForce
		want bool
	}{{above, nil, false}, {changed, []txn.InForce{{Target: "/app"}}, false}, {changed, nil, true},
		{observe.Observation{Container: of}, nil, true}} {
		c.round([]observe.Observation{round.o}, round.held, now)
		if got := c.standings["/app"].resized; got != round.want {
			t.Errorf("%+v: resized %v", round, got)
		}
	}
}

// A kubelet that resizes a pod whose container is narrowed with a burst, and has one on pod level, is refused nothing: it
// lowers the container's limit first, then the pod's. Restore then leaves no burst.
func TestMakeRoomInAPod(t *testing.T) {
	k := cgroupmodel.New(cgroupmodel.V2("0-3"))
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	a := &agent{wake: make(chan struct{}, 1), Config: Config{Direct: k, Log: slog.New(slog.DiscardHandler),
		Env: apply.Env{FS: k, StateDir: t.TempDir(), BootID: "this", By: "test"}}}
	var changes []change.Change
	parent := "/"
	for _, level := range []struct{ path, quota string }{{"/pod", "80000"}, {"/pod/app", "50000"}} {
		must(k.Write(cgroup.CPU, parent, cgroup.FileSubtreeControl, "+cpu"))
		must(k.Make(cgroup.CPU, level.path))
		must(k.Write(cgroup.CPU, level.path, "cpu.max", level.quota+" 100000"))
		parent = level.path
		changes = append(changes, change.Change{Kind: change.KindFile, Op: change.OpSet, Controller: cgroup.CPU,
			Path: level.path,
			File: "cpu.max.burst", From: "0", To: level.quota})
	}
	_, err := apply.Apply(t.Context(), a.Env, txn.Purpose{Target: txn.Target{Path: "/pod/app", Name: "app"},
		Remedy: "narrow"}, changes)
	must(err)
	a.makeRoom(t.Context(), func(path string) bool { return path == "/pod/app" },
		cgroup.Limit{Quota: 30 * time.Millisecond, Period: 100 * time.Millisecond})
	must(k.Write(cgroup.CPU, "/pod/app", "cpu.max", "30000 100000"))
	must(k.Write(cgroup.CPU, "/pod", "cpu.max", "60000 100000"))
	_, err = apply.Restore(t.Context(), a.Env, apply.Selector{})
	must(err)
	for path, quota := range map[string]time.Duration{"/pod": 60 * time.Millisecond,
		"/pod/app": 30 * time.Millisecond} {
		if l, err := cgroup.ReadLimit(k, path); err != nil || l.Burst != 0 || l.Quota != quota {
			t.Errorf("%s: %+v, %v", path, l, err)
		}
	}
}

// runcWrites are a runtime's writes of a limit on cgroup v1 (opencontainers/cgroups, fs/cpu.go): the period is tried again after the quota.
func runcWrites(k *cgroupmodel.Kernel, path, quota string) error {
	period := func() error { return k.Write(cgroup.CPU, path, "cpu.cfs_period_us", "100000") }
	first := period()
	if err := k.Write(cgroup.CPU, path, "cpu.cfs_quota_us", quota); err != nil || first == nil {
		return err
	}
	return period()
}

// A resize finds what the owner wrote: with our period in force a runtime's writes would end half done, at a tenth of the limit.
func TestMakeRoomForAnotherPeriod(t *testing.T) {
	for name, quotas := range map[string]struct{ quota, pod string }{"raised": {"40000", "40000"}, "lowered": {"10000", "10000"}} {
		k := cgroupmodel.New(cgroupmodel.V1("0-3"))
		a := &agent{wake: make(chan struct{}, 1), Config: Config{Direct: k, Log: slog.New(slog.DiscardHandler),
			Env: apply.Env{FS: k, StateDir: t.TempDir(), BootID: "this", By: "test"}}}
		var all []change.Change
		for _, path := range []string{"/pod", "/pod/app"} {
			if err := errors.Join(k.Make(cgroup.CPU, path), k.Write(cgroup.CPU, path, "cpu.cfs_quota_us", "20000")); err != nil {
				t.Fatal(err)
			}
			for _, c := range [][3]string{{"cpu.cfs_period_us", "100000", "1000000"}, {"cpu.cfs_quota_us", "20000", "200000"},
				{"cpu.cfs_burst_us", "0", "200000"}} {
				all = append(all, change.Change{Kind: change.KindFile, Op: change.OpSet, Controller: cgroup.CPU, Path: path,
					File: c[0], From: c[1], To: c[2]})
			}
		}
		if _, err := apply.Apply(t.Context(), a.Env, txn.Purpose{Target: txn.Target{Path: "/pod/app", Name: "app"}, Remedy: "burst"},
			all); err != nil {
			t.Fatal(err)
		}
		lowered := a.makeRoom(t.Context(), func(path string) bool { return path == "/pod/app" },
			cgroup.Limit{Quota: 40 * time.Millisecond, Period: 100 * time.Millisecond})
		if len(lowered) != 2 || lowered[0].Value != "0" {
			t.Errorf("%s: lowered %+v", name, lowered)
		}
		// The kubelet raises the pod first, and lowers it last; it may find out which only once it failed.
		_ = runcWrites(k, "/pod/app", quotas.quota)
		if l, err := cgroup.ReadLimit(k, "/pod/app"); err != nil || l.Period != 100*time.Millisecond || l.Quota > 20*time.Millisecond {
			t.Errorf("%s: after the first attempt it has %+v, %v", name, l, err)
		}
		if err := errors.Join(runcWrites(k, "/pod", quotas.pod), runcWrites(k, "/pod/app", quotas.quota)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if held, err := apply.Status(a.Env); err != nil || len(held) > 0 {
			t.Errorf("%s: in force is %+v, %v", name, held, err)
		}
	}
}
