package main

import (
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/bandwidth"
	"github.com/unthrottle/unthrottle/bench/rivals/rules"
	"github.com/unthrottle/unthrottle/bench/services"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/load/sandbox"
	"github.com/unthrottle/unthrottle/test/lab/require"
	"github.com/unthrottle/unthrottle/test/study"
)

func steps(p99 ...float64) (all []point) {
	for i, v := range p99 {
		at := point{Load: loads[i]}
		if v > 0 {
			at.P99 = new(v)
		}
		all = append(all, at)
	}
	return all
}

func TestHighestLoad(t *testing.T) {
	for name, c := range map[string]struct {
		points []point
		load   float64
		open   bool
		ended  bool
	}{
		"between":           {steps(10, 12, 15, 20, 45), 1.375, false, false},
		"on it":             {steps(10, 30, 60, 90), 0.75, false, true},
		"over from the on":  {steps(40, 50), 0, false, true},
		"never over":        {steps(1, 2, 3, 4, 5, 6, 7, 8, 9), 4, true, false},
		"once over":         {steps(10, 40, 20, 60, 70), 1 + 0.25*math.Log(1.5)/math.Log(3), false, true},
		"then no answer":    {steps(10, 20, 0, 0), 0.75, false, true},
		"nothing at all":    {nil, 0, false, false},
		"last two not over": {steps(10, 40, 50, 20), 1.25, true, false},
	} {
		load, open := highest(c.points, 30)
		if math.Abs(load-c.load) > 1e-9 || open != c.open || ended(c.points, 30) != c.ended {
			t.Errorf("%s: %v, open %v, ended %v", name, load, open, ended(c.points, 30))
		}
	}
}

func TestBetween(t *testing.T) {
	p99 := func(p *point) *float64 { return p.P99 }
	all := steps(10, 20, 40, 0)
	for load, want := range map[float64]float64{0.2: 10, 0.5: 10, 0.75: 20, 0.875: 20 * math.Sqrt2, 1: 40, 1.1: 0, 3: 0} {
		got, ok := between(all, load, p99)
		if ok != (want > 0) || ok && math.Abs(got-want) > 1e-9 {
			t.Errorf("at %v: %v, %v", load, got, ok)
		}
	}
}

// What a rule decides by a day of use is what it comes to when it is asked again and again.
func TestSettled(t *testing.T) {
	of := rules.Resources{RequestCPUs: 1, LimitCPUs: 1}
	const used = 0.5
	vpa := settled(rules.VPA{}, of, day(used, apart(rules.VPA{})))
	if c := vpa.Limit.CPUs(); c < 0.5 || c > 0.65 { // the 90th percentile and 15 %
		t.Errorf("VPA: %+v", vpa)
	}
	krr := settled(rules.KRR{}, of, day(used, apart(rules.KRR{})))
	if krr.Limit.Limited() || krr.RequestCPUs < 0.48 || krr.RequestCPUs > 0.5 {
		t.Errorf("KRR: %+v", krr)
	}
	if attune := settled(rules.Attune{}, of, day(used, apart(rules.Attune{}))); attune.Limit.CPUs() != 1 || attune.RequestCPUs > 1 {
		t.Errorf("Attune: %+v", attune)
	}
	if k := settled(rules.Kubelet{DisableCPUQuotaWithExclusiveCPUs: true}, of, nil); k.ExclusiveCPUs != 1 || k.Limit.Limited() {
		t.Errorf("kubelet: %+v", k)
	}
	history := day(used, time.Hour)
	if len(history) != 24 || math.Abs(history[11].CPUs-used) > 1e-9 || math.Abs(history[23].CPUs-used/4) > 1e-9 {
		t.Errorf("%+v", history)
	}
}

// Each variant has one way to be applied and a name of its own, and says what it leaves. What fits no service says why.
func TestVariants(t *testing.T) {
	names := map[string]bool{}
	for _, v := range variants {
		ways := 0
		for _, has := range []bool{v.rule != nil, len(v.apply) > 0, v.fix, v.agent} {
			if has {
				ways++
			}
		}
		if names[v.name] || ways != 1 || v.left == "" {
			t.Errorf("%+v", v)
		}
		names[v.name] = true
		if v.rule == nil {
			continue
		}
		of := rules.Resources{RequestCPUs: 1, LimitCPUs: 1}
		s := settled(v.rule(of), of, day(0.5, time.Minute))
		if !v.live() && v.period > 0 && s.Limit.Period != v.period {
			t.Errorf("%s: its steps last ten periods of %v, and it sets %v", v.name, v.period, s.Limit.Period)
		}
	}
	for _, name := range served {
		if _, err := chosenServices(name, served); err != nil {
			t.Error(err)
		}
	}
	c := services.Case{Limit: 0.5}
	for name, applies := range map[string]bool{"pool sized": false, "kubelet exclusive CPUs": false, "quota": true} {
		v, err := chosenVariants(name)
		if err != nil || (v[0].applies(c) == "") != applies {
			t.Errorf("%s: %v, %v", name, v, err)
		}
	}
	for _, err := range []error{errOf(chosenServices("none", served)), errOf(chosenVariants("none"))} {
		if err == nil || !strings.Contains(err.Error(), `"none"`) {
			t.Error(err)
		}
	}
}

