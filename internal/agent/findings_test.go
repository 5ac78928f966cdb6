package agent

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/cure/verdict"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/see/observe"
	"github.com/unthrottle/unthrottle/internal/sim/forecast"
	"github.com/unthrottle/unthrottle/internal/txn"
)

// seen is an observation of a container that was stopped for a part of a
// second.
func seen(path string, stopped float64) observe.Observation {
	d := time.Duration(stopped * float64(time.Second))
	return observe.Observation{
		Container: container.Container{Group: cgroup.Group{Path: path}, Name: path},
		Window:    time.Second, StoppedLow: &d, StoppedHigh: &d,
	}
}

func rules(change func(*policy.Rules)) policy.Rules {
	r := policy.Rules{Mode: policy.Apply, Bound: 0.01, Budget: policy.DefaultBudget(), Rules: []policy.Rule{
		{Match: policy.Match{Cgroup: "/leave/**"}, Leave: true},
		{Match: policy.Match{Cgroup: "/bare/**"}, Auto: true},
		{Auto: true, SLOCommand: "probe"},
	}}
	if change != nil {
		change(&r)
	}
	return r
}

func paths(found []finding) string {
	var out []string
	for _, f := range found {
		text := f.observation.Container.Group.Path
		if f.refused != "" {
			text += " (" + f.refused + ")"
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// rounds feeds the same round until just before it counts, then once more.
func persisted(c *chooser, observations []observe.Observation, held []txn.InForce) []finding {
	for i := range persist - 1 {
		if f := c.round(observations, held, start.Add(time.Duration(i)*time.Second)); len(f) > 0 {
			return []finding{{refused: "too early"}}
		}
	}
	return c.round(observations, held, start.Add(persist*time.Second))
}

func TestChooser(t *testing.T) {
	for _, tc := range []struct {
		name  string
		rules func(*policy.Rules)
		all   []observe.Observation
		held  []txn.InForce
		want  string
	}{
		{"below the bound", nil, []observe.Observation{seen("/a", 0.01)}, nil, ""},
		{"stopped", nil, []observe.Observation{seen("/a", 0.5)}, nil, "/a"},
		{"not measured is not above", nil,
			[]observe.Observation{{Container: container.Container{Group: cgroup.Group{Path: "/a"}}, Window: time.Second}}, nil, ""},
		{"one change at a time, the worst first", nil, []observe.Observation{seen("/a", 0.2), seen("/b", 0.9), seen("/c", 0.5)}, nil, "/b"},
		{"in force already", nil, []observe.Observation{seen("/a", 0.5)}, []txn.InForce{{Target: "/a"}}, ""},
		{"no slo: said, not acted on", nil, []observe.Observation{seen("/bare/a", 0.5), seen("/b", 0.1)}, nil, "/bare/a, /b"},
		{"left alone: said", nil, []observe.Observation{seen("/leave/a", 0.5)}, nil, "/leave/a"},
		{"observing: all are said", func(r *policy.Rules) { r.Mode = policy.Observe },
			[]observe.Observation{seen("/a", 0.2), seen("/b", 0.9)}, nil, "/b, /a"},
		{
			"budget of containers", func(r *policy.Rules) { r.Budget.Containers = 1 },
			[]observe.Observation{seen("/a", 0.2)}, []txn.InForce{{Target: "/x"}, {Target: "/x"}},
			"/a (1 containers have a remedy in force or a trial, the budget's bound)",
		},
		{
			"budget of changes", func(r *policy.Rules) { r.Budget.MovesPerMinute = 0 },
			[]observe.Observation{seen("/a", 0.2)}, nil,
			"/a (0 changes in the last minute, the budget's bound)",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := paths(persisted(newChooser(rules(tc.rules), ""), tc.all, tc.held)); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestChooserRemembersWhatDidNotHelp(t *testing.T) {
	c := newChooser(rules(nil), "")
	observations := []observe.Observation{seen("/a", 0.5)}
	if got := paths(persisted(c, observations, nil)); got != "/a" {
		t.Fatalf("first: %q", got)
	}
	c.tried("/a", start, retryAfter)
	if got := paths(c.round(observations, nil, start.Add(retryAfter-time.Second))); got != "" {
		t.Errorf("tried again too early: %q", got)
	}
	if got := paths(c.round(observations, nil, start.Add(retryAfter+time.Second))); got != "/a" {
		t.Errorf("not tried again: %q", got)
	}
	// Each time in a row that it did not help doubles the wait, up to a bound; a success ends that.
	at := start
	for i, want := range []time.Duration{2, 4, 8, 16, 16} {
		c.tried("/a", at, retryAfter)
		if got := c.retry["/a"].Sub(at); got != want*retryAfter {
			t.Errorf("attempt %d: not before %v, want %v", i+2, got, want*retryAfter)
		}
	}
	c.tried("/a", at, 0)
	c.tried("/a", at, retryAfter)
	if got := c.retry["/a"].Sub(at); got != retryAfter {
		t.Errorf("after a success: %v", got)
	}
}

// A restart does not forget what did not help. The tries of one attempt count once, a success ends the count, and other
// writers' changes are none of the agent's.
func TestChooserRemembersAcrossARestart(t *testing.T) {
	ended := func(path, by, verdict string, after time.Duration) txn.Past {
		return txn.Past{InForce: txn.InForce{Target: path, By: by, Outcome: &txn.Outcome{Verdict: verdict}}, Until: start.Add(after)}
	}
	const minute = time.Minute
	past := []txn.Past{ // oldest first
		ended("/once", "agent", verdict.NoChange, 0), ended("/once", "agent", verdict.Worse, minute),
		ended("/once", "agent", verdict.NoChange, 2*minute),
		ended("/twice", "agent", verdict.Worse, -2*retryAfter), ended("/twice", "agent", verdict.NoChange, 0),
		ended("/helped", "agent", verdict.Worse, -2*retryAfter), ended("/helped", "agent", verdict.Better, 0),
		ended("/person", "unthrottle fix", verdict.Worse, 0), ended("/long ago", "agent", verdict.Worse, -9*retryAfter),
		{InForce: txn.InForce{Target: "/no outcome", By: "agent"}, Until: start},
	}
	past = append(past, ended("/to come", "agent", verdict.Worse, 100*retryAfter)) // the clock was ahead then, and is set back
	slices.Reverse(past)
	c := newChooser(rules(nil), "")
	c.by = "agent"
	c.remember(past, start.Add(3*minute))
	want := map[string]time.Time{"/to come": start.Add(3*minute + retryAfter),
		"/once": start.Add(2*minute + retryAfter), "/twice": start.Add(2 * retryAfter)}
	if !maps.Equal(c.retry, want) {
		t.Errorf("not before %v, want %v", c.retry, want)
	}
	c.tried("/twice", start, retryAfter)
	if got := c.retry["/twice"].Sub(start); got != 4*retryAfter {
		t.Errorf("a third time in vain: not before %v, want %v", got, 4*retryAfter)
	}
	if len(c.misses) != 3 {
		t.Errorf("remembers %v", c.misses)
	}
}

// The probe may judge where the rule says so.
func TestHindranceOfTheVerifier(t *testing.T) {
	c := newChooser(rules(nil), "not owned by root")
	for _, tc := range []struct {
		rule policy.Rule
		want string
	}{
		{policy.Rule{Auto: true}, "neither an slo nor verify: probe"},
		{policy.Rule{Auto: true, Verify: policy.VerifyProbe}, ""},
		{policy.Rule{Auto: true, Verify: policy.VerifyBoth, SLOCommand: "x"}, "must not be run"},
	} {
		if _, got := c.hindrance(&tc.rule, time.Now()); (tc.want == "") != (got == "") || !strings.Contains(got, tc.want) {
			t.Errorf("%+v: %q", tc.rule, got)
		}
	}
}

// What is only said is said once an hour, and the memory of it is bounded by
// what is there.
func TestChooserSaysOnce(t *testing.T) {
	c := newChooser(rules(func(r *policy.Rules) { r.Mode = policy.Observe }), "")
	observations := []observe.Observation{seen("/a", 0.5)}
	if got := paths(persisted(c, observations, nil)); got != "/a" {
		t.Fatalf("first: %q", got)
	}
	for i := range 100 {
		if got := paths(c.round(observations, nil, start.Add(10*time.Second+time.Duration(i)*time.Second))); got != "" {
			t.Fatalf("said again: %q", got)
		}
	}
	if got := paths(c.round(observations, nil, start.Add(2*retryAfter))); got != "/a" {
		t.Errorf("not said after an hour: %q", got)
	}
	for i := range 3 {
		var strangers []observe.Observation
		for j := range 500 {
			strangers = append(strangers, seen(fmt.Sprintf("/s%d-%d", i, j), 0.5))
		}
		for k := range persist {
			c.round(strangers, nil, start.Add(time.Duration(i+3)*2*retryAfter+time.Duration(k)*time.Second))
		}
	}
	if n := len(c.said) + len(c.stopped) + len(c.retry); n > 1100 {
		t.Errorf("remembers %d containers, most of which are gone", n)
	}
}

func TestWithinShare(t *testing.T) {
	pin := remedy.Plan{CPUs: cpuset.New(2, 3)}
	held := []txn.InForce{{Remedy: "pin", Parameters: map[string]string{"cpus": "4-5"}}}
	budget := policy.Budget{CPUShare: 0.5}
	if err := withinShare(budget, pin, held, 8); err != nil {
		t.Errorf("4 of 8 CPUs is half: %v", err)
	}
	if err := withinShare(budget, pin, held, 7); !errors.Is(err, errBudget) {
		t.Errorf("4 of 7 CPUs is more than half: %v", err)
	}
	if err := withinShare(budget, remedy.Plan{}, held, 2); err != nil {
		t.Errorf("a plan without exclusive CPUs: %v", err)
	}
}

// Where the recorded responses are to judge and nothing was recorded, nothing is applied.
func TestWhatNothingCanJudge(t *testing.T) {
	recorded := policy.Proposal{Known: &policy.Known{Forecast: &forecast.Forecast{}}}
	bare := policy.Proposal{Known: &policy.Known{Missing: "no BTF"}, Why: "nothing was forecast: no BTF"}
	for _, tc := range []struct {
		verify string
		p      policy.Proposal
		ok     bool
	}{
		{policy.VerifySLO, bare, true}, {"", policy.Proposal{}, true},
		{policy.VerifyProbe, recorded, true}, {policy.VerifyBoth, recorded, true},
		{policy.VerifyProbe, bare, false}, {policy.VerifyBoth, bare, false}, {policy.VerifyProbe, policy.Proposal{}, false},
	} {
		err := judgeable(&policy.Rule{Auto: true, Verify: tc.verify}, tc.p)
		if (err == nil) != tc.ok || err != nil && (!errors.Is(err, errUnjudged) || !strings.Contains(err.Error(), tc.p.Why)) {
			t.Errorf("verify %q, %+v: %v", tc.verify, tc.p, err)
		}
	}
}

func TestFindingsAreSortedStably(t *testing.T) {
	c := newChooser(rules(func(r *policy.Rules) { r.Mode = policy.Observe }), "")
	got := paths(persisted(c, []observe.Observation{seen("/a", 0.5), seen("/b", 0.5), seen("/c", 0.5)}, nil))
	want := []string{"/a", "/b", "/c"}
	if !slices.Equal(strings.Split(got, ", "), want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// An annotation that the rule allows makes a calm container secondary, where no rule of the file does.
func TestAnnotationMakesSecondary(t *testing.T) {
	allows := func(r *policy.Rules) { r.Rules[2].Annotations.Remedies = []string{string(remedy.Secondary)} }
	calm := limited("/batch/a", 0)
	c := annotated(rules(allows), map[string]string{calm.Container.ID: string(remedy.Secondary)})
	if got := paths(persisted(c, []observe.Observation{calm, seen("/web", 0)}, nil)); got != "/batch/a" {
		t.Errorf("found %q, and the treatment is %+v", got, c.standings["/batch/a"].treatment)
	}
}

// A rule makes a calm container secondary, after some rounds, once, within the
// budget, and without an slo; one that is stopped as well is no other finding.
func TestChooserFindsSecondaries(t *testing.T) {
	with := func(r *policy.Rules) {
		r.Rules = append([]policy.Rule{{Match: policy.Match{Cgroup: "/batch/**"}, Remedy: remedy.Secondary}}, r.Rules...)
	}
	bare := func(path string) observe.Observation {
		return observe.Observation{Container: container.Container{Group: cgroup.Group{Path: path}}, Window: time.Second}
	}
	for _, tc := range []struct {
		name  string
		rules func(*policy.Rules)
		all   []observe.Observation
		held  []txn.InForce
		want  string
	}{
		{"calm", with, []observe.Observation{seen("/batch/a", 0), seen("/web", 0)}, nil, "/batch/a"},
		{"not measured", with, []observe.Observation{bare("/batch/a")}, nil, "/batch/a"},
		{"stopped", with, []observe.Observation{seen("/batch/a", 0.5)}, nil, "/batch/a"},
		{"who is stopped comes first", with, []observe.Observation{seen("/batch/a", 0), seen("/b", 0.2)}, nil, "/b"},
		{"is one already", with, []observe.Observation{seen("/batch/a", 0.5)}, []txn.InForce{{Target: "/batch/a"}}, ""},
		{"no such rule", nil, []observe.Observation{seen("/batch/a", 0)}, nil, ""},
		{
			"the budget", func(r *policy.Rules) { with(r); r.Budget.MovesPerMinute = 0 }, []observe.Observation{seen("/batch/a", 0)}, nil,
			"/batch/a (0 changes in the last minute, the budget's bound)",
		},
	} {
		c := newChooser(rules(tc.rules), "")
		if got := paths(persisted(c, tc.all, tc.held)); got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.name, got, tc.want)
		}
	}
	c := newChooser(rules(with), "others may write it")
	persisted(c, []observe.Observation{seen("/batch/a", 0)}, nil)
	observed := c.rules.Rules[0]
	observed.Mode = policy.Observe
	if reason, _ := c.hindrance(&observed, time.Now()); reason != policy.ReasonObserving {
		t.Errorf("a rule that only observes: %q", reason)
	}
	if _, why := c.hindrance(&c.rules.Rules[0], time.Now()); why != "" {
		t.Errorf("a rule without a command: %s", why)
	}
	c.rules.Rules[0].SLOCommand = "probe"
	if _, why := c.hindrance(&c.rules.Rules[0], time.Now()); !strings.Contains(why, "others may write it") {
		t.Errorf("a rule with a command: %q", why)
	}
}

// Where as many containers wait as are remembered, a further attempt in vain waits all the same, and so does a known one
// for longer.
func TestAFullMemoryOfWaitsStillWaits(t *testing.T) {
	c := newChooser(policy.Rules{}, "")
	now := time.Unix(1000, 0)
	for i := range maxContainers {
		c.tried(fmt.Sprint("/", i), now.Add(time.Duration(i)*time.Millisecond), retryAfter)
	}
	c.tried("/more", now, retryAfter)
	if until := c.retry["/more"]; !until.Equal(now.Add(retryAfter)) {
		t.Errorf("the one beyond the bound waits until %v", until)
	}
	c.tried("/7", now.Add(time.Hour), retryAfter)
	if until := c.retry["/7"]; !until.After(now.Add(time.Hour)) {
		t.Errorf("the known one waits until %v", until)
	}
	if _, waits := c.retry["/0"]; waits || len(c.retry) != maxContainers || len(c.misses) > maxContainers {
		t.Errorf("%d wait, %d misses; the one whose wait ended first is still there: %v", len(c.retry), len(c.misses), waits)
	}
}
