package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/cure/fix"
	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/podresize"
	"github.com/unthrottle/unthrottle/internal/see/observe"
	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/internal/txn/apply"
)

// limited is a container with a limit that was stopped for a part of a second.
func limited(path string, stopped float64) observe.Observation {
	o := seen(path, stopped)
	o.LimitCPUs, o.Container.ID = new(0.5), path
	return o
}

// annotated is a chooser whose containers' pods have an annotation, by the container's id.
func annotated(r policy.Rules, asks map[string]string) *chooser {
	c := newChooser(r, "")
	c.pods.of = func(id string) policy.Pod {
		if asks[id] == "" {
			return policy.Pod{}
		}
		return policy.Pod{Annotations: map[string]string{policy.AnnotationRemedy: asks[id]}}
	}
	return c
}

// TestWhyNot: each reason that a round can give.
func TestWhyNot(t *testing.T) {
	secondaries := func(r *policy.Rules) {
		r.Rules = append([]policy.Rule{{Match: policy.Match{Cgroup: "/batch/**"}, Remedy: remedy.Secondary}}, r.Rules...)
	}
	unlimited := seen("/a", 0)
	inside := seen("/a", 0.5)
	inside.ThrottledBy = "/a/vcpu0"
	for _, tc := range []struct {
		name  string
		rules func(*policy.Rules)
		o     observe.Observation
		asks  string
		held  []txn.InForce
		age   time.Duration // 0: not known
		want  policy.Reason
	}{
		{"in force", nil, limited("/a", 0.5), "", []txn.InForce{{Target: "/a", Remedy: "burst", ID: "7"}}, 0, ""},
		{"not known", nil, limited("/a", 0.5), "brust", nil, 0, policy.ReasonAnnotation},
		{"no rule", func(r *policy.Rules) { r.Rules = r.Rules[:2] }, limited("/a", 0.5), "", nil, 0, policy.ReasonNoRule},
		{"opted out", nil, limited("/a", 0.5), "none", nil, 0, policy.ReasonOptedOut},
		{"rule none", nil, limited("/leave/a", 0.5), "", nil, 0, policy.ReasonRuleNone},
		{"no limit", nil, unlimited, "", nil, 0, policy.ReasonNoLimit},
		{"a quota inside", nil, inside, "", nil, 0, policy.ReasonInside},
		{"not measured", nil, observe.Observation{Container: container.Container{Group: cgroup.Group{Path: "/a"}},
			LimitCPUs: new(1.0), Window: time.Second}, "", nil, 0, policy.ReasonNotMeasured},
		{"below", nil, limited("/a", 0.005), "", nil, 0, policy.ReasonBelowBound},
		{"starting", nil, limited("/a", 0.5), "", nil, time.Second, policy.ReasonStarting},
		{"started", nil, limited("/a", 0.5), "", nil, time.Hour, policy.ReasonTrying},
		{"observing", func(r *policy.Rules) { r.Mode = policy.Observe }, limited("/a", 0.5), "", nil, 0, policy.ReasonObserving},
		{"observing, below", func(r *policy.Rules) { r.Mode = policy.Observe }, limited("/a", 0), "", nil, 0, policy.ReasonBelowBound},
		{"unjudged", nil, limited("/bare/a", 0.5), "", nil, 0, policy.ReasonUnjudged},
		{"containers", func(r *policy.Rules) { r.Budget.Containers = 0 }, limited("/a", 0.5), "", nil, 0, policy.ReasonBudgetContainers},
		{"moves", func(r *policy.Rules) { r.Budget.MovesPerMinute = 0 }, limited("/a", 0.5), "", nil, 0, policy.ReasonBudgetMoves},
		{"a secondary", secondaries, limited("/batch/a", 0), "", nil, 0, policy.ReasonTrying},
		{"a secondary in force", secondaries, limited("/batch/a", 0), "",
			[]txn.InForce{{Target: "/batch/a", Remedy: "secondary", ID: "8"}}, 0, ""},
		{"a secondary that opts out", secondaries, limited("/batch/a", 0), "none", nil, 0, policy.ReasonOptedOut},
	} {
		c := annotated(rules(tc.rules), map[string]string{tc.o.Container.ID: tc.asks})
		c.rules.Startup = 30 * time.Second
		c.age = func(container.Container) (time.Duration, bool) { return tc.age, tc.age > 0 }
		persisted(c, []observe.Observation{tc.o}, tc.held)
		got := c.standings[tc.o.Container.Group.Path].treatment
		if got.Reason != tc.want || (got.Reason == "") != (got.Transaction != "") {
			t.Errorf("%s: %+v, want %q", tc.name, got, tc.want)
		}
	}
}

