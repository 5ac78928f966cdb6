package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/cure/switchback"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup/cgroupmodel"
	"github.com/unthrottle/unthrottle/internal/see/observe"
	"github.com/unthrottle/unthrottle/internal/see/recording"
	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/internal/txn/apply"
	"github.com/unthrottle/unthrottle/internal/txn/change"
)

// spreadingOf is a trial of two remedies.
func spreadingOf(t *testing.T, path string) *spreading {
	t.Helper()
	state, err := switchback.Begin(switchback.Plan{Variants: 2, Block: time.Minute, Most: time.Hour, Wrong: wrongly, Seed: 3}, start)
	if err != nil {
		t.Fatal(err)
	}
	return &spreading{Version: spreadVersion, Cgroup: path, ID: 7, Name: "app", Names: []string{"burst 50ms", "narrow"}, State: state,
		Next: start, Gap: 5 * time.Minute}
}

// spreadingAgent has one such trial, of the container /a, whose rule asks for it.
func spreadingAgent(t *testing.T) (*agent, *spreading, observe.Observation) {
	t.Helper()
	a := &agent{chooser: newChooser(policy.Rules{Mode: policy.Apply}, ""),
		Config: Config{Log: slog.New(slog.DiscardHandler), Env: apply.Env{StateDir: t.TempDir()}}}
	s := spreadingOf(t, "/a")
	a.chooser.spread["/a"] = s
	if err := s.write(a.Env.StateDir); err != nil {
		t.Fatal(err)
	}
	a.chooser.standings["/a"] = &standing{effective: policy.Effective{Rule: &policy.Rule{Auto: true, Verify: policy.VerifyProbe,
		Trial: policy.Trial{Most: time.Hour, Per: 24 * time.Hour, Over: 5 * time.Hour}}}}
	o := observe.Observation{CgroupID: 7, Container: container.Container{Name: "app", Group: cgroup.Group{Path: "/a"}}}
	return a, s, o
}

// A trial that is spread goes on in the next agent, with the same blocks to come.
func TestSpreadSurvives(t *testing.T) {
	a, s, _ := spreadingAgent(t)
	for range 5 {
		round, v := s.State.Next()
		s.State = s.State.Add(switchback.Block{Round: round, Variant: v, Began: start, LogTail: new(3.5), Requests: 40}, time.Minute)
	}
	if err := s.write(a.Env.StateDir); err != nil {
		t.Fatal(err)
	}
	next := &agent{chooser: newChooser(policy.Rules{}, ""), Config: a.Config}
	next.rememberSpread()
	got := next.chooser.spread["/a"]
	if !got.trying() || !reflect.DeepEqual(got.State.Blocks, s.State.Blocks) || !got.Next.Equal(s.Next) {
		t.Fatalf("%+v", got)
	}
	round, v := s.State.Next()
	if r, w := got.State.Next(); r != round || w != v {
		t.Errorf("it goes on with %d of round %d instead of %d of %d", w, r, v, round)
	}
	next.endSpread(got, spreadEnded)
	if all, unread, err := readSpread(a.Env.StateDir); len(all) != 0 || len(unread) != 0 || err != nil || next.chooser.spread["/a"] != nil {
		t.Errorf("ended: %+v, %v, %v", all, unread, err)
	}
}

// A cgroup may have a name that is not UTF-8: its trial goes on too, and what was taken back for a block is put in force there.
func TestSpreadOfANameThatIsNotUTF8(t *testing.T) {
	const path = "/p\xff\\xff"
	dir := t.TempDir()
	s := spreadingOf(t, path)
	s.Kept = &switchback.Kept{}
	of := change.Change{Path: path, MembersPath: path, Unit: path, From: path, To: path}
	s.Alone = &alone{Purpose: txn.Purpose{Target: txn.Target{Path: path}}, Changes: []change.Change{of}}
	if err := s.write(dir); err != nil {
		t.Fatal(err)
	}
	all, unread, err := readSpread(dir)
	if err != nil || len(unread) != 0 || len(all) != 1 {
		t.Fatalf("%v, %v, %v", all, unread, err)
	}
	got := all[0]
	if got.Cgroup != path || got.Alone.Purpose.Target.Path != path || got.Alone.Changes[0] != of {
		t.Errorf("%q, %+v", got.Cgroup, got.Alone)
	}
	if s.Alone.Changes[0] != of {
		t.Errorf("writing changed it: %+v", s.Alone)
	}
}

