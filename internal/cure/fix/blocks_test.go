package fix

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/cure/curetest"
	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/cure/switchback"
	"github.com/unthrottle/unthrottle/internal/cure/trial"
	"github.com/unthrottle/unthrottle/internal/cure/verdict"
	"github.com/unthrottle/unthrottle/internal/sim/forecast"
	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/internal/txn/apply"
	"github.com/unthrottle/unthrottle/internal/txn/journal"
)

// Blocks that somebody else spreads leave nothing in force between them, also where the process that tried before was another one, and
// the one that wins is kept with what it won by.
func TestBlocks(t *testing.T) {
	b := tries(t, curetest.Bursts)
	before := b.left()
	var blocks *Blocks
	var by *Measure
	look := func() {
		var err error
		if blocks, err = Spread(t.Context(), b.env, b.options, by); err != nil {
			t.Fatal(err)
		}
	}
	look()
	names := blocks.Names()
	by = new(blocks.Measure())
	plan := switchback.Plan{Variants: len(names), Block: switchback.LeastBlock, Most: 4 * time.Hour, Wrong: 0.05, Seed: 1}
	s, err := switchback.Begin(plan, time.Unix(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	d := s.Decide()
	for n := 0; d.Answer == switchback.Going; n++ {
		if n == 10 { // another process goes on
			look()
			if got := blocks.Names(); strings.Join(got, ";") != strings.Join(names, ";") {
				t.Fatalf("it would try %q, and another one tried %q", got, names)
			}
		}
		round, v := s.Next()
		shown, took, err := blocks.Block(t.Context(), v)
		if err != nil {
			t.Fatal(err)
		}
		if took <= 0 || shown.Requests == 0 || shown.LogTail == nil && shown.Ended == "" {
			t.Errorf("%d took %v: %+v", v, took, shown)
		}
		if diff := before.Diff(b.left()); len(diff) > 0 {
			t.Fatalf("between blocks: %q", diff)
		}
		s = s.Add(switchback.Block{Round: round, Variant: v, LogTail: shown.LogTail, Requests: shown.Requests, Slow: shown.Slow}, took)
		if v > 0 && shown.Ended != "" {
			s.Out[v] = shown.Ended
		}
		d = s.Decide()
	}
	if d.Answer != switchback.Keep {
		t.Fatalf("%+v, out %q", d, s.Out)
	}
	got, err := blocks.Keep(t.Context(), d.Variant, d.Why)
	if err != nil || got.Remedy != string(remedy.Burst) || !got.Kept || got.Verdict != verdict.Better || got.Why != d.Why {
		t.Fatalf("%v: %+v", err, got)
	}
	held, err := apply.Status(b.env.Apply)
	if err != nil || len(held) != 1 || held[0].Trial != nil || held[0].Outcome == nil || held[0].Outcome.Note != d.Why {
		t.Errorf("in force %+v, %v", held, err)
	}
	if _, err := apply.Restore(context.Background(), b.env.Apply, apply.Selector{}); err != nil {
		t.Fatal(err)
	}
	if diff := before.Diff(b.left()); len(diff) > 0 {
		t.Errorf("restored, and this is left: %q", diff)
	}
	for _, v := range []int{0, len(names) + 1} {
		if _, err := blocks.Keep(t.Context(), v, ""); err == nil {
			t.Errorf("variant %d is kept", v)
		}
	}
}

// Where nothing can be tried in turns the error says why.
func TestWhyNothingIsSpread(t *testing.T) {
	b := tries(t, curetest.Bursts)
	b.env.Learn = func(context.Context, container.Container, time.Duration) (Learned, error) {
		return Learned{Missing: "nothing was recorded"}, nil
	}
	blocks, err := Spread(t.Context(), b.env, b.options, nil)
	few := new(NotMeasured)
	if blocks != nil || !errors.As(err, &few) || !strings.Contains(err.Error(), "0 requests came while it was recorded") {
		t.Errorf("%v, %v", blocks, err)
	}
	b = tries(t, curetest.Bursts)
	b.options.Allowed = func(remedy.Plan) error { return errors.New("not here") }
	blocks, err = Spread(t.Context(), b.env, b.options, nil)
	none := new(NoRemedy)
	if blocks != nil || !errors.As(err, &none) || !strings.Contains(none.Why, "nothing that keeps the limit can be tried") {
		t.Errorf("%v, %v", blocks, err)
	}
}

// A block that ends in the middle, as its agent does, leaves nothing in force.
func TestBlockIsCutOff(t *testing.T) {
	b := tries(t, curetest.Bursts)
	before := b.left()
	blocks, err := Spread(t.Context(), b.env, b.options, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	wait := b.env.Wait
	blocks.r.env.Wait = func(ctx context.Context, d time.Duration) error {
		cancel()
		return wait(ctx, d)
	}
	if _, _, err := blocks.Block(ctx, 1); err == nil {
		t.Error("a block that was cut off has figures")
	}
	if diff := before.Diff(b.left()); len(diff) > 0 {
		t.Errorf("%q", diff)
	}
}

// A block without what is in force tells what it brings, and it is in force again afterwards, whatever went wrong.
func TestHoldbackOfABurst(t *testing.T) {
	b := tries(t, curetest.Bursts)
	blocks, err := Spread(t.Context(), b.env, b.options, nil)
	if err != nil {
		t.Fatal(err)
	}
	by := blocks.Measure()
	before := b.left()
	if got, err := b.run(); err != nil || !got.Kept {
		t.Fatalf("%v: %+v", err, got)
	}
	held := b.left()
	inForce, err := apply.Status(b.env.Apply)
	if err != nil || len(inForce) != 1 {
		t.Fatalf("%v, %+v", err, inForce)
	}
	calls := []string{}
	off := func(ctx context.Context) error {
		calls = append(calls, "off")
		_, err := apply.Restore(ctx, b.env.Apply, apply.Selector{IDs: []string{inForce[0].ID}, Again: true})
		if diff := before.Diff(b.left()); len(diff) > 0 {
			t.Errorf("off: %q", diff)
		}
		return err
	}
	on := func(ctx context.Context) error {
		calls = append(calls, "on")
		done, err := apply.Apply(ctx, b.env.Apply, txn.Purpose{Target: txn.Target{Path: inForce[0].Target}, Remedy: inForce[0].Remedy,
			Parameters: inForce[0].Parameters}, inForce[0].Changes)
		inForce[0].ID = done.ID
		return err
	}
	pair, err := Holdback(t.Context(), b.env, b.options, by, off, on)
	if err != nil || pair == nil || *pair > -0.1 || strings.Join(calls, " ") != "off on" {
		t.Fatalf("%v, %v, %q", pair, err, calls)
	}
	if diff := held.Diff(b.left()); len(diff) > 0 {
		t.Errorf("after it: %q", diff)
	}
	ctx, cancel := context.WithCancel(t.Context())
	wait := b.env.Wait
	b.env.Wait = func(ctx context.Context, d time.Duration) error { cancel(); return wait(ctx, d) }
	if pair, err := Holdback(ctx, b.env, b.options, by, off, on); err == nil || pair != nil {
		t.Errorf("%v, %v", pair, err)
	}
	if diff := held.Diff(b.left()); len(diff) > 0 {
		t.Errorf("after one that was cut off: %q", diff)
	}
}

// What another moment may take, such as a journal that another writer holds, ends no variant: the block is tried again.
func TestAWriteThatFailsForAMoment(t *testing.T) {
	b := tries(t, curetest.Bursts)
	blocks, err := Spread(t.Context(), b.env, b.options, nil)
	if err != nil {
		t.Fatal(err)
	}
	blocks.r.env.Apply.LockWait = time.Millisecond
	other, err := journal.Open(t.Context(), b.env.Apply.StateDir, journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if shown, _, err := blocks.Block(t.Context(), 1); !errors.As(err, new(*journal.Locked)) || shown.Refused != "" {
		t.Errorf("%+v, %v", shown, err)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	if shown, _, err := blocks.Block(t.Context(), 1); err != nil || shown.Refused != "" || shown.Requests == 0 {
		t.Errorf("%+v, %v", shown, err)
	}
}

// A trial that goes on, and what it kept, are judged as at its beginning, whatever a look at another hour would choose.
func TestMeasureStays(t *testing.T) {
	b := tries(t, curetest.Bursts)
	first, err := Spread(t.Context(), b.env, b.options, nil)
	if err != nil {
		t.Fatal(err)
	}
	by := first.Measure()
	by.Quantile, by.UsualMs = 0.5, by.UsualMs/1000
	again, err := Spread(t.Context(), b.env, b.options, &by)
	if err != nil || again.Measure() != by || again.t.quantile != 0.5 {
		t.Fatalf("%v: %+v", err, again.Measure())
	}
	was, _, err := first.Block(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	is, _, err := again.Block(t.Context(), 0)
	if err != nil || is.LogTail == nil || was.LogTail == nil || *is.LogTail >= *was.LogTail || is.Slow != is.Requests || is.Requests == 0 {
		t.Errorf("%v: %+v, %+v", err, was, is)
	}
	nothing := func(context.Context) error { return nil }
	if pair, err := Holdback(t.Context(), b.env, b.options, by, nothing, nothing); err != nil || pair == nil || *pair != 0 {
		t.Errorf("the same twice: %v, %v", pair, err)
	}
}

// A recording that lost events, as on a host whose CPUs are full, neither begins a trial nor tells whether a remedy still helps.
func TestLostEventsAreNoBlock(t *testing.T) {
	b := tries(t, curetest.Bursts)
	learn, lost := b.env.Learn, 0.0
	b.env.Learn = func(ctx context.Context, c container.Container, d time.Duration) (Learned, error) {
		learned, err := learn(ctx, c, d)
		if learned.Runs != nil {
			runs := *learned.Runs
			runs.Lost, learned.Runs = lost, &runs
		}
		return learned, err
	}
	blocks, err := Spread(t.Context(), b.env, b.options, nil)
	if err != nil {
		t.Fatal(err)
	}
	off := func(context.Context) error { lost = 4; return nil }
	on := func(context.Context) error { return nil }
	if pair, err := Holdback(t.Context(), b.env, b.options, blocks.Measure(), off, on); err != nil || pair != nil {
		t.Errorf("%v, %v", pair, err)
	}
	_, err = Spread(t.Context(), b.env, b.options, nil)
	if !errors.As(err, new(*NotMeasured)) || !strings.Contains(err.Error(), "lost 4") {
		t.Errorf("begun: %v", err)
	}
}

// One short look that is far worse does not end a variant: it is looked at once more.
func TestEndedByABlock(t *testing.T) {
	of := trial.New([]trial.Variant{{Name: "leave it"}, {Name: "burst"}}, 0.99, false)
	b := &Blocks{t: &turns{of: of}}
	if got := b.ended(1, trial.Measured{Ended: "far worse in a short look; it is looked at once more"}); got != "" {
		t.Errorf("ended after one look: %q", got)
	}
	if got := b.ended(1, trial.Measured{Ended: "stopped at once", Late: time.Second}); got != "stopped at once" {
		t.Errorf("ended by a late request: %q", got)
	}
	of.Drop(1, "worse")
	if got := b.ended(1, trial.Measured{Ended: "clearly worse in two short looks"}); got == "" {
		t.Error("one that is out is tried again")
	}
}

// A calm hour, or a host that is too full for a forecast, ends no trial: another hour may be another one.
func TestALookMayTellLater(t *testing.T) {
	for _, err := range []error{&NoRemedy{}, &NotMeasured{}, fmt.Errorf("forecast: %w", &forecast.TooSlow{Done: 3, Of: 18})} {
		if !MayTellLater(err) {
			t.Errorf("%T ends a trial", err)
		}
	}
	if MayTellLater(errors.New("no such file or directory")) {
		t.Error("an error that stays does not")
	}
}