// TestOneComesFirst: of two the worse is tried, the other waits; what came of it stands until it is tried again.
func TestOneComesFirst(t *testing.T) {
	c := newChooser(rules(nil), "")
	observations := []observe.Observation{limited("/a", 0.2), limited("/b", 0.6)}
	c.round(observations, nil, start)
	if got := c.standings["/b"].treatment.Reason; got != policy.ReasonConfirming {
		t.Errorf("after a round: %q", got)
	}
	persisted(c, observations, nil)
	if a, b := c.standings["/a"].treatment.Reason, c.standings["/b"].treatment.Reason; a != policy.ReasonTurn || b != policy.ReasonTrying {
		t.Errorf("%q and %q", a, b)
	}
	at := start.Add(persist * time.Second)
	c.tried("/b", at, retryAfter)
	c.attempted("/b", outcome(&notKept{"leave", "nothing helps", false}))
	c.round(observations, nil, at.Add(time.Second))
	got := c.standings["/b"].treatment
	if got.Reason != policy.ReasonForecast || !got.Until.Equal(at.Add(retryAfter)) || !strings.Contains(got.Why(), "nothing helps") {
		t.Errorf("%+v", got)
	}
	delete(c.waits, "/b") // as after a restart
	c.round(observations, nil, at.Add(2*time.Second))
	if got := c.standings["/b"].treatment; got.Reason != policy.ReasonCooldown || got.Until.IsZero() {
		t.Errorf("%+v", got)
	}
}

// TestStartup: what stops a container while it starts is no finding, and does not count towards one.
func TestStartup(t *testing.T) {
	c := newChooser(rules(nil), "")
	c.rules.Startup = 30 * time.Second
	asked := 0
	c.age = func(container.Container) (time.Duration, bool) { asked++; return 10 * time.Second, true }
	observations := []observe.Observation{limited("/a", 0.5)}
	found := func(from, to int) (at []int) {
		for i := from; i < to; i++ {
			if len(c.round(observations, nil, start.Add(time.Duration(i)*time.Second))) > 0 {
				at = append(at, i)
			}
		}
		return at
	}
	if at := found(0, 20); at != nil || c.standings["/a"].treatment.Reason != policy.ReasonStarting ||
		!c.standings["/a"].treatment.Until.Equal(start.Add(20*time.Second)) {
		t.Errorf("found in rounds %v, %+v", at, c.standings["/a"].treatment)
	}
	if at := found(20, 20+persist); !slices.Equal(at, []int{20 + persist - 1}) || asked != 1 {
		t.Errorf("found in rounds %v, asked for its age %d times", at, asked)
	}
}

// TestOutcomes: what an error of a fix says, without what a latency command printed.
func TestOutcomes(t *testing.T) {
	for _, c := range []struct {
		err  error
		want policy.Reason
		says string
	}{
		{fix.ErrObjectiveMet, policy.ReasonObjectiveMet, ""},
		{&apply.Stale{}, policy.ReasonReplanned, ""},
		{fmt.Errorf("%w: 9 of 8", errBudget), policy.ReasonBudgetCPUs, "9 of 8"},
		{fmt.Errorf("%w: x", errUnjudged), policy.ReasonUnjudged, ""},
		{errTrialsFull, policy.ReasonCooldown, "8 containers of this node have a trial"},
		{&notKept{"leave", "the quota is best", false}, policy.ReasonForecast, "the quota is best"},
		{&notKept{"worse", "p99 rose", true}, policy.ReasonCooldown, "p99 rose"},
		{&fix.NoRemedy{Why: "stopped", Not: []policy.Rejected{{Remedy: "pin", Why: "CPUs 2-3 are the kubelet's"}}},
			policy.ReasonRefused, "the kubelet's"},
		{&remedy.Refused{Remedy: "pin", Why: "no CPU is free"}, policy.ReasonRefused, "no CPU is free"},
		{fmt.Errorf("limits.cpu: %w", &podresize.Refused{Message: "exceeded quota"}), policy.ReasonRefused,
			"exceeded quota"},
		{&podresize.Refused{Reason: podresize.PendingDeferred, Message: "full"}, policy.ReasonDeferred, "full"},
		{&podresize.Refused{Reason: podresize.PendingInfeasible, Message: "static"}, policy.ReasonInfeasible, "static"},
		{&fix.NotMeasured{Err: errors.New("token=secret")}, policy.ReasonNotMeasured, ""},
		{errors.New("token=secret"), policy.ReasonFailed, ""},
	} {
		got := outcome(c.err)
		if got.Reason != c.want || !strings.Contains(got.Why(), c.says) || strings.Contains(got.Why(), "secret") {
			t.Errorf("%v: %+v", c.err, got)
		}
	}
}