// Files that are no trials of this agent are removed and told; their container's trial begins anew.
func TestSpreadFilesOfOthers(t *testing.T) {
	whole, err := json.Marshal(spreadingOf(t, "/a"))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]string{
		"empty": "", "cut off": string(whole[:len(whole)/2]), "another version": strings.Replace(string(whole), `"version":2`, `"version":1`, 1),
		"a plan of nothing": strings.Replace(string(whole), `"block_ns":60000000000`, `"block_ns":0`, 1),
		"a variant too few": strings.Replace(string(whole), `"burst 50ms",`, "", 1),
		"a block of none":   strings.Replace(string(whole), `"blocks":null`, `"blocks":[{"variant":9}]`, 1),
		"too large":         string(whole) + strings.Repeat(" ", mostSpreadFile),
	} {
		dir := t.TempDir()
		file := filepath.Join(dir, spreadDir, "x.json")
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(c), 0o600); err != nil {
			t.Fatal(err)
		}
		if all, err := SpreadTrials(dir); len(all) != 0 || err != nil {
			t.Errorf("%s: status shows %+v, %v", name, all, err)
		}
		if _, err := os.Stat(file); err != nil {
			t.Errorf("%s: status removed it", name)
		}
		next := &agent{chooser: newChooser(policy.Rules{}, ""),
			Config: Config{Log: slog.New(slog.DiscardHandler), Env: apply.Env{StateDir: dir}}}
		if next.rememberSpread(); len(next.chooser.spread) != 0 {
			t.Errorf("%s: %+v", name, next.chooser.spread)
		}
		if _, err := os.Stat(file); err == nil {
			t.Errorf("%s: the file is there still", name)
		}
	}
	if all, err := SpreadTrials(t.TempDir()); all == nil || len(all) != 0 || err != nil {
		t.Errorf("without a folder: %v, %v", all, err)
	}
}

// Status shows each remedy that is tried beside leaving it, and of what was kept what it promised and what came.
func TestSpreadIsShown(t *testing.T) {
	a, s, _ := spreadingAgent(t)
	for range 6 {
		round, v := s.State.Next()
		b := switchback.Block{Round: round, Variant: v, Began: start, LogTail: new(4 - float64(v)/10), Requests: 40}
		s.State = s.State.Add(b, time.Minute)
	}
	s.State.Out[2] = "a request took 3 s"
	shown := func() SpreadTrial {
		t.Helper()
		if err := s.write(a.Env.StateDir); err != nil {
			t.Fatal(err)
		}
		all, err := SpreadTrials(a.Env.StateDir)
		if err != nil || len(all) != 1 {
			t.Fatalf("%+v, %v", all, err)
		}
		return all[0]
	}
	got := shown()
	burst, narrow := got.Variants[0], got.Variants[1]
	if got.Blocks != 6 || got.Kept != nil || burst.Pairs != 2 || math.Abs(*burst.Times-math.Exp(-0.1)) > 1e-9 || burst.Out != nil ||
		*narrow.Out != "a request took 3 s" {
		t.Errorf("%+v", got)
	}
	s.Kept, s.Transaction = &switchback.Kept{Plan: s.State.Plan, Promised: -0.5, Blocks: 40, Pairs: []float64{-0.4, -0.5}}, "id"
	got = shown()
	if k := got.Kept; len(got.Variants) != 0 || got.Blocks != 40 || k == nil || k.Transaction != "id" || k.Pairs != 2 || !k.Helps ||
		math.Abs(*k.Times-math.Exp(-0.45)) > 1e-9 || math.Abs(k.Promised-math.Exp(-0.5)) > 1e-9 {
		t.Errorf("kept: %+v", got)
	}
}

