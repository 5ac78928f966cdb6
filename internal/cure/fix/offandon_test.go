package fix

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/cure/curetest"
	"github.com/unthrottle/unthrottle/internal/cure/verdict"
	"github.com/unthrottle/unthrottle/internal/see/recording/recordingtest"
	"github.com/unthrottle/unthrottle/internal/txn/apply"
	"github.com/unthrottle/unthrottle/test/lab/require"
)

// asked is a service that answers so many bursts of 16 requests in each 10 seconds, at the n-th recording; the last number
// goes on.
func (b *bench) asked(bursts ...int) {
	n := 0
	b.length = 20 * time.Second
	b.learns(func(s *recordingtest.Schedule, length time.Duration) {
		every := 10 * time.Second / time.Duration(bursts[min(n, len(bursts)-1)])
		n++
		w := s.Threads("http-worker", 16)
		s.Answers(w...)
		s.Repeat(int(length/every), every.Truncate(100*time.Microsecond), func(at time.Duration) { s.Work(at, 8*curetest.Tick, w...) })
	})
	b.options.Tries = 1
}

// Fewer requests after a change than before say nothing of it. With a look without it between two with it they do, where
// they are as many in two of these.
func TestOtherWorkIsLookedAtOffAndOn(t *testing.T) {
	require.Unraced(t, "TestAskedForIsJudged has the same looks, each beside its recording")
	for name, tc := range map[string]struct {
		bursts        []int
		verdict, says string
		kept          bool
	}{
		"as many from then on":  {[]int{40, 28, 28, 28, 28, 28}, verdict.Better, "between two with it", true},
		"other work each time":  {[]int{40, 28, 28, 28, 40, 28}, verdict.Unverified, "other work came than before", false},
		"the same from the end": {[]int{40, 28, 28, 28, 40, 40}, verdict.Better, "between two with it", true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.asked(tc.bursts...)
			b.options.Yes = true
			got, err := b.run()
			if err != nil {
				t.Fatal(err)
			}
			if got.Verdict != tc.verdict || got.Kept != tc.kept || !strings.Contains(got.Judgement.Why, tc.says) {
				t.Errorf("%s, kept %v, %s: %s", got.Verdict, got.Kept, got.Why, got.Judgement.Why)
			}
			if held, err := apply.Status(b.env.Apply); err != nil || tc.kept != (len(held) == 1) || tc.kept &&
				(held[0].Outcome == nil || held[0].Outcome.Verdict != tc.verdict) {
				t.Errorf("in force %+v, %v", held, err)
			}
		})
	}
}

// A recording that cannot be made once the change was taken back leaves the verdict as it was, and the change in force as
// after any other; one that is interrupted there leaves nothing.
func TestInterruptedWithoutIt(t *testing.T) {
	b := newBench(t)
	b.asked(40, 28)
	b.options.Yes = true
	before := b.kernel.Snapshot()
	ctx, cancel := context.WithCancel(t.Context())
	learn, n := b.env.Learn, 0
	b.env.Learn = func(c context.Context, target container.Container, length time.Duration) (Learned, error) {
		if n++; n == 5 { // before, three after, and the one without it
			cancel()
		}
		return learn(c, target, length)
	}
	got, err := Run(ctx, b.env, b.options)
	if !errors.Is(err, context.Canceled) || got.Kept || n != 5 {
		t.Errorf("kept %v, %d recordings, %v", got.Kept, n, err)
	}
	if left := before.Settings().Diff(b.kernel.Snapshot().Settings()); len(left) > 0 {
		t.Errorf("left in force: %q", left)
	}
}
