package fix

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/cure/curetest"
	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/cure/verdict"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup/cgroupmodel"
	"github.com/unthrottle/unthrottle/internal/see/observe"
	"github.com/unthrottle/unthrottle/internal/sim/forecast"
	"github.com/unthrottle/unthrottle/internal/txn/apply"
	"github.com/unthrottle/unthrottle/test/lab/require"
)

// turnRecordings are recordings by setting: the same setting gives the same one.
var turnRecordings = map[string]Learned{}

// tries makes a bench whose remedies are tried in turns of modelled work.
func tries(t *testing.T, work curetest.Work) *bench {
	b := newBench(t)
	b.length = 4 * time.Second
	b.learns(work)
	b.recordsOnce(turnRecordings, func() string { return fmt.Sprint(b.left()) })
	b.options.Budget, b.options.Yes = time.Minute, true
	return b
}

// left are the settings without what the kernel counts.
func (b *bench) left() cgroupmodel.Snapshot { return b.kernel.Snapshot().Settings() }

// What was measured chooses: a burst for a pool that works in bursts. Each turn is taken back, the best one is kept and journalled with
// what came of it, and the result has every variant with its figures.
func TestTrialChooses(t *testing.T) {
	b := tries(t, curetest.Bursts)
	before := b.left()
	asked := []string{}
	b.options.Yes, b.options.Ask = false, func(question string) (bool, error) { asked = append(asked, question); return true, nil }
	got, err := b.run()
	if err != nil {
		t.Fatal(err)
	}
	if got.Remedy != string(remedy.Burst) || got.Verdict != verdict.Better || !got.Kept || len(asked) != 1 ||
		asked[0] != QuestionTry || got.Trial == nil {
		t.Fatalf("%s: %s, kept %v, asked %q: %s", got.Remedy, got.Verdict, got.Kept, asked, got.Why)
	}
	rows, kept := got.Trial.Rows, 0
	for _, r := range rows {
		if r.Kept {
			kept++
			if got.Trial.Kept == nil || *got.Trial.Kept != r.Name {
				t.Errorf("kept %v, and the row is %q", got.Trial.Kept, r.Name)
			}
		}
		if r.Remedy == "burst" && r.Parameters["burst"] == "" || r.Remedy == "period" && r.Parameters["period"] == "" {
			t.Errorf("%s has no setting: %v", r.Name, r.Parameters)
		}
		if r.Rounds < 1 || r.MeasuredMs == nil && r.Ended == nil {
			t.Errorf("%+v", r)
		}
	}
	if rows[0].Remedy != "none" || rows[0].Rounds < leastTurns || kept != 1 || got.Trial.Rounds < leastTurns ||
		got.Trial.Seconds > b.options.Budget.Seconds()+20 {
		t.Errorf("%+v", got.Trial)
	}
	past, err := apply.History(b.env.Apply, 0)
	if err != nil || len(past) < leastTurns {
		t.Fatalf("%d turns, %v", len(past), err)
	}
	for _, p := range past {
		if o := p.Outcome; o == nil || o.Verdict != VerdictTurn || o.Before == nil || o.After == nil ||
			!strings.HasPrefix(o.Note, "round ") {
			t.Errorf("a turn of %s: %+v", p.Remedy, o)
		}
	}
	held, err := apply.Status(b.env.Apply)
	if err != nil || len(held) != 1 || held[0].Trial != nil || held[0].Outcome == nil ||
		held[0].Outcome.Verdict != verdict.Better || held[0].Outcome.Before == nil {
		t.Errorf("in force %+v, %v", held, err)
	}
	if _, err := apply.Restore(context.Background(), b.env.Apply, apply.Selector{}); err != nil {
		t.Fatal(err)
	}
	if diff := before.Diff(b.left()); len(diff) > 0 {
		t.Errorf("restored, and this is left: %q", diff)
	}
}

