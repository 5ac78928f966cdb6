package agent

import (
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/internal/txn/apply"
)

// Where the host's own slices are confined the agent lets their reserve follow
// what they use, up at once and down after a minute, in the place of what is in
// force; it confines nothing by itself,
// and in observe mode it changes nothing.
func TestAgentLetsTheReserveFollow(t *testing.T) {
	p := newPlacing(t, 0)
	for i, path := range []string{"/system.slice", "/system.slice/sshd.service"} {
		p.make(path)
		p.k.Spawn(path, 20+i)
	}
	group := cgroup.Group{Path: "/system.slice/sshd.service", CPUSetPath: "/system.slice/sshd.service",
		CPUAcctPath: "/system.slice/sshd.service"}
	p.all = append(p.all, container.Container{Name: "sshd.service", Runtime: container.Systemd, Group: group})
	runs := func() string {
		set, _ := p.k.Allowed(21)
		return set.String()
	}
	round := func(used float64) string {
		p.used[group.Path] = used
		p.reconcile(t.Context())
		return runs()
	}
	if got := round(1.2); got != "0-7" {
		t.Errorf("unasked it was confined to %s", got)
	}
	p.used[group.Path] = 0.5
	plan, err := remedy.ConfineSystem(p.facts(), remedy.Request{})
	p.must(err)
	_, err = apply.Replace(t.Context(), p.Env, []txn.Part{plan.Part()})
	p.must(err)
	for _, step := range []struct {
		used float64
		ago  time.Duration // that what it makes is in force
		want string
	}{{0.5, 0, "0"}, {1.2, 2 * time.Minute, "0-1"}, {0.1, 0, "0"}, {1.2, 0, "0-1"}, {0.1, 0, "0-1"}} {
		p.Env.Now = func() time.Time { return time.Now().Add(-step.ago) }
		if got := round(step.used); got != step.want {
			t.Errorf("using %g it runs on %s, want %s\n%s", step.used, got, step.want, p.log.String())
		}
		if held, err := apply.Status(p.Env); err != nil || len(held) != 1 {
			t.Errorf("%d transactions in force, %v", len(held), err)
		}
	}
	if !strings.Contains(p.log.String(), "the reserve follows") {
		t.Errorf("no message says so: %s", p.log.String())
	}
	p.Rules.Mode = policy.Observe
	plan, err = remedy.ConfineSystem(p.facts(), remedy.Request{})
	p.must(err)
	if len(plan.Changes) == 0 {
		t.Error("asked for by name it would shrink at once")
	}
	if got := round(0.1); got != "0-1" {
		t.Errorf("observing it moved it to %s", got)
	}
}
