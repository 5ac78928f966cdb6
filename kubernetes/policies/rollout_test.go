package policies

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/cure/canary"
	"github.com/unthrottle/unthrottle/internal/cure/policy"
)

const (
	rolloutSpec = `{mode: apply, rules: [{match: {name: 'front*'}, remedy: none}, {match: {name: 'cart*'}, remedy: auto, verify: probe}], ` +
		`rollout: ` + rolloutOf + `}`
	rolloutOf = `{share: 10%, watch: 15m, nodes: 3, latency: 'p99', ` +
		`guard: {prometheus: 'http://prometheus:9090', query: errors, bound: 0.01}}`
	asks = "{allow: {mode: apply, remedies: [auto], prometheus: ['http://prometheus:9090']}}"
)

// mergedOn is merged on a node.
func mergedOn(t testing.TB, node *Node, objects ...Object) (Result, policy.Rules) {
	t.Helper()
	out, err := Merge([]byte(base), objects, node)
	if err != nil {
		t.Fatal(err)
	}
	return out, out.InForce
}

// TestRolloutMistakes: each mistake names its field, the cause and the way out.
func TestRolloutMistakes(t *testing.T) {
	with := func(change ...string) string { return strings.NewReplacer(change...).Replace(rolloutSpec) }
	for name, c := range map[string]struct{ spec, reason, says string }{
		"share is a word":  {with("10%", "some"), Invalid, `spec.rollout.share: "some": give a share above 0% and up to 50%, such as 10%`},
		"share of nothing": {with("10%", "0%"), Invalid, "spec.rollout.share: "},
		"share of most":    {with("10%", "60%"), Invalid, "spec.rollout.share: "},
		"share is a part":  {with("10%", "0.1"), Invalid, "spec.rollout.share: "},
		"no watch":         {with("watch: 15m, ", ""), Invalid, "spec.rollout.watch: it is missing: a rollout is judged by it"},
		"short watch":      {with("15m", "1m"), Invalid, "spec.rollout.watch: 1m0s: give a time from 5m0s to 24h0m0s"},
		"nodes":            {with("nodes: 3", "nodes: -1"), Invalid, "spec.rollout.nodes: "},
		"no latency":       {with("latency: 'p99', ", ""), Invalid, "spec.rollout.latency: it is missing"},
		"empty latency":    {with("'p99'", "' '"), Invalid, "spec.rollout.latency: it is empty"},
		"no guard": {with(", guard: {prometheus: 'http://prometheus:9090', query: errors, bound: 0.01}", ""), Invalid,
			"spec.rollout.guard.prometheus: it is missing"},
		"no bound": {with(", bound: 0.01", ""), Invalid, "spec.rollout.guard.bound: it is missing"},
		"bound":    {with("0.01", "low"), Invalid, `spec.rollout.guard.bound: "low": give a number`},
		"a file":   {with("http://prometheus:9090", "file:///etc/passwd"), Invalid, "spec.rollout.guard.prometheus: "},
		"a user":   {with("http://prometheus:9090", "http://u:p@prometheus"), Invalid, "spec.rollout.guard.prometheus: "},
		"another": {with("http://prometheus:9090", "http://169.254.169.254"), NotAllowed,
			"spec.rollout.guard.prometheus: http://169.254.169.254 may not be asked from here; ClusterThrottlePolicy all allows"},
		"unknown":    {with("nodes", "pods"), Invalid, `spec.rollout.pods: unknown key "pods": choose from guard, latency, nodes, share, watch`},
		"no mapping": {with(rolloutOf, "10%"), Invalid, "spec.rollout: must be a mapping"},
		"observe":    {with("mode: apply", "mode: observe"), Invalid, "spec.rollout: it goes with mode: apply"},
		"no rule":    {"{mode: apply, rules: [{remedy: none}], rollout: " + rolloutOf + "}", Invalid, "spec.rollout: no rule has a remedy"},
		"until":      {with("remedy: auto", "until: x, remedy: auto"), Invalid, "spec.rules[1].until: policies do not have it: a rollout says it"},
	} {
		out, _ := mergedOn(t, &Node{}, object(t, ns("shop", "p"), 1, c.spec), object(t, cluster("all"), 1, asks))
		if wrong := out.Statuses[ns("shop", "p")].Wrong; wrong == nil || wrong.Reason != c.reason ||
			!strings.HasPrefix(wrong.Error(), c.says) {
			t.Errorf("%s: %v, want %s", name, wrong, c.says)
		}
	}
	off, _ := mergedOn(t, nil, object(t, ns("shop", "p"), 1, rolloutSpec), object(t, cluster("all"), 1, asks))
	if wrong := off.Statuses[ns("shop", "p")].Wrong; wrong == nil ||
		!strings.HasPrefix(wrong.Error(), "spec.rollout: rollouts are off here") || off.Rules > 0 {
		t.Errorf("where rollouts are off: %v", wrong)
	}
	watching, err := Merge([]byte("version: 1\n"), []Object{object(t, ns("shop", "p"), 1, rolloutSpec),
		object(t, cluster("all"), 1, asks)}, &Node{})
	if wrong := watching.Statuses[ns("shop", "p")].Wrong; err != nil || wrong == nil ||
		!strings.HasPrefix(wrong.Error(), "spec.rollout: the agents only observe") {
		t.Errorf("where the agents observe: %v, %v", wrong, err)
	}
	wide, _ := mergedOn(t, &Node{}, object(t, cluster("all"), 1, "{rollout: "+rolloutOf+"}"))
	if wrong := wide.Statuses[cluster("all")].Wrong; wrong == nil || !strings.Contains(wrong.Error(), "unknown key") {
		t.Errorf("a ClusterThrottlePolicy has a rollout: %v", wrong)
	}
}

