package agent

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/agent/lendingtrial"
	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/cure/fix"
	"github.com/unthrottle/unthrottle/internal/cure/hoststate"
	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/cure/slo"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/irq"
	"github.com/unthrottle/unthrottle/internal/objective"
	"github.com/unthrottle/unthrottle/internal/see/observe"
	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/internal/txn/apply"
	"github.com/unthrottle/unthrottle/internal/txn/journal"
)

// lends reads one of the figures about lending; "" if it is not exported.
func (p *placing) lends(name string) string {
	p.t.Helper()
	r := prometheus.NewRegistry()
	r.MustRegister(&p.lender)
	families, err := r.Gather()
	p.must(err)
	for _, f := range families {
		for _, m := range f.Metric {
			full := f.GetName()
			for _, l := range m.Label {
				full += " " + l.GetValue()
			}
			if full == name {
				return fmt.Sprint(m.GetGauge().GetValue() + m.GetCounter().GetValue())
			}
		}
	}
	return ""
}

// rounds lets rounds go by in which the owner uses what it would alone, or, with
// its CPUs lent, that much less.
func (p *placing) rounds(n int, from time.Time, alone, loses float64) {
	p.t.Helper()
	for i := range n {
		used := alone
		secondary, _ := p.k.Allowed(11)
		if owner, _ := p.k.Allowed(10); !secondary.Intersection(owner).IsEmpty() {
			used -= loses
		}
		at := from.Add(time.Duration(i) * time.Second)
		p.lending(p.t.Context(), []observe.Observation{{Container: p.all[0], Start: at, Window: time.Second, UsedCPUs: &used}}, at)
	}
}

// secondary makes the second container one.
func (p *placing) secondary(r remedy.Request) {
	r.Kind = remedy.Secondary
	plan, err := remedy.Make(p.facts(), p.all[1], r)
	p.must(err)
	_, err = apply.Apply(p.t.Context(), p.Env, plan.Purpose(), plan.Changes)
	p.must(err)
}

// Lending that costs the owner something ends, is tried again later, and by an
// agent that was started again; lending that costs nothing goes on.
func TestAgentRevokesWhatHarms(t *testing.T) {
	p := newPlacing(t, 2)
	p.give(0, remedy.Request{Kind: remedy.Pin, Shares: true}, "2-3")
	now := time.Now()
	p.rounds(1, now, 2, 0)
	if p.lends("unthrottle_lenders unused") != "1" || p.lends("unthrottle_lent_cpus") != "0" {
		t.Error("no container is there to be lent anything")
	}
	p.secondary(remedy.Request{GrantLater: true})
	p.reconcileOnce() // lends
	p.reconcileOnce() // judges
	if p.at(1) != "0-7" || p.metric("unthrottle_placement_containers class=secondary") != "1" {
		t.Fatalf("the secondary is on %s\n%s", p.at(1), p.log.String())
	}
	p.rounds(40, now, 2, 0)
	if p.at(1) != "0-7" || p.lends("unthrottle_lent_cpus") != "2" || p.lends("unthrottle_lending_trials_total harmless") != "1" {
		t.Errorf("harmless, and it is on %s\n%s", p.at(1), p.log.String())
	}
	later := now.Add(2 * lendingtrial.Interval)
	p.rounds(50, later, 2, 0.5)
	p.reconcileOnce()
	if p.at(1) != "0-1,4-7" || p.lends("unthrottle_lent_cpus") != "0" || p.lends("unthrottle_lenders harmful") != "1" ||
		p.lends("unthrottle_lending_trials_total harmful") != "1" || !strings.Contains(p.log.String(), "sharing its CPUs slows it") {
		t.Errorf("harmed, and the secondary is on %s\n%s", p.at(1), p.log.String())
	}
	if p.onTrial() {
		t.Errorf("judged, and still on trial: %+v", p.facts().Held)
	}
	p.rounds(60, later.Add(2*retryAfter), 2, 0)
	if p.at(1) != "0-7" {
		t.Errorf("not harmed any more, and the secondary is on %s", p.at(1))
	}
	// In observe mode nothing is tried; killed in the middle of a trial, the next
	// agent gives the CPUs again and begins anew.
	p.rounds(lendingtrial.Rounds, later.Add(4*retryAfter), 2, 0.5)
	if p.at(1) == "0-7" {
		t.Fatal("no trial is under way")
	}
	p.Rules.Mode, p.lender = policy.Observe, lender{}
	p.rounds(30, later, 2, 0.5)
	if p.at(1) == "0-7" || p.lends("unthrottle_lenders taken_back") != "1" {
		t.Error("given again in observe mode")
	}
	p.Rules.Mode = policy.Apply
	p.rounds(1, later, 2, 0.5)
	if p.at(1) != "0-7" {
		t.Error("not given again")
	}
	p.rounds(60, later, 2, 0.5)
	if p.at(1) == "0-7" {
		t.Error("harm is not found anew")
	}
	_, err := apply.Restore(t.Context(), p.Env, apply.Selector{})
	p.must(err)
	p.rounds(2, later, 2, 0.5)
	if len(p.lender.trials) > 0 || p.lends("unthrottle_lenders harmful") != "0" {
		t.Errorf("it remembers %v", p.lender.trials)
	}
}

