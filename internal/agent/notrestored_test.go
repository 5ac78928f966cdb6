package agent

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/agent/lendingtrial"
	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/cure/fix"
	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/cure/slo"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup/cgroupmodel"
	"github.com/unthrottle/unthrottle/internal/see/observe"
	"github.com/unthrottle/unthrottle/internal/txn/apply"
)

// refuse lets the kernel take no more CPU lists for a cgroup.
func (p *placing) refuse(path string) {
	p.k.Before = func(op cgroupmodel.Op) error {
		if op.Changes() && op.Path == path && op.File == cgroup.FileCPUs {
			return &cgroup.Error{Op: op.Kind, Path: op.Path, File: op.File, Value: op.Value, Errno: unix.EINVAL}
		}
		return nil
	}
}

// What the kernel refuses to give the secondaries again is not counted as lent.
func TestAgentCannotLendAgain(t *testing.T) {
	p := newPlacing(t, 2)
	p.give(0, remedy.Request{Kind: remedy.Pin, Shares: true}, "2-3")
	p.secondary(remedy.Request{})
	now := time.Now()
	for i := 0; i < 5*lendingtrial.Rounds && p.at(1) == "0-7"; i++ {
		p.rounds(1, now.Add(time.Duration(i)*time.Second), 2, 0.5)
	}
	if p.at(1) == "0-7" {
		t.Fatalf("no trial is under way\n%s", p.log.String())
	}
	p.refuse("/a/1")
	p.lender = lender{} // started again: it gives what is revoked
	p.rounds(1, now.Add(time.Hour), 2, 0.5)
	if p.at(1) == "0-7" || p.lends("unthrottle_lenders taken_back") != "1" || p.lends("unthrottle_lent_cpus") != "0" {
		t.Errorf("the secondary is on %s, revoked %s, lent %s", p.at(1), p.lends("unthrottle_lenders taken_back"),
			p.lends("unthrottle_lent_cpus"))
	}
	if log := p.log.String(); !strings.Contains(log, "could not be given to the secondaries again") ||
		!strings.Contains(log, "stays in force") {
		t.Error(log)
	}
}

// What the kernel refuses to put back after a container has ended is not said to
// be put back.
func TestAgentCannotEndWhatIsGone(t *testing.T) {
	p := newPlacing(t, 2)
	p.give(0, remedy.Request{Kind: remedy.Pin}, "2-3")
	p.k.Exit(10)
	for _, c := range []cgroup.Controller{cgroup.CPU, cgroup.CPUSet} {
		p.must(p.k.Remove(c, "/a/0"))
	}
	p.all = p.all[1:]
	p.refuse("/a/1")
	p.reconcileOnce()
	held, err := apply.Status(p.Env)
	p.must(err)
	if log := p.log.String(); len(held) != 1 || strings.Contains(log, "are restored") || !strings.Contains(log, "could not be restored") {
		t.Errorf("%d in force\n%s", len(held), log)
	}
	p.k.Before = nil
	p.reconcileOnce()
	if held, err = apply.Status(p.Env); err != nil || len(held) != 0 {
		t.Errorf("in force %v, %v", held, err)
	}
}

// An interrupt does not hide that a change is in force which could not be undone.
func TestAgentInterruptedSaysWhatStays(t *testing.T) {
	p := newPlacing(t, 1)
	p.must(p.k.Write(cgroup.CPU, "/a/0", "cpu.cfs_quota_us", "200000"))
	ctx, cancel := context.WithCancel(t.Context())
	limit, used, stopped := 2.0, 1.0, 500*time.Millisecond
	seen := observe.Observation{Container: p.all[0], Window: time.Second, LimitCPUs: &limit, UsedCPUs: &used,
		StoppedLow: &stopped, StoppedHigh: &stopped}
	p.Latencies = func(string) slo.Source {
		return func(context.Context, time.Time) (slo.Answer, error) {
			return slo.Answer{MS: slices.Repeat([]float64{100}, 1000)}, nil
		}
	}
	p.Fix = func(latencies slo.Source) fix.Env {
		return fix.Env{Apply: p.Env, Latencies: latencies, Facts: p.Facts,
			Observe: func(context.Context, []container.Container, time.Duration) ([]observe.Observation, error) {
				return []observe.Observation{seen}, nil
			},
			Wait: func(context.Context, time.Duration) error {
				p.refuse("/a/0")
				cancel()
				return ctx.Err()
			}}
	}
	rules, err := policy.ParseRules([]byte("version: 1\nmode: apply\nrules:\n- class: exclusive\n  slo: {objective: " +
		"p99<20ms, command: probe}\n"))
	p.must(err)
	p.Rules = rules
	if p.finding(ctx, newChooser(rules, ""), finding{observation: seen, rule: &rules.Rules[0]}, nil) {
		t.Error("an interrupted change counts as made")
	}
	if log := p.log.String(); !strings.Contains(log, "stays in force") {
		t.Errorf("not said: %s", log)
	}
}