func errOf[T any](_ T, err error) error { return err }

// The page is that of the records, and says first what a rival does better at equal CPU.
func TestPage(t *testing.T) {
	of := func(variant string, granted float64, p99 ...float64) piece {
		p := piece{Service: "x", Limit: 1, Variant: variant, Round: 1, Points: steps(p99...), Objective: 30}
		for i := range p.Points {
			p.Points[i].GrantedCPUs = granted
		}
		return p
	}
	all := []piece{
		of("quota", 1, 10, 20, 60, 90), of("no limit", 2, 5, 6, 7, 8, 9, 10), of("burst in 1 s", 1, 5, 6, 7, 8, 60, 90),
		of("unthrottle fix", 1, 5, 10, 20, 60, 90),
	}
	all[3].Set, all[3].Decided = "burst 100ms", new(180.0)
	all[2].Refusals, all[2].Writes, all[2].FirstRefusal = 1, 2, "EINVAL"
	rows := rowsOf(all)
	if lines := better(rows); len(lines) != 1 || !strings.HasPrefix(lines[0], "`x`: burst in 1 s carries") {
		t.Errorf("%q", lines)
	}
	raises := of("Koordinator", 1, 5, 6, 7, 8, 9, 10)
	raises.Points[5].GrantedCPUs = 1.5 // at the highest load alone
	all = append(all, raises)
	if lines := better(rowsOf(all)); len(lines) != 1 {
		t.Errorf("a limit raised by load counts as equal CPU: %q", lines)
	}
	text := pageOf(all)
	for _, want := range []string{"| no limit | 1 | 1 | ", "EINVAL", "burst 100ms", "at least 2 |", "| quota | 1 | 8.57 | 1 | 1 | yes |",
		"| 1 | no | - | the last quota"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not have %q:\n%s", want, text)
		}
	}
	if !strings.Contains(pageOf(nil), "Nothing was measured yet.") {
		t.Error(pageOf(nil))
	}
}

// The tree's page is made of the tree's records, and shows each of them.
func TestPageIsOfTheRecords(t *testing.T) {
	have, err := study.ReadLines[piece]("records.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../../docs/results/rivals.md")
	if err != nil || string(text) != pageOf(have.All) {
		t.Errorf("docs/results/rivals.md is not of bench/rivals/records.jsonl.gz: make results-rivals RIVALS='-rounds 0' (%v)", err)
	}
	for _, p := range have.All {
		_, err := chosenVariants(p.Variant)
		section, _, _ := strings.Cut(string(text[max(0, strings.Index(string(text), "### "+p.Service+":")):]), "\n### ")
		if err != nil || p.Round > 0 && !strings.Contains(section, "| "+p.Variant+" |") {
			t.Errorf("%s, %s, round %d: no row shows it (%v)", p.Service, p.Variant, p.Round, err)
		}
	}
}

// What the kernel refuses stays as it was, and is counted; the quota beside it is written all the same.
func TestRefusals(t *testing.T) {
	require.EachCgroup(t, "a quota that is set")
	host, err := cgroup.Open("/proc")
	if err != nil {
		t.Fatal(err)
	}
	box, err := sandbox.Open(sandbox.Options{Host: host, Prefix: "unthrottle-test-"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := box.Remove(); err != nil {
			t.Error(err)
		}
	}()
	group, err := box.Top().Group("x")
	if err != nil {
		t.Fatal(err)
	}
	of := rules.Resources{RequestCPUs: 0.5, LimitCPUs: 0.5}
	h := newHolder("x", group, box.CPUs().List(), of.LimitCPUs)
	if err := group.SetLimit(h.now.Limit); err != nil {
		t.Fatal(err)
	}
	to := h.now
	to.Limit.Quota, to.Limit.Burst = 60*time.Millisecond, 500*time.Millisecond
	if err := h.put(to); err != nil {
		t.Fatal(err)
	}
	now, changed := h.inForce()
	if h.refusals != 1 || h.writes != 2 || h.firstRefusal == "" || changed.IsZero() ||
		now.Limit != (bandwidth.Limit{Quota: 60 * time.Millisecond, Period: 100 * time.Millisecond}) {
		t.Errorf("%+v", h)
	}
	if in, err := cgroup.ReadLimit(host, group.At().Path); err != nil || in != now.Limit {
		t.Errorf("%v, %v", in, err)
	}
}
