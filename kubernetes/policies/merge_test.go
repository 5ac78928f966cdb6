package policies

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/cure/policy"
)

const base = "version: 1\nmode: apply\nbudget: {containers: 3}\nrules:\n- match: {namespace: kube-system}\n  remedy: none\n"

// object is a policy of the given age in minutes.
func object(t testing.TB, key Key, age int, spec string) Object {
	t.Helper()
	o := Object{Kind: key.Kind, Namespace: key.Namespace, Name: key.Name,
		Created: time.Unix(1_800_000_000, 0).Add(-time.Duration(age) * time.Minute), Generation: 1}
	if err := yaml.Unmarshal([]byte(spec), &o.Spec); err != nil {
		t.Fatal(err)
	}
	o.Spec = asAPI(o.Spec).(map[string]any)
	return o
}

// asAPI has the types that the API's JSON has.
func asAPI(v any) any {
	switch v := v.(type) {
	case int:
		return int64(v)
	case []any:
		for i := range v {
			v[i] = asAPI(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = asAPI(v[k])
		}
	}
	return v
}

func ns(namespace, name string) Key { return Key{ThrottlePolicy, namespace, name} }
func cluster(name string) Key       { return Key{ClusterThrottlePolicy, "", name} }

// merged reads the file as the agent does.
func merged(t testing.TB, objects ...Object) (Result, policy.Rules) {
	t.Helper()
	out, err := Merge([]byte(base), objects, nil)
	if err != nil {
		t.Fatal(err)
	}
	rules, err := policy.ParseRules(out.File)
	if err != nil {
		t.Fatalf("%v in\n%s", err, out.File)
	}
	return out, rules
}

func in(namespace string) container.Container {
	return container.Container{Name: namespace + "/cart-0/app", Namespace: namespace, Pod: "cart-0", ContainerName: "app"}
}

const allowsAll = "{namespaces: ['shop*'], allow: {mode: apply, remedies: [auto, burst, pin, raise], may: [raise]}}"

// TestOrder: a namespace's own policy counts before the cluster's, and that before the chart's; the oldest first.
func TestOrder(t *testing.T) {
	objects := []Object{
		object(t, ns("shop", "young"), 1, "{mode: apply, rules: [{remedy: pin, verify: slo, class: exclusive}]}"),
		object(t, ns("shop", "old"), 9, "{mode: apply, rules: [{match: {name: 'cart*'}, remedy: auto, verify: probe}]}"),
		object(t, cluster("all"), 5, "{rules: [{remedy: none}]}"),
		object(t, cluster("shops"), 5, allowsAll),
	}
	out, rules := merged(t, objects...)
	for namespace, want := range map[string]string{"shop": "ThrottlePolicy shop/old auto",
		"other": "ClusterThrottlePolicy all none", "kube-system": "ClusterThrottlePolicy all none"} {
		if r := rules.For(in(namespace), nil); r == nil || r.Policy+" "+r.Word() != want {
			t.Errorf("%s: %+v, want %s", namespace, r, want)
		}
	}
	if rules.Mode != policy.Apply || rules.Budget.Containers != 3 || len(rules.Rules) != 3 ||
		rules.Rules[2].Match.Namespace != "kube-system" {
		t.Errorf("the chart's own keys: %+v", rules)
	}
	if st := out.Statuses[ns("shop", "young")]; st.Wrong == nil || st.Wrong.Field != "spec.rules[0].verify" {
		t.Errorf("young: %+v", st)
	}
	for i := range objects { // whatever the order in which they are listed
		objects[0], objects[i] = objects[i], objects[0]
		if again, _ := merged(t, objects...); !bytes.Equal(again.File, out.File) {
			t.Errorf("another order of the list makes another file:\n%s\n%s", again.File, out.File)
		}
	}
}

// TestMistakes: the field of each mistake is named, and the policy has no rule in force.
func TestMistakes(t *testing.T) {
	for name, c := range map[string]struct {
		spec, reason, field, why string
	}{
		"unknown remedy":        {"{rules: [{remedy: none}, {remedy: pray}]}", Invalid, "spec.rules[1].remedy", "choose from auto"},
		"a newer key of a rule": {"{rules: [{remedy: auto, canary: 5}]}", Invalid, "spec.rules[0].canary", `unknown key "canary"`},
		"a newer key":           {"{canary: {}, rules: []}", Invalid, "spec", `unknown key "canary": choose from mode, rollout, rules`},
		"a newer mode":          {"{mode: canary}", Invalid, "spec.mode", "choose from observe, apply"},
		"a key of clusters":     {"{allow: {mode: apply}}", Invalid, "spec", `unknown key "allow"`},
		"another namespace": {"{rules: [{match: {namespace: kube-system}}]}", Invalid,
			"spec.rules[0].match.namespace", "own namespace"},
		"a command":            {"{rules: [{slo: {objective: p99<20ms, command: reboot}}]}", Invalid, "spec.rules[0].slo.command", "root"},
		"a cgroup":             {"{rules: [{match: {cgroup: '/**'}}]}", Invalid, "spec.rules[0].match.cgroup", "policies name pods"},
		"an origin":            {"{rules: [{policy: ThrottlePolicy a/b}]}", Invalid, "spec.rules[0].policy", "do not have it"},
		"an objective":         {"{rules: [{verify: probe, slo: {objective: fast}}]}", Invalid, "spec.rules[0].slo.objective", "p99<20ms"},
		"a pattern":            {"{rules: [{match: {name: '[a'}}]}", Invalid, "spec.rules[0].match.name", "not a pattern"},
		"does not go together": {"{rules: [{remedy: burst, cpus: 2}]}", Invalid, "spec.rules[0].cpus", "setting of pin"},
		"half a CPU":           {"{rules: [{remedy: pin, cpus: 1.5}]}", Invalid, "spec.rules[0].cpus", "whole number"},
		"nobody judges":        {"{mode: apply, rules: [{remedy: auto}]}", Invalid, "spec.rules[0].verify", "verify: probe"},
		"a remedy not allowed": {"{rules: [{remedy: pin}]}", NotAllowed, "spec.rules[0].remedy",
			"allows mode observe, remedies none, auto, may nothing"},
		"a class not allowed": {"{rules: [{class: exclusive}]}", NotAllowed, "spec.rules[0].remedy", "pin is not allowed"},
		"a mode not allowed":  {"{mode: apply, rules: [{verify: probe}]}", NotAllowed, "spec.mode", "apply is not allowed"},
		"more CPU":            {"{rules: [{may: [raise]}]}", NotAllowed, "spec.rules[0].may", "raise is not allowed"},
		"more CPU at a start": {"{rules: [{startup: {remedy: raise}}]}", NotAllowed, "spec.rules[0].startup.remedy",
			"raise is not allowed"},
		"annotations": {"{rules: [{remedy: none, annotations: {allow: [weight]}}]}", NotAllowed,
			"spec.rules[0].annotations.allow", "weight"},
		"rules no list":     {"{rules: {}}", Invalid, "spec.rules", "a list"},
		"a rule no object":  {"{rules: [pin]}", Invalid, "spec.rules[0]", "must be a mapping of keys to values"},
		"a match no object": {"{rules: [{match: all}]}", Invalid, "spec.rules[0].match", "must be a mapping of keys to values"},
		"too many":          {"{rules: [" + strings.Repeat("{}, ", MaxRules) + "{}]}", Invalid, "spec.rules", "17 rules"},
		"a long name": {"{rules: [{match: {name: " + strings.Repeat("x", 300) + "}}]}", Invalid,
			"spec.rules[0].match.name", "longer than 256"},
		"ends the quotes":     {`{rules: [{remedy: "x\"\n- remedy: pin #"}]}`, Invalid, "spec.rules[0].remedy", "choose from"},
		"a key ends the line": {`{rules: [{"x: 1\n- remedy": pin}]}`, Invalid, `spec.rules[0]."x: 1\u000a- remedy"`, "unknown key"},
		"a control character": {`{rules: [{match: {name: "\x1b[31m[a"}}]}`, Invalid, "spec.rules[0].match.name", "not a pattern"},
		"interrupts":          {"{rules: [{remedy: none, irqs: true}]}", Invalid, "spec.rules[0].remedy", "no settings"},
		"a merge of match":    {`{rules: [{match: {"<<": {cgroup: /a}}}]}`, Invalid, "spec.rules[0].match.<<", "unknown key"},
	} {
		out, rules := merged(t, object(t, ns("shop", "cart"), 1, c.spec))
		st := out.Statuses[ns("shop", "cart")]
		if st.Wrong == nil || st.Wrong.Reason != c.reason || st.Wrong.Field != c.field || !strings.Contains(st.Wrong.Why, c.why) {
			t.Errorf("%s: %+v, want %s at %s: %s", name, st.Wrong, c.reason, c.field, c.why)
		}
		if st.InForce != 0 || len(rules.Rules) != 1 {
			t.Errorf("%s: and yet generation %d is in force, %d rules", name, st.InForce, len(rules.Rules))
		}
	}
}

// TestLastGoodStays: a policy that got a mistake keeps its last good spec, as far as that is allowed still.
func TestLastGoodStays(t *testing.T) {
	o := object(t, ns("shop", "cart"), 1, "{mode: apply, rules: [{remedy: pray}]}")
	o.Generation, o.KeptGeneration = 4, 3
	o.Kept = object(t, o.Key(), 1, "{mode: apply, rules: [{remedy: auto, verify: probe}]}").Spec
	out, rules := merged(t, o, object(t, cluster("shops"), 1, allowsAll))
	if st := out.Statuses[o.Key()]; st.Wrong == nil || st.InForce != 3 || fmt.Sprint(st.Spec) != fmt.Sprint(o.Kept) ||
		rules.Rules[0].Word() != "auto" {
		t.Errorf("%+v, %+v", st, rules.Rules)
	}
	out, rules = merged(t, o) // the allowance went
	if st := out.Statuses[o.Key()]; st.InForce != 0 || len(rules.Rules) != 1 {
		t.Errorf("not allowed any more: %+v, %+v", st, rules.Rules)
	}
	o.Kept = map[string]any{"rules": "forged"}
	if out, _ := merged(t, o); out.Statuses[o.Key()].InForce != 0 {
		t.Error("a forged status counts")
	}
}

// TestConflicts: a rule that never counts is told, with the one before it.
func TestConflicts(t *testing.T) {
	first := object(t, ns("shop", "a"), 9, "{rules: [{match: {name: 'cart*'}}, {match: {labels: {tier: front}}, remedy: none}]}")
	for spec, want := range map[string]string{
		"{rules: [{match: {name: 'cart*'}, remedy: none}]}":                                        "spec.rules[0] never counts: rules[0] of the earlier ThrottlePolicy shop/a",
		"{rules: [{match: {labels: {tier: front, x: y}}, remedy: none}]}":                          "rules[1] of the earlier",
		"{rules: [{match: {name: 'search*'}, remedy: none}, {match: {name: 'search*'}}]}":          "spec.rules[1] never counts: rules[0] of the same ThrottlePolicy shop/b",
		"{rules: [{match: {name: 'search*'}, remedy: none}, {match: {labels: {tier: back}}}, {}]}": "",
	} {
		out, _ := merged(t, object(t, ns("shop", "b"), 5, spec), first,
			object(t, ns("other", "c"), 1, "{rules: [{match: {name: 'cart*'}}]}"))
		got := strings.Join(out.Statuses[ns("shop", "b")].Conflicts, "; ")
		if (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", spec, got, want)
		}
		if c := out.Statuses[ns("other", "c")].Conflicts; c != nil {
			t.Errorf("another namespace: %v", c)
		}
	}
	out, _ := merged(t, object(t, cluster("a"), 9, allowsAll),
		object(t, cluster("b"), 1, "{namespaces: ['shop*'], allow: {mode: observe}}"),
		object(t, ns("shop", "x"), 1, "{mode: apply, rules: [{verify: probe}]}"))
	if got := out.Statuses[cluster("b")].Conflicts; len(got) != 1 || !strings.Contains(got[0], "the older ClusterThrottlePolicy a") {
		t.Errorf("two allowances: %v", got)
	}
	if st := out.Statuses[ns("shop", "x")]; st.Wrong != nil {
		t.Errorf("the older one does not count: %v", st.Wrong)
	}
}

// TestNoNamespaceCrowdsOut: the bounds keep the file one that the agent reads, and the oldest count.
func TestNoNamespaceCrowdsOut(t *testing.T) {
	var objects []Object
	sixteen := "{rules: [" + strings.Repeat("{match: {name: x}}, ", MaxRules-1) + "{}]}"
	for n := range 40 {
		for i := range 6 {
			objects = append(objects, object(t, ns(fmt.Sprintf("n%d", n), fmt.Sprintf("p%d", i)), 100-i, sixteen))
		}
	}
	out, _ := merged(t, objects...)
	if out.Rules > maxFileRules || out.Rules < maxFileRules-MaxRules {
		t.Errorf("%d rules", out.Rules)
	}
	if st := out.Statuses[ns("n0", "p4")]; st.Wrong == nil || st.Wrong.Reason != TooMany {
		t.Errorf("the fifth of a namespace: %+v", st)
	}
	if st := out.Statuses[ns("n0", "p0")]; st.Wrong != nil {
		t.Errorf("the oldest: %+v", st)
	}
}

// TestTooManyKeepsTheLast: an edit with too many rules leaves the spec in force that was accepted last, if there is room for that.
func TestTooManyKeepsTheLast(t *testing.T) {
	rules := func(n int) string { return "{rules: [" + strings.Repeat("{match: {name: x}}, ", n-1) + "{}]}" }
	var objects []Object
	for i := range 4 {
		objects = append(objects, object(t, ns("shop", fmt.Sprintf("p%d", i)), 100-i, rules([]int{MaxRules, MaxRules, MaxRules, 10}[i])))
	}
	edited := object(t, ns("shop", "edited"), 1, rules(MaxRules))
	edited.Generation, edited.KeptGeneration, edited.Kept = 4, 3, object(t, edited.Key(), 1, rules(2)).Spec
	for want, kept := range map[int64]int{3: 2, 0: 7} {
		edited.Kept = object(t, edited.Key(), 1, rules(kept)).Spec
		out, _ := merged(t, append(slices.Clone(objects), edited)...)
		if st := out.Statuses[edited.Key()]; st.Wrong == nil || st.Wrong.Reason != TooMany || st.InForce != want {
			t.Errorf("%d rules before the edit: generation %d in force, want %d: %+v", kept, st.InForce, want, st.Wrong)
		}
	}
}

// TestTooManyAllowsAsBefore: what an edit with too many rules allows does not count either, and what it no longer allows still does.
func TestTooManyAllowsAsBefore(t *testing.T) {
	rules := func(n int) string { return strings.Repeat("{match: {name: x}}, ", n) }
	patterns := make([]string, 60) // a rule counts once for each
	for i := range patterns {
		patterns[i] = fmt.Sprintf("shop%d*", i)
	}
	named := "namespaces: ['" + strings.Join(patterns, "', '") + "']"
	const less, more = "allow: {mode: observe}", "allow: {mode: apply, remedies: [auto]}"
	asks := object(t, ns("shop1", "asks"), 1, "{mode: apply, rules: [{match: {name: y}, remedy: auto, verify: probe}]}")
	edit := func(from, to string) Status {
		edited := object(t, cluster("edited"), 1, "{"+named+", "+to+", rules: ["+rules(16)+"]}")
		edited.Generation, edited.KeptGeneration = 2, 1
		if from != "" {
			edited.Kept = object(t, edited.Key(), 1, "{"+named+", "+from+", rules: ["+rules(1)+"]}").Spec
		}
		out, _ := merged(t, edited, asks)
		if st := out.Statuses[edited.Key()]; st.Wrong == nil || st.Wrong.Reason != TooMany || (st.InForce == 1) != (from != "") {
			t.Fatalf("%+v, %+v", st, st.Wrong)
		}
		return out.Statuses[asks.Key()]
	}
	if st := edit(less, more); st.Wrong == nil || st.Wrong.Reason != NotAllowed {
		t.Errorf("what only the refused edit allows: %+v", st.Wrong)
	}
	if st := edit(more, less); st.Wrong != nil || st.InForce != 1 {
		t.Errorf("what the spec in force allows: %+v", st.Wrong)
	}
	if st := edit("", more); st.Wrong == nil || st.Wrong.Reason != NotAllowed {
		t.Errorf("what only a refused policy allows: %+v", st.Wrong)
	}
}

// TestWaiting: before the policies are known nothing is applied.
func TestWaiting(t *testing.T) {
	got, err := Waiting([]byte(base))
	if err != nil {
		t.Fatal(err)
	}
	if r, err := policy.ParseRules(got); err != nil || r.Mode != policy.Observe || len(r.Rules) != 1 || r.Budget.Containers != 3 {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := Waiting([]byte("mode: destroy")); err == nil {
		t.Error("a chart's file with a mistake is taken")
	}
	if _, err := Merge([]byte("version: 1\nmode: destroy\n"), nil, nil); err == nil {
		t.Error("a chart's file with a mistake is merged")
	}
}

// FuzzMerge: whatever a stranger writes, the file is one that the agent reads, and no rule of theirs leaves their namespace.
func FuzzMerge(f *testing.F) {
	f.Add("cart*", "burst", "p99<20ms", "tier", "front")
	f.Add("\"\n- remedy: pin", "{}", "!!binary x", "*a", "&b")
	f.Add("\x00\u2028\x7f", "none", "\xff\xfe", ":", "# ")
	f.Fuzz(func(t *testing.T, name, remedy, objective, label, value string) {
		o := Object{Kind: ThrottlePolicy, Namespace: "shop", Name: "p", Spec: map[string]any{"rules": []any{map[string]any{
			"match": map[string]any{"name": name, "labels": map[string]any{label: value}}, "remedy": remedy,
			"verify": "probe", "slo": map[string]any{"objective": objective}, label: value}}}}
		out, rules := merged(t, o)
		if n := len(rules.Rules) - 1; n != out.Rules || n > 1 {
			t.Fatalf("%d rules of one:\n%s", n, out.File)
		}
		for _, r := range rules.Rules[:out.Rules] {
			if r.Match.Namespace != "shop" || r.SLOCommand != "" || r.Policy != "ThrottlePolicy shop/p" || r.Mode != policy.Observe {
				t.Errorf("%+v", r)
			}
		}
	})
}
