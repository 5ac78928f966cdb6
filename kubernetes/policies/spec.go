package policies

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/text"
)

// Bounds of one policy, which the schema has too.
const (
	// MaxRules is how many rules a policy has.
	MaxRules = 16
	// MaxNamespaces is how many patterns a ClusterThrottlePolicy has.
	MaxNamespaces = 64
	// MaxText is the length of a text in a rule, in characters.
	MaxText = 256
)

// Mistake is what is wrong with a policy, and where.
type Mistake struct {
	// Reason is a word for conditions: Invalid, NotAllowed or TooMany.
	Reason string
	// Field is the path of the key, such as spec.rules[0].remedy.
	Field string
	Why   string
}

// Reasons why a policy is not accepted.
const (
	Invalid    = "Invalid"
	NotAllowed = "NotAllowed"
	TooMany    = "TooMany"
)

func (m *Mistake) Error() string { return m.Field + ": " + m.Why }

func invalid(field, format string, args ...any) *Mistake {
	return &Mistake{Invalid, field, fmt.Sprintf(format, args...)}
}

// spec is a checked one.
type spec struct {
	mode       policy.Mode
	namespaces []string
	allow      *allowance
	rules      []rule
	rollout    *Rollout
}

// rule is one as the agent reads it, and as it was written.
type rule struct {
	policy.Rule
	given map[string]any
}

// allowance is what ThrottlePolicies may ask for.
type allowance struct {
	mode          policy.Mode
	remedies, may []string
	prometheus    []string // URLs that rollouts may ask
	from          string   // the policy; "": the default
}

// defaultAllowance counts in namespaces that no ClusterThrottlePolicy speaks of: what it lets do changes nothing on a node.
func defaultAllowance() allowance { return allowance{mode: policy.Observe, remedies: []string{"auto"}} }

// parse checks a spec without asking what is allowed.
func parse(o Object, given map[string]any) (spec, *Mistake) {
	known := []string{"mode", "rules"}
	if o.Kind == ClusterThrottlePolicy {
		known = append(known, "namespaces", "allow")
	} else {
		known = append(known, "rollout")
	}
	s := spec{mode: policy.Observe}
	if m := onlyKeys("spec", given, known); m != nil {
		return s, m
	}
	if m := readMode("spec.mode", given["mode"], &s.mode); m != nil {
		return s, m
	}
	var m *Mistake
	if s.namespaces, m = readTexts("spec.namespaces", given["namespaces"], MaxNamespaces, nil); m != nil {
		return s, m
	}
	for i, pattern := range s.namespaces {
		if _, err := path.Match(pattern, ""); err != nil || pattern == "" {
			return s, invalid(fmt.Sprintf("spec.namespaces[%d]", i), "%.80q is no pattern", text.Sanitize(pattern, 80))
		}
	}
	if s.allow, m = readAllow(o, given["allow"]); m != nil {
		return s, m
	}
	list, ok := given["rules"].([]any)
	switch {
	case given["rules"] != nil && !ok:
		return s, invalid("spec.rules", "a list of rules is wanted")
	case len(list) > MaxRules:
		return s, invalid("spec.rules", "%d rules, more than %d", len(list), MaxRules)
	}
	for i, item := range list {
		r, m := s.readRule(o, fmt.Sprintf("spec.rules[%d]", i), item)
		if m != nil {
			return s, m
		}
		s.rules = append(s.rules, r)
	}
	if s.rollout, m = readRollout(o, given); m == nil && s.rollout != nil {
		switch {
		case s.mode != policy.Apply:
			m = invalid("spec.rollout", "it goes with mode: apply: with mode: observe nothing is applied that could be rolled out")
		case !slices.ContainsFunc(s.rules, func(r rule) bool { return !r.Leave }):
			m = invalid("spec.rollout", "no rule has a remedy that could be rolled out: give a rule, or leave rollout out")
		}
	}
	return s, m
}

// readRule checks one rule by the agent's parser.
func (s spec) readRule(o Object, field string, item any) (rule, *Mistake) {
	given, ok := item.(map[string]any)
	if !ok {
		return rule{}, invalid(field, "must be a mapping of keys to values")
	}
	if m := inPolicies(field, given, policy.RuleKeys()); m != nil {
		return rule{}, m
	}
	if match, ok := given["match"].(map[string]any); ok && o.Kind == ThrottlePolicy && match["namespace"] != nil {
		return rule{}, invalid(field+".match.namespace", "a ThrottlePolicy is for its own namespace: leave it out")
	}
	var file lines
	file.add("", "version: 1")
	file.add("", "rules:")
	file.rule(field, o, s.mode, given)
	parsed, err := policy.ParseRules(file.bytes())
	if err != nil {
		at, why := field, err.Error()
		if wrong := new(policy.ConfigError); errors.As(err, &wrong) {
			why = wrong.Why
			if wrong.Line > 0 && wrong.Line <= len(file.fields) && file.fields[wrong.Line-1] != "" {
				at = file.fields[wrong.Line-1]
			}
		}
		return rule{}, invalid(at, "%s", text.Sanitize(why, 300))
	}
	r := parsed.Rules[0]
	if s.mode == policy.Apply && !r.Leave && !r.Judged() {
		return rule{}, invalid(field+".verify", "with mode: apply something must judge the effect: write verify: probe")
	}
	return rule{r, given}, nil
}

