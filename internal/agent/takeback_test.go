package agent

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/podresize"
	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/internal/txn/apply"
	"github.com/unthrottle/unthrottle/internal/txn/change"
)

// podsOfNode are specs with a kubelet that does at once what they say. asked, if not nil, is what becomes of each question.
type podsOfNode struct {
	limits map[string]podresize.Milli
	asked  func() error
}

func (n *podsOfNode) Read(_ context.Context, name string) (podresize.CPU, error) {
	if n.asked != nil {
		if err := n.asked(); err != nil {
			return podresize.CPU{}, err
		}
	}
	return podresize.CPU{UID: name, Limit: n.limits[name], Actual: n.limits[name]}, nil
}

func (n *podsOfNode) Write(_ context.Context, name string, _, to podresize.Milli) error {
	n.limits[name] = to
	return nil
}

func (*podsOfNode) Wait(context.Context, int) bool { return true }

// raisedPods are pods whose limit the agent raised by a rule that has ended since, beside a container with a pin.
func raisedPods(t *testing.T, n int) (*placing, *podsOfNode) {
	p := newPlacing(t, 1)
	p.chooser.by = p.Env.By
	p.give(0, remedy.Request{Kind: remedy.Pin}, "2-3")
	pods := &podsOfNode{limits: map[string]podresize.Milli{}}
	p.Env.Pods = pods
	for i := range n {
		path, unit := fmt.Sprintf("/a/pod%d", i), fmt.Sprintf("shop/cart-%d/app", i)
		pods.limits[unit] = 500
		p.make(path)
		_, err := apply.Apply(t.Context(), p.Env, txn.Purpose{Target: txn.Target{Path: path}, Remedy: "raise"},
			[]change.Change{{Kind: change.KindPodCPU, Op: change.OpSet, Path: path, Unit: unit, File: podresize.Setting, From: "500m",
				To: "1"}})
		p.must(err)
		p.chooser.standings[path] = &standing{effective: policy.Effective{Rule: &policy.Rule{Auto: true, Until: time.Now()}}}
	}
	return p, pods
}

// waits lets time go by, after which the agent must be healthy still.
func (p *placing) waits(d time.Duration) {
	p.t.Helper()
	time.Sleep(d)
	p.mu.Lock()
	p.lastRound = time.Now() // rounds go on beside
	p.mu.Unlock()
	if err := p.health(time.Now()); err != nil {
		p.t.Error(err)
	}
}

// lookAfter is a round of the acting goroutine, after which some time goes by.
func (p *placing) lookAfter(pass time.Duration) {
	p.t.Helper()
	before := p.busy("a round", roundLimit)
	p.reconcile(p.t.Context())
	held, err := p.held()
	p.must(err)
	p.undoEnded(p.t.Context(), held, time.Now())
	p.resume(before)
	time.Sleep(pass)
}

// Where no question about a pod is answered, the agent stays healthy, newcomers are moved off exclusive CPUs, and what is in the pods'
// specs is not asked about all the time.
func TestPodsThatDoNotAnswerHoldUpNoRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, pods := raisedPods(t, 8)
		asked := 0
		pods.asked = func() error {
			asked++
			p.waits(10 * time.Second)
			return context.DeadlineExceeded
		}
		p.make("/n")
		p.k.Spawn("/n", 50)
		p.lookAfter(0)
		if runs, _ := p.k.Allowed(50); runs.String() != "0-1,4-7" || asked > 6 {
			t.Errorf("after %d questions the newcomer runs on %s\n%s", asked, runs, p.log.String())
		}
		for range 30 {
			p.lookAfter(time.Second)
		}
		pods.asked = nil
		time.Sleep(takeBackRetry)
		p.lookAfter(0)
		if held, err := p.held(); err != nil || len(held) != 2 {
			t.Errorf("answers come, and %d are in force, %v\n%s", len(held), err, p.log.String())
		}
	})
}

// One that takes the kubelet longer than a round may leaves the agent healthy, and the others to the rounds after it.
func TestSlowPodsAreTakenBackRoundByRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, pods := raisedPods(t, 3)
		pods.asked = func() error { p.waits(25 * time.Second); return nil }
		for left := 3; left > 0; left-- {
			held, err := p.held()
			p.must(err)
			before := p.busy("a round", roundLimit)
			p.undoEnded(t.Context(), held, time.Now())
			p.resume(before)
			if held, err = p.held(); err != nil || len(held) != left {
				t.Errorf("%d in force and the pin, want %d: %v", len(held)-1, left-1, err)
			}
			time.Sleep(p.Rules.Interval)
		}
	})
}