// Between rounds the container is left alone for as long as is asked.
func TestTrialPauses(t *testing.T) {
	b := tries(t, curetest.Bursts)
	before, pauses := b.left(), 0
	b.options.Pause = 42 * time.Second
	b.env.Wait = func(ctx context.Context, d time.Duration) error {
		if d == b.options.Pause {
			pauses++
			if diff := before.Diff(b.left()); len(diff) > 0 {
				t.Errorf("in a pause: %q", diff)
			}
		}
		return ctx.Err()
	}
	got, err := b.run()
	if err != nil || got.Trial == nil || pauses != got.Trial.Rounds-1 || pauses == 0 {
		t.Fatalf("%d pauses of %+v, %v", pauses, got.Trial, err)
	}
}

// Refused, without a terminal, as a dry run, and where nothing is better: nothing is in force.
func TestTrialLeaves(t *testing.T) {
	for name, c := range map[string]struct {
		set     func(*bench)
		verdict string
		err     string
		writes  bool
	}{
		"refused": {func(b *bench) {
			b.options.Yes, b.options.Ask = false,
				func(string) (bool, error) { return false, nil }
		}, VerdictNotApplied, "", false},
		"no terminal": {func(b *bench) { b.options.Yes = false }, VerdictNotApplied, "say --yes", false},
		"a dry run":   {func(b *bench) { b.options.DryRun = true }, "", "", false},
		"nothing can be applied": {func(b *bench) {
			b.kernel.Before = func(op cgroupmodel.Op) error {
				if op.Changes() {
					return &cgroup.Error{Op: op.Kind, Path: op.Path, File: op.File, Value: op.Value, Errno: unix.EINVAL}
				}
				return nil
			}
		}, string(policy.AnswerLeave), "", true},
	} {
		t.Run(name, func(t *testing.T) {
			b := tries(t, curetest.Bursts)
			before := b.left()
			c.set(b)
			got, err := b.run()
			b.kernel.Before = nil
			if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
				t.Fatalf("%v, want %q", err, c.err)
			}
			if c.verdict != "" && got.Verdict != c.verdict || got.Kept {
				t.Errorf("%s, kept %v: %s", got.Verdict, got.Kept, got.Why)
			}
			if diff := before.Diff(b.left()); len(diff) > 0 && name != "its cgroup goes" {
				t.Errorf("this is left: %q", diff)
			}
		})
	}
}

// A trial that is interrupted or killed at any of its writes, or whose limit the owner changes, leaves the container as it was.
func TestTrialEndsAnywhere(t *testing.T) {
	require.Unraced(t, "TestAskedForIsJudged has the same looks, each beside its recording")
	step := 1
	if testing.Short() {
		step = 40 / require.Cases(t, 13, 5)
	}
	for n := 1; n <= 40; n += step {
		for _, how := range []string{"interrupted", "killed", "resized"} {
			b := tries(t, curetest.Bursts)
			before, count := b.left(), 0
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			proc := &processes{}
			b.env.Apply.Proc = proc
			killed := false
			b.kernel.Before = func(op cgroupmodel.Op) error {
				if !op.Changes() {
					return nil
				}
				if count++; count != n {
					return nil
				}
				switch how {
				case "interrupted":
					cancel()
				case "killed":
					killed = true
					panic(errKilled)
				}
				return nil
			}
			resized := false
			if learn := b.env.Learn; how == "resized" {
				looks := 0
				b.env.Learn = func(ctx context.Context, c container.Container, d time.Duration) (Learned, error) {
					if looks++; looks == n+1 && !resized {
						resized = true
						if err := b.kernel.Write(cgroup.CPU, "/calm", "cpu.shares", "512"); err != nil {
							t.Fatal(err)
						}
						// As a runtime does it that knows of the burst.
						for _, w := range []cgroup.FileValue{{File: "cpu.cfs_burst_us", Value: "0"},
							{File: "cpu.cfs_period_us", Value: "100000"}, {File: "cpu.cfs_quota_us", Value: "140000"}} {
							if err := b.kernel.Write(cgroup.CPU, "/busy", w.File, w.Value); err != nil {
								t.Error(err)
							}
						}
					}
					return learn(ctx, c, d)
				}
			}
			got, err := func() (got Result, err error) {
				defer func() {
					if p := recover(); p != nil && p != errKilled { //nolint:errorlint // the value that was thrown
						panic(p)
					}
				}()
				return Run(ctx, b.env, b.options)
			}()
			b.kernel.Before = nil
			if killed {
				proc.ended = true
				if _, err := apply.Recover(context.Background(), b.env.Apply); err != nil {
					t.Fatalf("%s at %d: recovering: %v", how, n, err)
				}
			}
			if how == "resized" {
				if l, err := cgroup.ReadLimit(b.kernel, "/busy"); resized && !got.Kept && (err != nil || l.Quota != 140*time.Millisecond) {
					t.Errorf("%s at %d: the owner's limit became %+v, %v", how, n, l, err)
				}
				if resized && got.Kept && !errors.As(err, new(*NotMeasured)) && got.Trial.Rounds < leastTurns {
					t.Errorf("%s at %d: kept %s", how, n, got.Remedy)
				}
				continue
			}
			if got.Kept && !killed && err == nil && count < n {
				continue // it ended before
			}
			if diff := before.Diff(b.left()); len(diff) > 0 && !got.Kept && !(killed && heldWithOutcome(b)) {
				t.Fatalf("%s at %d (%v): this is left: %q", how, n, err, diff)
			}
		}
	}
}

