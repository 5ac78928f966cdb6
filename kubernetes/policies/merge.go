package policies

import (
	"fmt"
	"path"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/text"
)

// maxFileRules leaves room for the chart's own rules among the 1,000 that the agent reads.
const maxFileRules = 900

// Status is what became of a policy.
type Status struct {
	// Wrong is why the spec is not accepted; nil: it is.
	Wrong *Mistake
	// InForce is the generation whose rules are in force; 0: none.
	InForce int64
	// Spec is what is in force.
	Spec map[string]any
	// Conflicts say which rules never count, and which policy is before them.
	Conflicts []string
}

// Result is what the policies amount to.
type Result struct {
	// File is the agent's rules file.
	File []byte
	// Rules is how many come from policies.
	Rules    int
	Statuses map[Key]Status
	// Rollouts are those in force, by policy.
	Rollouts map[Key]*Rollout
	// InForce is the file as the agent reads it.
	InForce policy.Rules
}

// placed is a rule in its place.
type placed struct {
	of    Object
	index int
	mode  policy.Mode
	rule  rule
}

// Merge makes the agent's file of the chart's own file and the policies. The error is about the chart's file, or about the
// whole; a mistake in a policy is in its status. node has what rollouts need; nil: they are off.
func Merge(base []byte, objects []Object, node *Node) (Result, error) {
	full := map[Key]Status{}
	for {
		out, again, err := merge(base, objects, node, full)
		if !again {
			return out, err
		}
	}
}

// merge is Merge. What a ClusterThrottlePolicy allows counts with the generation of it that is in force, which is an older one, or none,
// if its rules are too many. Whether they are depends on what others are allowed: then it is added to full, and all begins again.
func merge(base []byte, objects []Object, node *Node, full map[Key]Status) (result Result, again bool, err error) {
	own, err := policy.ParseRules(base)
	if err != nil {
		return Result{}, false, fmt.Errorf("the chart's own file: %w", err)
	}
	off := "" // why no rollout is accepted
	switch {
	case node == nil:
		off = "rollouts are off here: install the chart with policies.rollout=true, or leave it out, so that all pods are treated at once"
	case own.Mode != policy.Apply:
		off = "the agents only observe, so that nothing is applied that could be rolled out: install the chart with mode=apply"
	}
	out := Result{Statuses: map[Key]Status{}, Rollouts: map[Key]*Rollout{}}
	objects = inOrder(objects)
	var allowances []namedAllowance
	counts := map[Key]int64{} // generations whose allowances count
	for _, o := range objects {
		if o.Kind != ClusterThrottlePolicy {
			continue
		}
		s, _, st := choose(o, nil, off, full, func(spec) *Mistake { return nil })
		if counts[o.Key()] = st.InForce; st.InForce > 0 && s.allow != nil {
			allowances = append(allowances, namedAllowance{o, s})
		}
	}
	var rules []placed
	var refused []Object
	perNamespace := map[string]int{}
	for _, o := range objects {
		var a *allowance
		if o.Kind == ThrottlePolicy {
			in := allowedIn(allowances, o.Namespace)
			a = &in
		}
		s, given, st := choose(o, a, off, full, func(s spec) *Mistake {
			if (o.Kind != ThrottlePolicy || perNamespace[o.Namespace]+len(s.rules) <= policy.MaxNamespaceRules) &&
				len(rules)+s.most(o) <= maxFileRules {
				return nil
			}
			return &Mistake{TooMany, "spec.rules", fmt.Sprintf("this policy and older ones have more than the %d rules of a namespace, or "+
				"the %d of a node; a rule counts once for each pattern of namespaces, and twice with a rollout",
				policy.MaxNamespaceRules, maxFileRules)}
		})
		if st.InForce > 0 {
			perNamespace[o.Namespace] += len(s.rules)
			st.Spec = given
			if s.rollout != nil {
				out.Rollouts[o.Key()] = s.rollout
			}
			for i, r := range s.rules {
				for _, at := range s.places(o, i, r, node) {
					if why := shadowed(rules, at); why != "" && !slices.Contains(st.Conflicts, why) {
						st.Conflicts = append(st.Conflicts, why)
					}
					rules = append(rules, at)
				}
			}
		} else {
			refused = append(refused, o)
		}
		if out.Statuses[o.Key()] = st; o.Kind == ClusterThrottlePolicy && st.InForce < counts[o.Key()] {
			full[o.Key()], again = st, true
		}
	}
	for i, x := range allowances {
		for _, y := range allowances[:i] {
			if coversAll(y.spec.namespaces, x.spec.namespaces) {
				st := out.Statuses[x.Key()]
				st.Conflicts = append(st.Conflicts, fmt.Sprintf("spec.allow never counts: the older %s names all of "+
					"its namespaces", y.Key()))
				out.Statuses[x.Key()] = st
				break
			}
		}
	}
	for _, o := range refused { // after all rules that count
		rules = append(rules, withdrawn(o, maxFileRules-len(rules))...)
	}
	out.Rules = len(rules)
	if out.File, err = file(base, rules); err == nil {
		out.InForce, err = policy.ParseRules(out.File)
	}
	return out, again, err
}