// While the owner is not measured, or cannot be written to, nothing changes.
func TestAgentLendsOnWithoutMeasure(t *testing.T) {
	p := newPlacing(t, 2)
	p.give(0, remedy.Request{Kind: remedy.Pin, Shares: true}, "2-3")
	p.secondary(remedy.Request{})
	for i := range 50 {
		p.lending(t.Context(), []observe.Observation{
			{Container: p.all[0], Start: time.Now().Add(time.Minute), Window: time.Second}}, time.Now().Add(time.Duration(i)*time.Second))
	}
	if p.at(1) != "0-7" || p.lends("unthrottle_lenders lent") != "1" {
		t.Errorf("not measured, and the secondary is on %s", p.at(1))
	}
	p.List = func() ([]container.Container, error) { return nil, fs.ErrPermission }
	p.rounds(20, time.Now(), 2, 0.5)
	if p.at(1) != "0-7" || !strings.Contains(p.log.String(), "could not be revoked") {
		t.Errorf("on %s\n%s", p.at(1), p.log.String())
	}
}

// harming is an owner that lending harms, in the third interval without it of its trial: the next to end judges it.
func harming(t *testing.T) (p *placing, next time.Time) {
	t.Helper()
	p = newPlacing(t, 2)
	p.Env.LockWait = -1 // not at all
	p.give(0, remedy.Request{Kind: remedy.Pin, Shares: true}, "2-3")
	p.secondary(remedy.Request{GrantLater: true})
	p.reconcileOnce()
	next = time.Now()
	for range 60 {
		p.rounds(1, next, 2, 0.5)
		next = next.Add(time.Second)
		if of := p.lender.trials["/a/0"]; of != nil && len(of.Without) == 2 && p.at(1) != "0-7" {
			return p, next
		}
	}
	t.Fatalf("no trial comes so far\n%s", p.log.String())
	return nil, next
}

// onTrial tells whether anything in force is on trial still.
func (p *placing) onTrial() bool {
	return slices.ContainsFunc(p.facts().Held, func(f txn.InForce) bool { return f.Trial != nil })
}

// Where the journal is locked as harm is found, the CPUs stay revoked on trial until it is not.
func TestRevokedForGoodAfterALock(t *testing.T) {
	p, next := harming(t)
	other, err := journal.Open(t.Context(), p.Env.StateDir, journal.Options{Wait: -1})
	p.must(err)
	p.rounds(10, next, 2, 0.5)
	other.Close()
	if p.lends("unthrottle_lenders harmful") != "1" || !p.onTrial() {
		t.Fatalf("the journal is locked: %+v\n%s", p.facts().Held, p.log.String())
	}
	p.rounds(1, next.Add(10*time.Second), 2, 0.5)
	if p.onTrial() {
		t.Errorf("on trial still\n%s", p.log.String())
	}
}

// An agent that starts anew leaves what harms revoked for the rest of the hour, and then looks at it anew.
func TestHarmOutlivesTheAgent(t *testing.T) {
	p, next := harming(t)
	p.rounds(10, next, 2, 0.5)
	p.lender = lender{}
	p.rounds(10, next.Add(10*time.Second), 2, 0.5)
	if p.at(1) == "0-7" || p.lends("unthrottle_lenders harmful") != "1" {
		t.Errorf("the secondary is on %s\n%s", p.at(1), p.log.String())
	}
	p.rounds(1, next.Add(retryAfter), 2, 0)
	if p.at(1) != "0-7" {
		t.Errorf("after an hour the secondary is on %s\n%s", p.at(1), p.log.String())
	}
}