// heldWithOutcome: it was killed after the best one was kept.
func heldWithOutcome(b *bench) bool {
	held, err := apply.Status(b.env.Apply)
	return err == nil && len(held) == 1 && held[0].Outcome != nil
}

// How long a request takes when the container is left is seen of all requests, as a late one is: a long one of another
// client is no harm of a remedy,
// and leaving it is never ended.
func TestLongRequestsAreNoHarm(t *testing.T) {
	for name, shown := range map[string]time.Duration{"in the look and when it was left": time.Second, "never": 0} {
		b := tries(t, curetest.Bursts)
		learn, turns, before := b.env.Learn, 0, fmt.Sprint(b.left())
		b.env.Learn = func(ctx context.Context, c container.Container, d time.Duration) (Learned, error) {
			learned, err := learn(ctx, c, d)
			learned.Longest = shown
			return learned, err
		}
		b.env.LearnUntil = func(ctx context.Context, c container.Container, d, bound time.Duration) (Learned, time.Duration, error) {
			turns++
			if fmt.Sprint(b.left()) == before {
				t.Errorf("%s: leaving it has a bound of %v", name, bound)
			}
			learned, err := learn(ctx, c, d)
			if late := 900 * time.Millisecond; late > bound {
				return learned, late, err
			}
			return learned, 0, err
		}
		got, err := b.run()
		if err != nil || got.Trial == nil || turns == 0 {
			t.Fatalf("%s: %+v, %v, %d turns", name, got, err, turns)
		}
		for _, r := range got.Trial.Rows {
			if harm := r.Ended != nil && *r.Ended == "harm"; harm != (shown == 0 && r.Remedy != "none") {
				t.Errorf("%s: %+v", name, r)
			}
		}
	}
}

// The time for which it looked once more is of the budget.
func TestLookingOnceMoreIsOfTheBudget(t *testing.T) {
	rounds := map[bool]int{}
	for _, more := range []bool{false, true} {
		b := tries(t, curetest.Bursts)
		b.options.Budget = 3 * time.Minute
		learn, first := b.env.Learn, true
		b.env.Learn = func(ctx context.Context, c container.Container, d time.Duration) (Learned, error) {
			learned, err := learn(ctx, c, d)
			if more && first && learned.Explanation != nil { // so few stops that it looks again, for longer
				e := *learned.Explanation
				e.ThrottledPeriods = new(uint64(3))
				learned.Explanation = &e
			}
			first = false
			return learned, err
		}
		got, err := b.run()
		if err != nil || got.Trial == nil {
			t.Fatalf("%v: %+v, %v", more, got, err)
		}
		rounds[more] = got.Trial.Rounds
		if total := got.Trial.Seconds; total > 180 {
			t.Errorf("%v: %.0f s of turns", more, total)
		}
	}
	if rounds[true] > rounds[false] {
		t.Errorf("rounds by whether it looked once more: %v", rounds)
	}
}