// most is how many rules of a file the spec's own are at most.
func (s spec) most(o Object) (n int) {
	for _, r := range s.rules {
		n += len(s.expand(o, r))
	}
	if s.rollout != nil {
		n *= 2 // those of the treated pods, and those of the others
	}
	return n
}

// places gives a rule for each of its namespaces, and where there is a rollout for its treated and its other pods.
func (s spec) places(o Object, i int, r rule, node *Node) (all []placed) {
	for _, each := range s.expand(o, r) {
		of := []placed{{rule: each, mode: s.mode}}
		if s.rollout != nil {
			of = s.rollout.spread(o, each, node)
		}
		for _, at := range of {
			at.of, at.index = o, i
			all = append(all, at)
		}
	}
	return all
}

type namedAllowance struct {
	Object
	spec spec
}

// allowedIn is what ThrottlePolicies of a namespace may do: by the oldest policy that names it.
func allowedIn(allowances []namedAllowance, namespace string) allowance {
	for _, a := range allowances {
		if len(a.spec.namespaces) == 0 ||
			slices.ContainsFunc(a.spec.namespaces, func(p string) bool { ok, _ := path.Match(p, namespace); return ok }) {
			return *a.spec.allow
		}
	}
	return defaultAllowance()
}

// choose takes the object's spec, or the one that was accepted last if it has a mistake. off is why it may have no rollout, room
// why its rules are too many; nil: they are not. Of an object that is full only the generation in its status is taken, if any.
func choose(o Object, a *allowance, off string, full map[Key]Status, room func(spec) *Mistake) (spec, map[string]any, Status) {
	try := func(given map[string]any, generation int64) (spec, *Mistake) {
		s, m := parse(o, given)
		if st, is := full[o.Key()]; m == nil && is && generation > st.InForce {
			m = st.Wrong
		}
		if m == nil && s.rollout != nil && off != "" {
			m = &Mistake{NotAllowed, "spec.rollout", off}
		}
		if m == nil && a != nil {
			m = s.within(*a)
		}
		if m == nil {
			m = room(s)
		}
		return s, m
	}
	generation, kept := max(o.Generation, 1), max(o.KeptGeneration, 1)
	s, wrong := try(o.Spec, generation)
	if wrong == nil {
		return s, o.Spec, Status{InForce: generation}
	}
	if o.Kept != nil {
		if s, m := try(o.Kept, kept); m == nil {
			return s, o.Kept, Status{Wrong: wrong, InForce: kept}
		}
	}
	return spec{}, nil, Status{Wrong: wrong}
}