// TestAnnotationsAreToldOnce: a refusal is logged when it is new, and the rules are not asked again while nothing changed.
func TestAnnotationsAreToldOnce(t *testing.T) {
	asks := map[string]string{"/a": "pin", "/b": "none"}
	c := annotated(rules(nil), asks)
	generation := uint64(1)
	c.pods.generation = func() uint64 { return generation }
	var told []string
	c.tell = func(of container.Container, r policy.Refusal) {
		told = append(told, of.Name+" "+r.Annotation+" "+r.Value)
	}
	observations := []observe.Observation{limited("/a", 0.5), limited("/b", 0.5)}
	for i := range 9 {
		c.round(observations, nil, start.Add(time.Duration(i)*time.Second))
		generation += uint64(i % 2)
	}
	if want := []string{"/a unthrottle.dev/remedy pin"}; !slices.Equal(told, want) {
		t.Errorf("told %q", told)
	}
	asks["/a"] = "burst; reboot"
	c.round(observations, nil, start.Add(time.Minute))
	if len(told) != 1 {
		t.Errorf("asked again although nothing changed: %q", told)
	}
	generation++
	c.round(observations, nil, start.Add(2*time.Minute))
	if len(told) != 2 || c.standings["/a"].treatment.Reason != policy.ReasonAnnotation {
		t.Errorf("told %q, %+v", told, c.standings["/a"].treatment)
	}
	c.round(observations[1:], nil, start.Add(3*time.Minute))
	if len(c.standings) != 1 {
		t.Errorf("%d containers are remembered", len(c.standings))
	}
}

// TestPolicyPage: the page and the metric say the same, within the bound of what is exported, and safely.
func TestPolicyPage(t *testing.T) {
	c := annotated(rules(nil), map[string]string{"/a\x1b[31m": "none"})
	a := &agent{Config: Config{ConfigFile: "/etc/unthrottle.yaml", Version: "1"}, chooser: c, lastRound: start}
	observations := []observe.Observation{limited("/a\x1b[31m", 0.5), limited("/b", 0)}
	for i := range maxContainers {
		observations = append(observations, limited(fmt.Sprintf("/c/%d", i), 0))
	}
	c.round(observations, []txn.InForce{{Target: "/b", Remedy: "burst", ID: "7"}}, start)
	w := httptest.NewRecorder()
	policyPage(a.report).ServeHTTP(w, httptest.NewRequest("GET", "/policy", nil))
	if strings.Contains(w.Body.String(), "\x1b") {
		t.Error("a name is not made safe")
	}
	var got policy.Document
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if got.Schema != "policy" || got.Version != 1 || got.Agent == nil || len(got.Containers) != maxContainers {
		t.Errorf("%s %d, %d containers", got.Schema, got.Version, len(got.Containers))
	}
	if first := got.Containers[0]; first.Reason == nil || *first.Reason != policy.ReasonOptedOut ||
		first.Remedy != nil || first.Why == nil {
		t.Errorf("%+v", first)
	}
	if second := got.Containers[1]; second.Remedy == nil || *second.Remedy != "burst" || second.Reason != nil ||
		*second.Transaction != "7" {
		t.Errorf("%+v", second)
	}
	r := prometheus.NewRegistry()
	r.MustRegister(notTreated{c})
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	if n := len(families[0].GetMetric()); n != maxContainers-1 {
		t.Errorf("%d series of %d containers, one of which is treated", n, maxContainers)
	}
	for _, m := range families[0].GetMetric()[:10] {
		for _, l := range m.GetLabel() {
			if l.GetName() == "reason" && !slices.Contains(policy.Reasons(), policy.Reason(l.GetValue())) {
				t.Errorf("reason %q", l.GetValue())
			}
		}
	}
}
