package agent

import (
	"testing"

	"github.com/unthrottle/unthrottle/internal/podresize"
	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/internal/txn/apply"
	"github.com/unthrottle/unthrottle/internal/txn/change"
)

// A limit that the agent raised in a pod's spec is taken back once an autoscaler resizes the pod; not what people raised, and not where
// that cannot be told.
func TestLeaveToAutoscalers(t *testing.T) {
	const scaler = "VerticalPodAutoscaler cart (updateMode InPlaceOrRecreate)"
	for name, c := range map[string]struct {
		cpu  podresize.CPU
		by   string
		kept bool
	}{
		"none":            {by: "agent", kept: true},
		"not told":        {cpu: podresize.CPU{Untold: "no answer"}, by: "agent", kept: true},
		"an autoscaler":   {cpu: podresize.CPU{Autoscaler: scaler}, by: "agent"},
		"somebody else's": {cpu: podresize.CPU{Autoscaler: scaler}, by: "unthrottle apply, user root", kept: true},
	} {
		s := newStartScene(t, raiseAtStart, map[string]string{"app": "50000 100000"})
		c.cpu.UID, c.cpu.Limit, c.cpu.Actual = startUID, 500, 500
		of := &spec{c.cpu}
		s.Env.Pods, s.Env.By, s.chooser.by = of, c.by, "agent"
		if _, err := apply.Apply(t.Context(), s.Env, txn.Purpose{Target: txn.Target{Path: startPod + "/app"}, Remedy: "raise"},
			[]change.Change{{Kind: change.KindPodCPU, Op: change.OpSet, Path: startPod, Unit: "shop/cart/app",
				File: podresize.Setting, From: "500m", To: "1"}}); err != nil {
			t.Fatal(err)
		}
		s.reconcile(t.Context())
		want := podresize.Milli(500)
		if c.kept {
			want = 1000
		}
		if held, err := apply.Status(s.Env); err != nil || len(held) == 0 == c.kept || of.Limit != want {
			t.Errorf("%s: the spec has %s, in force %+v, %v", name, of.Limit, held, err)
		}
	}
}
