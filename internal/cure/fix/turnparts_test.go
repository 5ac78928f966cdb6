package fix

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/cure/slo"
	"github.com/unthrottle/unthrottle/internal/cure/trial"
	"github.com/unthrottle/unthrottle/internal/cure/verdict"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/see/observe"
)

// What was observed of others stands beside what the latency source says. One call that fails makes a turn that does not count, and a
// second one in succession ends the trial; an answer without requests is no old one.
func TestAskedKeepsWhatWasObserved(t *testing.T) {
	answers := []slo.Answer{{MS: []float64{3, 4, 5}}, {}, {}, {MS: []float64{6, 7, 8}}, {}, {}}
	failed := []error{nil, errors.New("timeout"), nil, nil, errors.New("timeout"), errors.New("timeout")}
	calls := 0
	r := newRun(Env{Latencies: func(context.Context, time.Time) (slo.Answer, error) {
		calls++
		return answers[calls-1], failed[calls-1]
	}}, Options{})
	turns := &turns{r: r}
	recorded := trial.Measured{OthersWaitMS: new(300.0), Work: []float64{1}, Late: time.Second, Ended: "late",
		Others: []verdict.Requests{{}}}
	for i, want := range []int{3, 0, 0, 3, 0} {
		m, err := turns.asked(t.Context(), time.Now(), recorded)
		if err != nil || len(m.Judged.TookMs) != want || m.OthersWaitMS == nil || *m.OthersWaitMS != 300 || len(m.Work) != 1 ||
			m.Ended != "" || m.Late != 0 || m.Others != nil {
			t.Errorf("call %d: %v, %+v", i, err, m)
		}
	}
	few := new(NotMeasured)
	if _, err := turns.asked(t.Context(), time.Now(), recorded); !errors.As(err, &few) {
		t.Errorf("after two calls that failed: %v", err)
	}
	r.o.Both = true
	turns.unanswered, calls = 0, 0
	if m, err := turns.asked(t.Context(), time.Now(), recorded); err != nil || m.Ended != "late" || m.Late != time.Second ||
		len(m.Others) != 2 {
		t.Errorf("both: %v, %+v", err, m)
	}
}

// A container that a candidate caps is a neighbour all the same of one that takes its CPUs. The queue of a request that was not answered
// is waited for.
func TestTakeNeighbours(t *testing.T) {
	r := newRun(Env{}, Options{Target: container.Container{Group: cgroup.Group{Path: "/pod/web"}}})
	pin, capped := &remedy.Plan{Moved: []string{"/pod/side"}}, &remedy.Plan{Sibling: "/pod/side"}
	turns := &turns{r: r, candidates: []policy.Candidate{{Plan: pin}, {Plan: capped}}, of: trial.New(make([]trial.Variant, 3), 0.99, false),
		seen: make([][]observe.Observation, 3), sibling: make([][]float64, 3)}
	side := observe.Observation{UsedCPUs: new(0.4), Container: container.Container{Name: "side", Group: cgroup.Group{Path: "/pod/side"}}}
	for v, want := range []int{0, 1, 0} {
		var m trial.Measured
		turns.take(v, []observe.Observation{side}, &m)
		if len(m.Neighbours) != want || len(turns.sibling[v]) != 1 {
			t.Errorf("variant %d: %d neighbours, sibling %v", v, len(m.Neighbours), turns.sibling[v])
		}
	}
	turns.take(1, nil, &trial.Measured{Late: 2 * time.Second, Judged: verdict.Requests{TookMs: []float64{5}}})
	if turns.drain != 2*time.Second {
		t.Errorf("it waits %s for the queue", turns.drain)
	}
}