// An owner whose rule matches by its pod's labels is judged by the slo of that rule, with the objective that its annotation
// asks for.
func TestLendingIsJudgedByTheRuleInForce(t *testing.T) {
	p := newPlacing(t, 1)
	p.all[0].ID = "owner"
	p.Rules.Rules = []policy.Rule{
		{Match: policy.Match{Labels: map[string]string{"app": "shop"}}, Auto: true, SLOCommand: "shop",
			Objective:   objective.Objective{Quantile: 0.99, Bound: time.Second},
			Annotations: policy.Allowed{Objective: true}},
		{Auto: true, SLOCommand: "any other"},
	}
	p.chooser.pods.of = func(id string) policy.Pod {
		if id != "owner" {
			return policy.Pod{}
		}
		return policy.Pod{Labels: map[string]string{"app": "shop"}, Annotations: map[string]string{policy.AnnotationObjective: "p90<20ms"}}
	}
	asked := ""
	p.Latencies = func(command string) slo.Source {
		asked = command
		return func(context.Context, time.Time) (slo.Answer, error) { return slo.Answer{MS: []float64{1}}, nil }
	}
	l := p.look(t.Context(), remedy.Sharing{Target: p.all[0].Group.Path}, &observe.Observation{Container: p.all[0]})
	if got := l.Latencies(start); len(got) != 1 || asked != "shop" || l.Quantile != 0.9 {
		t.Errorf("judged by the latencies of %q at quantile %g: %v", asked, l.Quantile, got)
	}
}

// interrupts are those of a modelled machine.
type interrupts map[string]string

func (f interrupts) Interrupts() ([]irq.Interrupt, error) { return nil, nil }
func (f interrupts) Read(file string) (string, error)     { return f[file], nil }
func (f interrupts) Write(file, list string) error        { f[file] = list; return nil }
func (f interrupts) ID(string) (uint64, error)            { return 1, nil }

// A rule with irqs keeps interrupts off what its pin gives, and restore brings
// them back; a rule without leaves them where they are.
func TestAgentMovesInterruptsByRule(t *testing.T) {
	for _, irqs := range []bool{true, false} {
		p := newPlacing(t, 1)
		p.must(p.k.Write(cgroup.CPU, "/a/0", "cpu.cfs_quota_us", "200000"))
		devices := interrupts{irq.Default: "0-7", irq.File(24): "0-7"}
		before := maps.Clone(devices)
		p.Env.IRQ = devices
		p.Interrupts = func() (hoststate.Interrupts, error) {
			set := cpuset.New(0, 1, 2, 3, 4, 5, 6, 7)
			return hoststate.Interrupts{All: []irq.Interrupt{{Number: 24, CPUs: set}}, Default: set}, nil
		}
		p.Latencies = func(string) slo.Source {
			asked := 0
			return func(context.Context, time.Time) (slo.Answer, error) {
				asked++
				out := make([]float64, 1000)
				for i := range out {
					out[i] = 100/float64(asked*asked) + float64(i)/1e6
				}
				return slo.Answer{MS: out}, nil
			}
		}
		p.Fix = func(latencies slo.Source) fix.Env {
			return fix.Env{Apply: p.Env, Latencies: latencies, Wait: func(context.Context, time.Duration) error {
				return nil
			}, Facts: p.Facts,
				Observe: func(_ context.Context, containers []container.Container, _ time.Duration) ([]observe.Observation, error) {
					limit, used, stopped := 2.0, 1.0, 500*time.Millisecond
					return []observe.Observation{
						{Container: p.all[0], Window: time.Second, LimitCPUs: &limit, UsedCPUs: &used,
							StoppedLow: &stopped, StoppedHigh: &stopped}}, nil
				}}
		}
		rules, err := policy.ParseRules([]byte("version: 1\nmode: apply\nrules:\n- class: exclusive\n  irqs: " + fmt.Sprint(irqs) +
			"\n  slo: {objective: p99<20ms, command: probe}\n"))
		p.must(err)
		p.Rules = rules
		p.must(p.fix(t.Context(), finding{observation: observe.Observation{Container: p.all[0]}, rule: &rules.Rules[0]}, nil))
		read, err := remedy.Decode(p.facts().Held[0], "")
		p.must(err)
		pinned := read.Placed()
		for file, list := range devices {
			if off := !strings.Contains(before[file], list); off != irqs {
				t.Errorf("irqs %v: %s is at %s, the pin on %s", irqs, file, list, pinned)
			}
		}
		_, err = apply.Restore(t.Context(), p.Env, apply.Selector{})
		p.must(err)
		if !maps.Equal(before, devices) {
			t.Errorf("restored: %v, before %v", devices, before)
		}
	}
}
