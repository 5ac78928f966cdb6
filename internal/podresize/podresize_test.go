package podresize

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestMilliThereAndBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := Milli(rapid.Int64Range(1, maxMilli).Draw(t, "thousandths"))
		if got, err := Parse(m.String()); err != nil || got != m || MilliOf(m.CPUs()) != m {
			t.Errorf("%d is %q, read as %d, %v; of %v CPUs %d", m, m, got, err, m.CPUs(), MilliOf(m.CPUs()))
		}
	})
	if got := MilliOf(0.30001); got != 301 {
		t.Errorf("a limit that was asked for is not cut: %d", got)
	}
	for _, bad := range []string{"", "0", "0m", "-1", "1.5", "1k", "2000000", "9999999999999", "m"} {
		if got, err := Parse(bad); err == nil {
			t.Errorf("%q is read as %d", bad, got)
		}
	}
}

func TestDone(t *testing.T) {
	for name, c := range map[string]struct {
		cpu  CPU
		done bool
		err  string
	}{
		"the kubelet has not seen it":     {cpu: CPU{Limit: 1000, Actual: 500}},
		"under way, though the status is": {cpu: CPU{Limit: 1000, Actual: 1000, Running: true}},
		"done":                            {cpu: CPU{Limit: 1000, Actual: 1000}, done: true},
		"another program": {cpu: CPU{Limit: 700, Actual: 700},
			err: `another program resized it meanwhile: limits.cpu is "700m"`},
		"not now": {cpu: CPU{Limit: 1000, Actual: 500, Pending: PendingDeferred,
			Message: "full"}, err: "no room for it now (Deferred: full)"},
		"not here": {cpu: CPU{Limit: 1000, Actual: 500, Pending: PendingInfeasible, Message: "static\x1b[2J"},
			err: "cannot do it on this node (Infeasible: static"},
	} {
		done, err := c.cpu.Done(1000)
		if done != c.done || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %v, %v", name, done, err)
		}
		if err != nil && strings.Contains(err.Error(), "\x1b") {
			t.Errorf("%s: a stranger's text as it is: %q", name, err)
		}
	}
	if refused := new(Refused); !errors.As(error(&Refused{Message: "exceeded quota"}), &refused) ||
		refused.Error() != "the API server refuses it: exceeded quota" {
		t.Error(refused)
	}
}

func TestLeft(t *testing.T) {
	for want, c := range map[string]CPU{"": {},
		"it is resized by VerticalPodAutoscaler cart (updateMode Auto), and the two would undo each other's limits": {
			Autoscaler: "VerticalPodAutoscaler cart (updateMode Auto)"},
		"whether a VerticalPodAutoscaler resizes it cannot be told: no answer": {Untold: "no answer"}} {
		if got := c.Left(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