// A block comes when it is due, in no quiet time, beside no other trial, resize or remedy; a container that ended, started anew, or whose
// rule asks for no trial any more has none.
func TestWhenABlockIsDue(t *testing.T) {
	quiet := policy.Quiet{From: 3 * time.Hour, To: 5 * time.Hour} // start is 03:04:05
	other := observe.Observation{CgroupID: 9, Container: container.Container{Group: cgroup.Group{Path: "/b"}}}
	for name, c := range map[string]struct {
		change func(a *agent, s *spreading, o *observe.Observation)
		held   []txn.InForce
		gone   bool
		due    bool
		ended  bool
	}{
		"due":     {due: true},
		"not yet": {change: func(_ *agent, s *spreading, _ *observe.Observation) { s.Next = start.Add(time.Second) }},
		"quiet": {change: func(a *agent, _ *spreading, _ *observe.Observation) {
			a.chooser.known("/a").Trial.Quiet = quiet
		}},
		"another trial":   {held: []txn.InForce{{Target: "/b", Trial: &txn.Trial{}}}},
		"has a remedy":    {held: []txn.InForce{{Target: "/a"}}},
		"others have one": {held: []txn.InForce{{Target: "/b"}}, due: true},
		"a resize": {change: func(_ *agent, _ *spreading, o *observe.Observation) {
			o.LimitChanges = []recording.LimitChange{{}}
		}},
		"gone":         {gone: true, ended: true},
		"started anew": {change: func(_ *agent, _ *spreading, o *observe.Observation) { o.CgroupID = 8 }, ended: true},
		"rule is gone": {change: func(a *agent, _ *spreading, _ *observe.Observation) {
			a.chooser.standings["/a"].effective.Rule = nil
		}, ended: true},
		"rule observes": {change: func(a *agent, _ *spreading, _ *observe.Observation) {
			a.chooser.known("/a").Mode = policy.Observe
		}, ended: true},
		"limit is other": {change: func(_ *agent, _ *spreading, o *observe.Observation) {
			o.Levels = []cgroup.Level{{Path: "/a", Limit: cgroup.Limit{Quota: 50 * time.Millisecond, Period: 100 * time.Millisecond}}}
		}, ended: true},
		"rule is of an A/A test": {change: func(a *agent, _ *spreading, _ *observe.Observation) {
			a.chooser.known("/a").Trial.AA = true
		}, ended: true},
		"rule is other": {change: func(a *agent, _ *spreading, _ *observe.Observation) {
			a.chooser.known("/a").Trial.Over = 0
		}, ended: true},
	} {
		t.Run(name, func(t *testing.T) {
			a, s, o := spreadingAgent(t)
			if c.change != nil {
				c.change(a, s, &o)
			}
			round := []observe.Observation{other, o}
			if c.gone {
				round = round[:1]
			}
			got := a.dueSpread(round, c.held, start)
			if (got != nil) != c.due || (a.chooser.spread["/a"] == nil) != c.ended {
				t.Errorf("due %+v, ended %v", got, a.chooser.spread["/a"] == nil)
			}
			if _, err := os.Stat(s.file(a.Env.StateDir)); (err != nil) != c.ended {
				t.Errorf("its file: %v", err)
			}
		})
	}
}

// While a trial is spread, its container is no finding.
func TestSpreadIsNoFinding(t *testing.T) {
	for _, spread := range []bool{false, true} {
		chooser := trying(policy.Trial{Most: 2 * time.Minute, Per: 24 * time.Hour, Over: time.Hour})
		if spread {
			chooser.spread["/a"] = spreadingOf(t, "/a")
		}
		if found := persisted(chooser, []observe.Observation{limited("/a", 0.5)}, nil); (len(found) == 0) != spread {
			t.Errorf("spread %v: found %v", spread, paths(found))
		}
	}
}

