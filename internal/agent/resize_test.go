package agent

import (
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
		lowered := a.makeRoom(t.Context(), func(path string) bool { return path == "/app" }, 30*time.Millisecond)
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