// TestRolloutPage: the page's example is accepted where its Prometheus is allowed.
func TestRolloutPage(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", "throttlepolicy.md"))
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```yaml\nspec:\n(.*?)```").FindAllSubmatch(page, -1)
	if len(blocks) != 1 {
		t.Fatalf("%d examples", len(blocks))
	}
	o := object(t, ns("shop-a", "cart"), 1, string(blocks[0][1]))
	all := object(t, cluster("all"), 1, strings.Replace(asks, "http://prometheus:9090", "http://prometheus.monitoring:9090", 1))
	out, _ := mergedOn(t, &Node{}, o, all)
	if st := out.Statuses[o.Key()]; st.Wrong != nil || out.Rollouts[o.Key()] == nil ||
		!strings.Contains(out.Rollouts[o.Key()].Latency, "le") {
		t.Errorf("%v", st.Wrong)
	}
}

// TestRollout: the pods that are drawn have the rule until the state is old; others have nothing, and what is in force for them is taken
// back. Where it is kept all have it.
func TestRollout(t *testing.T) {
	at := time.Unix(1_800_000_000, 0).UTC()
	o := object(t, ns("shop", "p"), 1, rolloutSpec)
	pods := []canary.Pod{{UID: "a", Created: at}, {UID: "b", Created: at}, {UID: "late", Created: at.Add(time.Hour)}}
	node := &Node{Pods: map[string][]canary.Pod{"shop": pods, "other": {{UID: "c", Created: at}}}}
	of := func(uid string) container.Container {
		c := in("shop")
		c.PodUID = uid
		return c
	}
	applies := func(state canary.State, uid string) (bool, bool) {
		o.Rollout = state
		out, rules := mergedOn(t, node, o, object(t, cluster("all"), 1, asks))
		if st := out.Statuses[o.Key()]; st.Wrong != nil || st.Conflicts != nil {
			t.Fatalf("%+v", st)
		}
		r := rules.For(of(uid), nil)
		if r == nil || r.Policy != o.Key().String() {
			t.Fatalf("the rule of %s is %+v", uid, r)
		}
		return !r.Observes(at), r.Ended(at)
	}
	out, _ := mergedOn(t, node, o, object(t, cluster("all"), 1, asks))
	tried := out.Rollouts[o.Key()].Tried
	if plan := out.Rollouts[o.Key()].Plan; plan != (canary.Plan{Share: 0.1, Watch: 15 * time.Minute, Nodes: 3, Bound: 0.01}) ||
		tried == "" {
		t.Errorf("%+v", plan)
	}
	all := canary.State{Tried: tried, Phase: canary.Watches, Below: 1 << 53, Newest: at.Add(time.Second), Until: at.Add(time.Hour)}
	old, none, kept, others := all, all, all, all
	old.Until, none.Below, kept.Phase, others.Tried = at, 0, canary.Kept, "other rules"
	for name, c := range map[string]struct {
		state canary.State
		uid   string
		want  bool
	}{
		"drawn": {all, "a", true}, "made later": {all, "late", false}, "on another node": {all, "elsewhere", false},
		"not drawn":        {none, "a", false},
		"the state is old": {old, "a", false}, "kept": {kept, "elsewhere", true},
		"of other rules": {others, "a", false}, "no state": {canary.State{}, "a", false},
	} {
		if got, ended := applies(c.state, c.uid); got != c.want || ended == c.want {
			t.Errorf("%s: applied %v, taken back %v", name, got, ended)
		}
	}
	front := in("shop")
	front.Pod, front.Name, front.PodUID = "front-0", "shop/front-0/app", "a"
	o.Rollout = all
	if _, rules := mergedOn(t, node, o, object(t, cluster("all"), 1, asks)); !rules.For(front, nil).Leave {
		t.Error("a rule that leaves alone is rolled out")
	}
}

// TestRolloutWithdrawn: what a policy has in force when it is no longer allowed, in the middle of a step, is taken back.
func TestRolloutWithdrawn(t *testing.T) {
	at := time.Unix(1_800_000_000, 0).UTC()
	o := object(t, ns("shop", "p"), 1, rolloutSpec)
	node := &Node{Pods: map[string][]canary.Pod{"shop": {{UID: "a", Created: at}}}}
	allowed, revoked := object(t, cluster("all"), 1, asks), object(t, cluster("all"), 1, "{allow: {mode: apply, remedies: [auto]}}")
	before, _ := mergedOn(t, node, o, allowed)
	kept := o
	kept.Kept, kept.KeptGeneration, kept.Generation, kept.Spec = o.Spec, 1, 2, object(t, o.Key(), 2, "{mode: pray}").Spec
	c := in("shop")
	c.PodUID = "a"
	for _, phase := range []string{canary.Watches, canary.Finishes, canary.Reverted, ""} {
		for of, o := range map[string]Object{"its spec": o, "the one accepted last": kept} {
			o.Rollout = canary.State{Tried: before.Rollouts[o.Key()].Tried, Phase: phase, Below: 1 << 53, Newest: at.Add(time.Second),
				Until: at.Add(time.Hour)}
			for off, n := range map[string]*Node{"no longer allowed": node, "rollouts are off": nil} {
				out, rules := mergedOn(t, n, o, revoked)
				r, trying := rules.For(c, nil), o.Rollout.Trying()
				takesBack := r != nil && r.Policy == o.Key().String() && r.Ended(at) && r.Observes(at)
				if out.Statuses[o.Key()].InForce > 0 || takesBack != trying {
					t.Errorf("%s, %s, in phase %s: %+v", off, of, phase, r)
				}
			}
		}
	}
}