// What does harm is ended at once: neither the recording nor the look at the counters goes on, and it cannot win.
func TestHarmEndsATurn(t *testing.T) {
	b := tries(t, curetest.Bursts)
	look, learn := b.env.Observe, b.env.Learn
	b.env.LearnUntil = func(ctx context.Context, c container.Container, d, bound time.Duration) (Learned, time.Duration, error) {
		learned, err := learn(ctx, c, d)
		if l, bad := cgroup.ReadLimit(b.kernel, "/busy"); bad == nil && l.Burst > 0 {
			return learned, bound + time.Second, err
		}
		return learned, 0, err
	}
	b.env.Observe = func(ctx context.Context, containers []container.Container, window time.Duration) ([]observe.Observation, error) {
		if l, err := cgroup.ReadLimit(b.kernel, "/busy"); err == nil && l.Burst > 0 {
			<-ctx.Done() // a window that nothing else ends
			return nil, ctx.Err()
		}
		return look(ctx, containers, window)
	}
	got, err := b.run()
	if err != nil || got.Trial == nil || got.Remedy == string(remedy.Burst) {
		t.Fatalf("%+v, %v", got, err)
	}
	ended := 0
	for _, r := range got.Trial.Rows {
		if r.Ended != nil && *r.Ended == "harm" {
			ended++
			if r.Remedy != string(remedy.Burst) || r.Rounds != 2 || !strings.Contains(r.Why, "stopped at once: a request took") {
				t.Errorf("%+v", r)
			}
		}
	}
	if ended == 0 {
		t.Errorf("none was ended: %+v", got.Trial)
	}
}

// A turn that cannot be undone is told: the change is in force, and so says the result. Where another writer only holds the lock for a
// while the turn waits for it.
func TestTurnThatCannotBeUndone(t *testing.T) {
	for name, c := range map[string]struct {
		meanwhile func(t *testing.T, state string) // in the first turn of a remedy
		err       string
	}{
		"the journal is gone": {func(t *testing.T, state string) {
			if err := os.RemoveAll(state); err != nil {
				t.Error(err)
			}
		}, "is in force and could not be undone"},
		"locked for a while": {func(t *testing.T, state string) {
			lock, err := os.OpenFile(filepath.Join(state, "lock"), os.O_RDWR, 0)
			if err == nil {
				err = unix.Flock(int(lock.Fd()), unix.LOCK_EX)
			}
			if err != nil {
				t.Error(err)
				return
			}
			time.AfterFunc(100*time.Millisecond, func() { lock.Close() })
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := tries(t, curetest.Bursts)
			b.env.Apply.LockWait = time.Millisecond
			before, once := b.left(), sync.OnceFunc(func() { c.meanwhile(t, b.env.Apply.StateDir) })
			learn := b.env.Learn
			b.env.Learn = func(ctx context.Context, of container.Container, d time.Duration) (Learned, error) {
				if len(before.Diff(b.left())) > 0 {
					once()
				}
				return learn(ctx, of, d)
			}
			got, err := b.run()
			inForce := len(before.Diff(b.left())) > 0
			switch {
			case got.Kept != inForce || got.Kept != (got.ID != ""):
				t.Errorf("kept %v as %q, in force %v, verdict %q, %v", got.Kept, got.ID, inForce, got.Verdict, err)
			case c.err == "" && err != nil, c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
				t.Errorf("%v, want %q", err, c.err)
			case c.err != "" && got.Verdict != verdict.Unverified:
				t.Errorf("in force, and the verdict is %q", got.Verdict)
			}
		})
	}
}

