package agent

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup/cgroupmodel"
	"github.com/unthrottle/unthrottle/internal/see/observe"
	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/internal/txn/apply"
	"github.com/unthrottle/unthrottle/internal/txn/change"
	"github.com/unthrottle/unthrottle/internal/txn/journal"
)

// A remedy of the agent's own with which its container is stopped longer than before is found, over ten minutes and not for one bad one.
func TestWorsened(t *testing.T) {
	held := func(change func(*txn.InForce)) txn.InForce {
		h := txn.InForce{ID: "1", Target: "/a", By: "agent", Outcome: &txn.Outcome{Before: &txn.Figures{StoppedPerSecondHigh: new(0.2)}}}
		if change != nil {
			change(&h)
		}
		return h
	}
	for name, c := range map[string]struct {
		held    txn.InForce
		stopped func(minute int) float64
		want    bool
	}{
		"longer":             {held(nil), func(int) float64 { return 0.4 }, true},
		"as before":          {held(nil), func(int) float64 { return 0.2 }, false},
		"one bad minute":     {held(nil), func(m int) float64 { return map[bool]float64{true: 0.9, false: 0.1}[m == 3] }, false},
		"somebody else's":    {held(func(h *txn.InForce) { h.By = "unthrottle fix, user root" }), func(int) float64 { return 0.4 }, false},
		"on trial":           {held(func(h *txn.InForce) { h.Trial = &txn.Trial{} }), func(int) float64 { return 0.4 }, false},
		"before is not told": {held(func(h *txn.InForce) { h.Outcome = &txn.Outcome{} }), func(int) float64 { return 0.4 }, false},
	} {
		ch := newChooser(rules(nil), "")
		ch.by = "agent"
		var found []worse
		for second := range int(watchedFor / time.Second) {
			o := seen("/a", c.stopped(second/60))
			o.UsedCPUs = new(0.5)
			upkeep := txn.InForce{ID: "2", Target: "/a", By: "agent", Parameters: map[string]string{remedy.ParamUpkeep: "1"}}
			found = append(found, ch.worsened([]observe.Observation{o}, byTarget([]txn.InForce{c.held, upkeep}))...)
		}
		if (len(found) > 0) != c.want || c.want && (!strings.Contains(found[0].because, "stopped for 400 ms/s over 10 min") ||
			*found[0].after.UsedCPUs < 0.49) {
			t.Errorf("%s: %+v", name, found)
		}
	}
}

// A remedy that does harm each time after it was kept waits for twice as long each time. One that cannot be taken back now, because
// another writer is at work, is not told as undone, and is tried again soon.
func TestUndoWorse(t *testing.T) {
	k := cgroupmodel.New(cgroupmodel.V1("0-3"))
	if err := errors.Join(k.Make(cgroup.CPU, "/a"), k.Write(cgroup.CPU, "/a", "cpu.cfs_quota_us", "50000")); err != nil {
		t.Fatal(err)
	}
	a, _, _ := spreadingAgent(t)
	a.Env = apply.Env{FS: k, StateDir: a.Env.StateDir, BootID: "this", By: "agent", LockWait: time.Millisecond}
	ch := a.chooser
	var waits []time.Duration
	for round := range 3 {
		done, err := apply.Apply(t.Context(), a.Env, txn.Purpose{Target: txn.Target{Path: "/a", Name: "app"}, Remedy: "burst"},
			[]change.Change{{Kind: change.KindFile, Op: change.OpSet, Controller: cgroup.CPU, Path: "/a", File: "cpu.cfs_burst_us",
				From: "0", To: "50000"}})
		if err != nil {
			t.Fatal(err)
		}
		held := &txn.InForce{ID: done.ID, Target: "/a", Outcome: &txn.Outcome{Before: &txn.Figures{}}}
		w := worse{watch: &watch{id: done.ID, stopped: time.Minute, over: watchedFor}, held: held, because: "stopped for longer"}
		if round == 0 {
			other, err := journal.Open(t.Context(), a.Env.StateDir, journal.Options{})
			if err != nil {
				t.Fatal(err)
			}
			a.undoWorse(t.Context(), ch, []worse{w})
			if err := other.Close(); err != nil {
				t.Fatal(err)
			}
			if next := ch.watches["/a"]; next == nil || next.over >= watchedFor || next.over < watchedFor/2 || len(ch.retry) > 0 {
				t.Errorf("while the journal is locked: %+v, %v", next, ch.retry)
			}
			if now, err := apply.Status(a.Env); err != nil || len(now) != 1 || now[0].Outcome != nil {
				t.Errorf("while the journal is locked: %+v, %v", now, err)
			}
		}
		before := time.Now()
		a.undoWorse(t.Context(), ch, []worse{w})
		if now, err := apply.Status(a.Env); err != nil || len(now) != 0 {
			t.Fatalf("%+v, %v", now, err)
		}
		waits = append(waits, ch.retry["/a"].Sub(before).Round(time.Minute))
		ch.tried("/a", time.Now(), 0) // it is tried again, and kept
	}
	if want := []time.Duration{retryAfter, 2 * retryAfter, 4 * retryAfter}; !slices.Equal(waits, want) {
		t.Errorf("waits %v, want %v", waits, want)
	}
}
