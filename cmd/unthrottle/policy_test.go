package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/load/cgrouptest"
	"github.com/unthrottle/unthrottle/test/wait"
)

// The command shows what the agent says of each container, and without an agent what the file says.
func TestPolicy(t *testing.T) {
	t.Parallel()
	tr := cgrouptest.New(t)
	busy, calm, left := tr.Make("busy"), tr.Make("calm"), tr.Make("left")
	for _, path := range []string{busy, calm, left} {
		tr.Limit(path, 0.2)
	}
	tr.Work(busy, 4)
	tr.Rest(calm)
	tr.Rest(left)
	rules := fmt.Sprintf("scope: %s\nflight: {probe: false}\nrules:\n- match: {cgroup: %s}\n  remedy: none\n- "+
		"remedy: burst\n", tr.Top, left)
	b := start(t, rules, "--state-dir", tr.StateDir)
	config := filepath.Join(rootOnly(t), "same.yaml")
	write := func(listen string) {
		if err := os.WriteFile(config, []byte("version: 1\nlisten: "+listen+"\n"+rules), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(b.address)
	report := func(args ...string) map[string]policy.ReportContainer {
		r := unthrottle(t, append([]string{"policy", "--config", config, "--json"}, args...)...)
		got := map[string]policy.ReportContainer{}
		for _, c := range decoded[policy.Report](t, r, 0).Containers {
			got[c.Cgroup] = c
		}
		fits(t, r.out)
		return got
	}
	want := map[string]policy.Reason{busy: policy.ReasonObserving, calm: policy.ReasonBelowBound, left: policy.ReasonRuleNone}
	wait.Until(t, "the agent says why", func() bool {
		all := report()
		for path, reason := range want {
			if got := all[path].Reason; got == nil || *got != reason {
				return false
			}
		}
		return true
	})
	if got := metric(b.get("/metrics"), fmt.Sprintf(
		`unthrottle_container_not_treated{container="%s",id="%s",namespace="",pod="",reason="rule-none"}`, left, left)); got != "1" {
		t.Errorf("the metric of %s is %q", left, got)
	}
	if one := report(left); len(one) != 1 || one[left].Reason == nil {
		t.Errorf("of one: %+v", one)
	}
	text := unthrottle(t, "policy", left, "--config", config)
	if text.code != 0 || !strings.Contains(text.out, "no: its rule says remedy: none") ||
		!strings.Contains(text.errors, "has the file "+b.config) {
		t.Errorf("%+v", text)
	}
	if r := unthrottle(t, "policy", "/", "--config", config); r.code != exitFailure ||
		!strings.Contains(r.errors, "the agent has not seen it") {
		t.Errorf("outside of the scope: %+v", r)
	}

	write("127.0.0.1:1")
	r := unthrottle(t, "policy", "--config", config)
	if r.code != 0 || !strings.Contains(r.errors, "no agent answers at 127.0.0.1:1") ||
		!strings.Contains(r.out, "not known: no agent was asked") || !strings.Contains(r.out, "remedy: none") {
		t.Errorf("without an agent: %+v", r)
	}
	if all := report(); all[busy].Reason != nil || all[left].Reason == nil || *all[left].Reason != policy.ReasonRuleNone {
		t.Errorf("without an agent: %+v", all)
	}
	if r := unthrottle(t, "policy", "/", "--config", config); r.code != exitFailure ||
		!strings.Contains(r.errors, "the file says nothing of it") || strings.Contains(r.errors, "the agent has not seen it") {
		t.Errorf("outside of the scope, without an agent: %+v", r)
	}
	if r := unthrottle(t, "policy", "--config", filepath.Join(t.TempDir(), "none.yaml")); r.code != exitFailure ||
		!strings.Contains(r.errors, "no such file") {
		t.Errorf("no file: %+v", r)
	}
}