// Where nothing is measured nothing is said about remedies: clients that stop, and a service that ends, are told as what they are.
func TestNoDataIsNoAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		meanwhile func(b *bench)
		says      string
	}{
		"its clients stop":  {func(*bench) {}, "too few requests came"},
		"its processes end": {func(b *bench) { b.kernel.Exit(100) }, "ended: no process is left"},
		"its cgroup goes": {func(b *bench) {
			b.kernel.Exit(100)
			for _, c := range []cgroup.Controller{cgroup.CPU, cgroup.CPUSet} {
				if err := b.kernel.Remove(c, "/busy"); err != nil {
					b.t.Fatal(err)
				}
			}
		}, "ended: its cgroup"},
		"its processes move": {func(b *bench) {
			if err := b.kernel.Attach(cgroup.CPU, "/calm", 100); err != nil {
				b.t.Fatal(err)
			}
		}, "ended: no process is left"},
	} {
		t.Run(name, func(t *testing.T) {
			b := tries(t, curetest.Bursts)
			learn, quiet := b.env.Learn, false
			b.env.Learn = func(ctx context.Context, of container.Container, d time.Duration) (Learned, error) {
				learned, err := learn(ctx, of, d)
				if quiet {
					learned.Runs = &forecast.Runs{Window: d}
				}
				return learned, err
			}
			before, wait, waits := b.left(), b.env.Wait, 0
			b.env.Wait = func(ctx context.Context, d time.Duration) error {
				if waits++; waits == 2 { // in the first turn of a remedy
					quiet = true
					c.meanwhile(b)
				}
				return wait(ctx, d)
			}
			got, err := b.run()
			if !errors.As(err, new(*NotMeasured)) || !strings.Contains(err.Error(), c.says) || got.Kept {
				t.Errorf("%v, want %q; verdict %q, kept %v", err, c.says, got.Verdict, got.Kept)
			}
			if diff := before.Diff(b.left()); len(diff) > 0 && name != "its cgroup goes" {
				t.Errorf("this is left: %q", diff)
			}
		})
	}
}

// Where fewer requests come than the first look promised, turns get longer once, and the trial goes on.
func TestTurnsGetLonger(t *testing.T) {
	b := tries(t, curetest.Bursts)
	learn, trial, longest := b.env.Learn, false, time.Duration(0)
	b.env.Learn = func(ctx context.Context, of container.Container, d time.Duration) (Learned, error) {
		learned, err := learn(ctx, of, d)
		if longest = max(longest, d); trial && d < forecast.LongestTurn {
			learned.Runs = &forecast.Runs{Window: d}
		}
		return learned, err
	}
	b.options.Yes, b.options.Ask = false, func(string) (bool, error) { trial = true; return true, nil }
	said := []string{}
	b.options.Say = func(line string) { said = append(said, line) }
	got, err := b.run()
	if err != nil || got.Remedy != string(remedy.Burst) || got.Verdict != verdict.Better || !got.Kept {
		t.Fatalf("%s: %s, kept %v: %s, %v", got.Remedy, got.Verdict, got.Kept, got.Why, err)
	}
	if told := strings.Join(said, "\n"); longest != forecast.LongestTurn || strings.Count(told, "each takes 15 s from now on") != 1 {
		t.Errorf("turns of %v: %s", longest, told)
	}
}

// The shortest trial that a user may ask for has room for the turns without which there is none.
func TestLeastTrialHasRoom(t *testing.T) {
	const settle = time.Second // of fix and the agent
	if needs := leastTurns * leastVariants * (leastTurn + settle); needs > policy.LeastTrial {
		t.Errorf("two turns of two variants take %v, and --budget may be %v", needs, policy.LeastTrial)
	}
}