// inPolicies refuses keys that policies do not have, with their own reason, and texts that are too long.
func inPolicies(field string, given map[string]any, keys []policy.Key) *Mistake {
	for _, name := range slices.Sorted(maps.Keys(given)) {
		i := slices.IndexFunc(keys, func(k policy.Key) bool { return k.Name == name })
		if i < 0 {
			continue // the parser refuses it and names those that it knows
		}
		at := field + "." + name
		if why := keys[i].NotInPolicies; why != "" {
			return invalid(at, "policies do not have it: %s", why)
		}
		switch value := given[name].(type) {
		case string:
			if len([]rune(value)) > MaxText {
				return invalid(at, "longer than %d characters", MaxText)
			}
		case map[string]any:
			if m := inPolicies(at, value, keys[i].Keys); m != nil {
				return m
			}
		}
	}
	return nil
}

// within refuses what an allowance does not have. Leaving alone is always allowed.
func (s spec) within(a allowance) *Mistake {
	no := func(field, format string, args ...any) *Mistake {
		by := "no ClusterThrottlePolicy with allow names this namespace, which then allows"
		if a.from != "" {
			by = a.from + " allows"
		}
		return &Mistake{NotAllowed, field, fmt.Sprintf(format, args...) + "; " + by + " " + a.String()}
	}
	if s.mode == policy.Apply && a.mode != policy.Apply {
		return no("spec.mode", "apply is not allowed here")
	}
	if s.rollout != nil && !slices.Contains(a.prometheus, s.rollout.Prometheus) {
		return no("spec.rollout.guard.prometheus", "%s may not be asked from here", text.Sanitize(s.rollout.Prometheus, MaxText))
	}
	for i, r := range s.rules {
		field := fmt.Sprintf("spec.rules[%d]", i)
		if word := r.Word(); word != "none" && !slices.Contains(a.remedies, word) {
			return no(field+".remedy", "%s is not allowed here", word)
		}
		for _, kind := range r.May {
			if !slices.Contains(a.may, string(kind)) {
				return no(field+".may", "%s is not allowed here", kind)
			}
		}
		if kind := string(r.Startup.Remedy); kind != "" && !slices.Contains(slices.Concat(a.may, a.remedies), kind) {
			return no(field+".startup.remedy", "%s is not allowed here", kind)
		}
		for _, word := range r.Annotations.Remedies {
			if !slices.Contains(a.remedies, word) {
				return no(field+".annotations.allow", "%s is not allowed here", word)
			}
		}
		if r.IRQs {
			return no(field+".irqs", "interrupts belong to the whole node: only a ClusterThrottlePolicy moves them")
		}
	}
	return nil
}

// String lists what is allowed, for people.
func (a allowance) String() string {
	may := "nothing"
	if len(a.may) > 0 {
		may = strings.Join(a.may, ", ")
	}
	out := fmt.Sprintf("mode %s, remedies %s, may %s", a.mode, strings.Join(append([]string{"none"}, a.remedies...), ", "), may)
	if len(a.prometheus) > 0 {
		out += ", prometheus " + text.Sanitize(strings.Join(a.prometheus, ", "), MaxText)
	}
	return out
}

func readAllow(o Object, value any) (*allowance, *Mistake) {
	if value == nil {
		return nil, nil
	}
	given, ok := value.(map[string]any)
	if !ok {
		return nil, invalid("spec.allow", "must be a mapping of keys to values")
	}
	if m := onlyKeys("spec.allow", given, []string{"mode", "remedies", "may", "prometheus"}); m != nil {
		return nil, m
	}
	a := allowance{mode: policy.Observe, from: o.Key().String()}
	if m := readMode("spec.allow.mode", given["mode"], &a.mode); m != nil {
		return nil, m
	}
	words := map[string][]string{}
	for _, k := range policy.RuleKeys() {
		words[k.Name] = k.Words
	}
	var m *Mistake
	if a.remedies, m = readTexts("spec.allow.remedies", given["remedies"], MaxRules, words["remedy"]); m != nil {
		return nil, m
	}
	if a.may, m = readTexts("spec.allow.may", given["may"], MaxRules, words["may"]); m != nil {
		return nil, m
	}
	if a.prometheus, m = readTexts("spec.allow.prometheus", given["prometheus"], MaxRules, nil); m != nil {
		return nil, m
	}
	for i, at := range a.prometheus {
		if !isURL(at) {
			return nil, invalid(fmt.Sprintf("spec.allow.prometheus[%d]", i),
				"%q is no URL of a Prometheus: write it as http://prometheus.monitoring:9090",
				text.Sanitize(at, 80))
		}
	}
	return &a, nil
}

func onlyKeys(field string, given map[string]any, known []string) *Mistake {
	for _, key := range slices.Sorted(maps.Keys(given)) {
		if !slices.Contains(known, key) {
			slices.Sort(known)
			return invalid(field, "unknown key %q: choose from %s", text.Sanitize(key, 60), strings.Join(known, ", "))
		}
	}
	return nil
}

func readMode(field string, value any, to *policy.Mode) *Mistake {
	switch value {
	case nil:
	case string(policy.Observe), string(policy.Apply):
		*to = policy.Mode(value.(string))
	default:
		return invalid(field, "%q: choose from observe, apply", text.Sanitize(fmt.Sprint(value), 60))
	}
	return nil
}

func readTexts(field string, value any, most int, words []string) ([]string, *Mistake) {
	list, ok := value.([]any)
	switch {
	case value != nil && !ok:
		return nil, invalid(field, "a list is wanted")
	case len(list) > most:
		return nil, invalid(field, "%d of them, more than %d", len(list), most)
	}
	var out []string
	for i, item := range list {
		word, ok := item.(string)
		if !ok || len(word) > MaxText || words != nil && !slices.Contains(words, word) {
			return nil, invalid(fmt.Sprintf("%s[%d]", field, i), "%q: choose from %s",
				text.Sanitize(fmt.Sprint(item), 60), strings.Join(words, ", "))
		}
		out = append(out, word)
	}
	return out, nil
}