// What was taken back for a block is in force again in the next agent, with its outcome, where the one before was killed in the middle.
func TestPutBackAfterAKill(t *testing.T) {
	k := cgroupmodel.New(cgroupmodel.V1("0-3"))
	if err := errors.Join(k.Make(cgroup.CPU, "/a"), k.Write(cgroup.CPU, "/a", "cpu.cfs_quota_us", "50000")); err != nil {
		t.Fatal(err)
	}
	a, s, o := spreadingAgent(t)
	a.Env = apply.Env{FS: k, StateDir: a.Env.StateDir, BootID: "this", By: "agent"}
	a.wake = make(chan struct{}, 1)
	purpose := txn.Purpose{Target: txn.Target{Path: "/a", Name: "app"}, Remedy: "burst", Parameters: map[string]string{"burst": "50ms"}}
	done, err := apply.Apply(t.Context(), a.Env, purpose, []change.Change{{Kind: change.KindFile, Op: change.OpSet, Controller: cgroup.CPU,
		Path: "/a", File: "cpu.cfs_burst_us", From: "0", To: "50000"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := apply.Record(a.Env, done.ID, txn.Outcome{Verdict: "better", Note: "0.5 times"}); err != nil {
		t.Fatal(err)
	}
	held, err := apply.Status(a.Env)
	if err != nil || len(held) != 1 {
		t.Fatalf("%v, %+v", err, held)
	}
	s.Transaction, s.Kept = done.ID, &switchback.Kept{Plan: s.State.Plan, Promised: -0.7, Blocks: 3}
	s.Alone = &alone{Purpose: purpose, Changes: held[0].Changes, Outcome: held[0].Outcome}
	if err := s.write(a.Env.StateDir); err != nil {
		t.Fatal(err)
	}
	if _, err := apply.Restore(t.Context(), a.Env, apply.Selector{IDs: []string{done.ID}}); err != nil {
		t.Fatal(err)
	}
	next := &agent{wake: a.wake, chooser: newChooser(policy.Rules{}, ""), Config: a.Config}
	next.rememberSpread()
	got := next.chooser.spread["/a"]
	if got == nil || got.Alone == nil || got.trying() {
		t.Fatalf("%+v", got)
	}
	next.chooser.standings = a.chooser.standings
	if due := next.dueSpread([]observe.Observation{o}, nil, start.Add(-time.Hour)); due == nil {
		t.Fatal("what is to be put back waits")
	}
	for ; got.Kept.Plan.Holdback(got.Kept.Blocks); got.Kept.Blocks++ { // this test is not about a block
	}
	next.holdback(t.Context(), got, finding{observation: o}, nil)
	held, err = apply.Status(a.Env)
	if err != nil || len(held) != 1 || held[0].ID != got.Transaction || held[0].Outcome == nil ||
		held[0].Outcome.Note != "0.5 times" || got.Alone != nil {
		t.Fatalf("%v, %+v, %+v", err, held, got)
	}
	if l, err := cgroup.ReadLimit(k, "/a"); err != nil || l.Burst != 50*time.Millisecond {
		t.Errorf("%+v, %v", l, err)
	}
	// Killed before it was taken back, or after it was put back: it is in force, and stays, without a second transaction.
	got.Alone = &alone{Purpose: purpose, Changes: held[0].Changes, Outcome: held[0].Outcome}
	if err := next.putBack(t.Context(), got); err != nil || got.Alone != nil || got.Transaction != held[0].ID {
		t.Errorf("%v: %+v", err, got)
	}
	// What somebody else took back is looked after no more.
	if _, err := apply.Restore(t.Context(), a.Env, apply.Selector{}); err != nil {
		t.Fatal(err)
	}
	if due := next.dueSpread([]observe.Observation{o}, nil, start.Add(time.Hour)); due != nil || next.chooser.spread["/a"] != nil {
		t.Errorf("%+v", due)
	}
}

// A block without its remedy that could not be measured now, as where the journal's disk is full, is the one that comes next.
func TestABlockThatWaitsIsNotLost(t *testing.T) {
	a, s, o := spreadingAgent(t)
	a.wake = make(chan struct{}, 1)
	a.List = func() ([]container.Container, error) { return nil, unix.ENOSPC }
	s.Kept = &switchback.Kept{Plan: s.State.Plan, Promised: -0.7}
	for ; !s.Kept.Plan.Holdback(s.Kept.Blocks); s.Kept.Blocks++ {
	}
	due := s.Kept.Blocks
	a.holdback(t.Context(), s, finding{observation: o}, nil)
	if s.Kept.Blocks != due || s.Next.After(time.Now().Add(staleRetry)) {
		t.Errorf("block %d comes next at %v, and %d was due", s.Kept.Blocks, s.Next, due)
	}
}

// Blocks are spread over the time that the rule gives: all that most has room for, and no more.
func TestGapOf(t *testing.T) {
	for _, c := range []struct{ over, most, lasts, want time.Duration }{
		{8 * time.Hour, 40 * time.Minute, 10 * time.Second, 2 * time.Minute}, // 240 blocks
		{10 * time.Minute, 2 * time.Minute, 8 * time.Second, 40 * time.Second},
		{168 * time.Hour, time.Hour, time.Minute, 168 * time.Minute},
	} {
		if got := gapOf(c.over, c.most, c.lasts); got != c.want {
			t.Errorf("%s of blocks of %s over %s: a block each %s, want %s", c.most, c.lasts, c.over, got, c.want)
		}
	}
}

// An agent that was killed while it kept a remedy leaves it to the next one: kept, or to be decided again.
func TestKilledWhileItKept(t *testing.T) {
	for name, c := range map[string]struct {
		held []txn.InForce
		kept string
	}{
		"kept":          {[]txn.InForce{{ID: "t1", Target: "/a", By: "agent", Remedy: "burst"}}, "t1"},
		"not yet":       {nil, ""},
		"somebody else": {[]txn.InForce{{ID: "t1", Target: "/a", By: "admin", Remedy: "burst"}}, ""},
	} {
		a, s, o := spreadingAgent(t)
		a.Env.By, s.Keeping = "agent", 1
		a.dueSpread([]observe.Observation{o}, c.held, start)
		if (s.Kept != nil) != (c.kept != "") || s.Transaction != c.kept {
			t.Errorf("%s: kept %+v in %q", name, s.Kept, s.Transaction)
		}
	}
}

// What the agent itself brings up to date, as for a resize, is compared on; what somebody else put in its place is not.
func TestKeptIsFollowed(t *testing.T) {
	for by, follows := range map[string]bool{"agent": true, "admin": false} {
		a, s, o := spreadingAgent(t)
		a.Env.By = "agent"
		s.Kept, s.Transaction, s.Remedy = &switchback.Kept{Plan: s.State.Plan, Promised: -0.7}, "t1", "burst"
		a.dueSpread([]observe.Observation{o}, []txn.InForce{{ID: "t2", Target: "/a", By: by, Remedy: "burst"}}, start)
		if got := a.chooser.spread["/a"]; (got != nil) != follows || follows && got.Transaction != "t2" {
			t.Errorf("by %s: %+v", by, got)
		}
	}
}

// A clock that was set back freezes no trial, and the rest of a write that was cut off is none.
func TestSpreadAfterOddEnds(t *testing.T) {
	a, s, _ := spreadingAgent(t)
	s.Next = time.Now().Add(365 * 24 * time.Hour)
	if err := s.write(a.Env.StateDir); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(s.file(a.Env.StateDir))
	if err != nil {
		t.Fatal(err)
	}
	rest := filepath.Join(a.Env.StateDir, spreadDir, "."+filepath.Base(s.file(a.Env.StateDir))+"123")
	if err := os.WriteFile(rest, text, 0o600); err != nil {
		t.Fatal(err)
	}
	next := &agent{chooser: newChooser(policy.Rules{}, ""), Config: a.Config}
	next.rememberSpread()
	if got := next.chooser.spread["/a"]; got == nil || got.Next.After(time.Now().Add(got.Gap)) {
		t.Errorf("%+v", got)
	}
	next.endSpread(next.chooser.spread["/a"], spreadEnded)
	if all, unread, err := readSpread(a.Env.StateDir); len(all) != 0 || len(unread) != 0 || err != nil {
		t.Errorf("%d trials, %v, %v", len(all), unread, err)
	}
	if _, err := os.Stat(rest); err == nil {
		t.Error("the rest of a write stays")
	}
}

// A trial that is spread begins in any free time: each of its blocks waits for quiet times by itself.
func TestSpreadBeginsBesideAQuietTime(t *testing.T) {
	c := newChooser(policy.Rules{}, "")
	night := time.Date(2026, 11, 30, 23, 30, 0, 0, time.UTC)
	rule := &policy.Rule{Trial: policy.Trial{Most: time.Hour, Per: 24 * time.Hour,
		Quiet: policy.Quiet{From: 6 * time.Hour, To: 23 * time.Hour, Zone: time.UTC}}}
	if at := c.nextTrial(rule, "/a", night); at.IsZero() {
		t.Error("a trial in one piece begins, and would meet the quiet time")
	}
	rule.Trial.Over = 8 * time.Hour
	if at := c.nextTrial(rule, "/a", night); !at.IsZero() {
		t.Errorf("one that is spread waits until %s", at)
	}
}

// A trial has as many remedies as have room for the rounds that one needs to win, and one at least.
func TestFits(t *testing.T) {
	for _, c := range []struct {
		most, turn time.Duration
		want       int
	}{{2 * time.Minute, 7 * time.Second, 1}, {3 * time.Minute, 7 * time.Second, 3}, {30 * time.Second, 7 * time.Second, 1},
		{40 * time.Minute, 7 * time.Second, 16}, {time.Hour, 0, 16}} {
		if got := fits(c.most, c.turn); got != c.want {
			t.Errorf("%s in turns of %s: %d remedies, want %d", c.most, c.turn, got, c.want)
		}
	}
}

// A trial that cannot go on after a restart looks again a while later, and ends once as much time has passed so as its blocks have.
func TestATrialThatCannotGoOnEnds(t *testing.T) {
	a, s, _ := spreadingAgent(t)
	s.at = []int{0, 0, 2}
	if !s.canTry() {
		t.Error("its second variant can be tried")
	}
	s.State.Out[2] = "worse"
	if s.canTry() {
		t.Error("its second variant is out, and the first one was not found")
	}
	looks := 0
	for ; a.chooser.spread["/a"] != nil && looks < 1000; looks++ {
		before := time.Now()
		if a.waits(s, errors.New("it is hardly stopped")); s.Next.Before(before.Add(s.Gap)) {
			t.Fatalf("look %d: the next one is due at once", looks)
		}
	}
	if want := int(s.State.Plan.Most / s.State.Plan.Block); looks != want || a.chooser.trials["/a"].at.IsZero() {
		t.Errorf("it ended after %d looks, want %d: %+v", looks, want, a.chooser.trials["/a"])
	}
}

// In an A/A test nothing is in force in any block, and what would have been kept is counted and told, not kept.
func TestAATest(t *testing.T) {
	for answer, want := range map[switchback.Answer]string{switchback.Keep: "burst 50ms", switchback.Undecided: "nothing"} {
		a, s, _ := spreadingAgent(t)
		var log bytes.Buffer
		a.Log = slog.New(slog.NewTextHandler(&log, nil))
		s.at = []int{0, 1, 2}
		if got := s.inForce(2); got != 2 {
			t.Errorf("variant %d is in force in a block of the second", got)
		}
		if s.AA = true; s.inForce(1) != 0 || s.inForce(2) != 0 {
			t.Error("a remedy is in force in an A/A test")
		}
		a.endAA(s, switchback.Decision{Answer: answer, Variant: 1, Why: "by chance"})
		if said := log.String(); !strings.Contains(said, `would_have_kept=`) || !strings.Contains(said, want) {
			t.Errorf("%s: %s", answer, said)
		}
		kept, none := a.spreadFigures.aaKept.Load(), a.spreadFigures.aaNone.Load()
		if kept+none != 1 || (kept == 1) != (answer == switchback.Keep) || a.chooser.spread["/a"] != nil {
			t.Errorf("%s: %d kept, %d none", answer, kept, none)
		}
	}
}