// expand gives a ClusterThrottlePolicy's rule once for each of its namespaces, unless the rule names one itself.
func (s spec) expand(o Object, r rule) []rule {
	if o.Kind == ThrottlePolicy || len(s.namespaces) == 0 || r.Match.Namespace != "" {
		return []rule{r}
	}
	var out []rule
	for _, pattern := range s.namespaces {
		each := rule{r.Rule, map[string]any{}}
		for k, v := range r.given {
			each.given[k] = v
		}
		match := map[string]any{"namespace": pattern}
		if given, ok := r.given["match"].(map[string]any); ok {
			for k, v := range given {
				match[k] = v
			}
		}
		each.given["match"], each.Match.Namespace = match, pattern
		out = append(out, each)
	}
	return out
}

// shadowed says why a rule never counts: one before it matches all that it matches. "": it may count.
func shadowed(before []placed, at placed) string {
	for _, b := range before {
		if covers(b.rule.Match, at.rule.Match) {
			return fmt.Sprintf("spec.rules[%d] never counts: rules[%d] of the %s %s matches all that it matches", at.index, b.index,
				map[bool]string{true: "same", false: "earlier"}[b.of.Key() == at.of.Key()], b.of.Key())
		}
	}
	return ""
}

// covers tells whether a matches all that b matches, where that is sure.
func covers(a, b policy.Match) bool {
	if a.Pods != nil {
		return false // of some pods alone
	}
	text := func(a, b string) bool { return a == "" || a == b }
	if !text(a.Name, b.Name) || !text(a.Cgroup, b.Cgroup) || !text(a.Namespace, b.Namespace) && a.Namespace != "*" {
		return false
	}
	for k, v := range a.Labels {
		if have, ok := b.Labels[k]; !ok || have != v {
			return false
		}
	}
	return true
}

// coversAll tells whether each namespace that b names is named by a too, where that is sure. None given: all.
func coversAll(a, b []string) bool {
	if len(a) == 0 || slices.Contains(a, "*") {
		return true
	}
	return len(b) > 0 && !slices.ContainsFunc(b, func(p string) bool { return !slices.Contains(a, p) })
}

// file writes the agent's file: the chart's keys, the policies' rules, the chart's rules.
func file(base []byte, rules []placed) ([]byte, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(base, &doc); err != nil {
		return nil, err
	}
	top := doc.Content[0]
	var own *yaml.Node
	for i := 0; i+1 < len(top.Content); i += 2 {
		if top.Content[i].Value == "rules" {
			own = top.Content[i+1]
			top.Content = slices.Delete(top.Content, i, i+2)
			break
		}
	}
	head, err := yaml.Marshal(top)
	if err != nil {
		return nil, err
	}
	var out lines
	out.add("", "# Written by unthrottle-kubernetes from the chart's file and the policies. Changes are lost.")
	out.text.Write(head)
	if len(rules) == 0 && own == nil {
		return checked(out.bytes())
	}
	out.add("", "rules:")
	for _, r := range rules {
		out.rule("", r.of, r.mode, r.rule.given)
	}
	if own != nil && len(own.Content) > 0 {
		tail, err := yaml.Marshal(own)
		if err != nil {
			return nil, err
		}
		out.text.Write(tail)
	} else if len(rules) == 0 {
		out.text.WriteString("  []\n")
	}
	return checked(out.bytes())
}

// checked reads the file as the agent will.
func checked(file []byte) ([]byte, error) {
	if _, err := policy.ParseRules(file); err != nil {
		return nil, fmt.Errorf("the rules of all policies together: %s", text.Sanitize(err.Error(), 500))
	}
	return file, nil
}

// Waiting is the chart's file for the time before the policies are known: it only observes, so that no rule counts that a policy
// overrides.
func Waiting(base []byte) ([]byte, error) {
	var doc yaml.Node
	if _, err := policy.ParseRules(base); err != nil {
		return nil, fmt.Errorf("the chart's own file: %w", err)
	}
	if err := yaml.Unmarshal(base, &doc); err != nil {
		return nil, err
	}
	top := doc.Content[0]
	for i := 0; i+1 < len(top.Content); i += 2 {
		if top.Content[i].Value == "mode" {
			top.Content[i+1].SetString(string(policy.Observe))
		}
	}
	out, err := yaml.Marshal(top)
	if err != nil {
		return nil, err
	}
	return checked(out)
}
