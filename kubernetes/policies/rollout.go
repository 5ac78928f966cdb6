package policies

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/unthrottle/unthrottle/internal/cure/canary"
	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/strictyaml"
	"github.com/unthrottle/unthrottle/internal/text"
)

// Bounds of a rollout, which the schema has too.
const (
	// MaxQuery is the length of a query of Prometheus, in characters.
	MaxQuery = 2048
	// MaxNodes is the largest budget of nodes.
	MaxNodes = 1000
	// LeastWatch and MostWatch bound how long a step is watched: an agent needs some minutes to find a remedy.
	LeastWatch, MostWatch = 5 * time.Minute, 24 * time.Hour
)

// Rollout is a policy's.
type Rollout struct {
	canary.Plan
	// Latency gives the judged quantile by pod.
	Latency string
	// Prometheus is its URL, Query gives the guard's value.
	Prometheus, Query string
	// Tried names the rules that are rolled out.
	Tried string
}

// Node is what a node's rules file needs to know of the node, where rollouts are on.
type Node struct {
	// Pods are those of the node, by namespace.
	Pods map[string][]canary.Pod
}

// readRollout reads spec.rollout; nil: there is none.
func readRollout(o Object, given map[string]any) (*Rollout, *Mistake) {
	if given["rollout"] == nil {
		return nil, nil
	}
	reading := rolloutReader{seen: map[string]bool{}}
	reading.file.value(rolloutField, "", "rollout", given["rollout"])
	doc, wrong := strictyaml.Document(reading.file.bytes(), policy.MaxConfigBytes)
	if wrong != nil {
		reading.note(wrong)
		return nil, reading.first
	}
	r := &Rollout{}
	reading.members("", doc, map[string]func(*yaml.Node){"rollout": func(n *yaml.Node) { reading.rollout(r, n) }})
	for _, key := range []string{"share", "watch", "latency", "guard.prometheus", "guard.query", "guard.bound"} {
		if reading.first == nil && !reading.seen[key] {
			reading.first = invalid(rolloutField+"."+key, "it is missing: a rollout is judged by it")
		}
	}
	if reading.first != nil {
		return nil, reading.first
	}
	rules, err := json.Marshal(given["rules"])
	if err != nil {
		return nil, invalid("spec.rules", "%s", text.Sanitize(err.Error(), 100))
	}
	sum := sha256.Sum256(rules)
	r.Tried = hex.EncodeToString(sum[:8])
	return r, nil
}

const rolloutField = "spec.rollout"

// rolloutReader reads a rollout, notes the first mistake, and which keys it has seen.
type rolloutReader struct {
	file  lines
	first *Mistake
	seen  map[string]bool
}

// note keeps the first mistake, under the name of the field where it is.
func (r *rolloutReader) note(e *strictyaml.Error) {
	if e == nil || r.first != nil {
		return
	}
	at, why := rolloutField, e.Why
	if e.Line > 0 && e.Line <= len(r.file.fields) {
		at = r.file.fields[e.Line-1]
	}
	if e.Key != "" {
		why = "key " + strictyaml.Shown(e.Key) + " " + why
	}
	r.first = invalid(at, "%s", text.Sanitize(why, 300))
}

// members reads the keys of a mapping; prefix is where it is within the rollout.
func (r *rolloutReader) members(prefix string, n *yaml.Node, known map[string]func(*yaml.Node)) {
	strictyaml.Members(n, r.note, func(key, value *yaml.Node) {
		read, ok := known[key.Value]
		if !ok {
			r.note(strictyaml.Unknown(key, slices.Sorted(maps.Keys(known))))
			return
		}
		r.seen[prefix+key.Value] = true
		read(value)
	})
}

// rollout reads the keys of a rollout.
func (r *rolloutReader) rollout(to *Rollout, n *yaml.Node) {
	r.members("", n, map[string]func(*yaml.Node){
		"share": r.number(&to.Share, "a share above 0% and up to 50%, such as 10%",
			func(v float64) bool { return v > 0 && v <= canary.MostShare }, true),
		"watch": func(n *yaml.Node) {
			var e *strictyaml.Error
			to.Watch, e = strictyaml.Duration(n, LeastWatch, MostWatch)
			r.note(e)
		},
		"nodes": func(n *yaml.Node) {
			var e *strictyaml.Error
			to.Nodes, e = strictyaml.Whole(n, 0, MaxNodes)
			r.note(e)
		},
		"latency": r.query(&to.Latency),
		"guard":   func(n *yaml.Node) { r.guard(to, n) },
	})
}

// guard reads the keys of a rollout's guard.
func (r *rolloutReader) guard(to *Rollout, n *yaml.Node) {
	r.members("guard.", n, map[string]func(*yaml.Node){
		"prometheus": func(n *yaml.Node) {
			var e *strictyaml.Error
			if to.Prometheus, e = strictyaml.Text(n, MaxText); e == nil && !isURL(to.Prometheus) {
				e = strictyaml.Wrong(n, "%s is no URL of a Prometheus: write it as http://prometheus.monitoring:9090",
					strictyaml.Shown(to.Prometheus))
			}
			r.note(e)
		},
		"query": r.query(&to.Query),
		"bound": r.number(&to.Bound, "a number", func(float64) bool { return true }, false),
	})
}

// query reads a query of Prometheus.
func (r *rolloutReader) query(to *string) func(*yaml.Node) {
	return func(n *yaml.Node) {
		var e *strictyaml.Error
		if *to, e = strictyaml.Text(n, MaxQuery); e == nil && strings.TrimSpace(*to) == "" {
			e = strictyaml.Wrong(n, "it is empty: write a query")
		}
		r.note(e)
	}
}

// number reads a number, as a percentage or not. words say what is wanted.
func (r *rolloutReader) number(to *float64, words string, good func(float64) bool, percent bool) func(*yaml.Node) {
	return func(n *yaml.Node) {
		written, e := strictyaml.Scalar(n)
		if e == nil {
			digits, isPercent := strings.CutSuffix(written, "%")
			v, err := text.ParseDecimal(digits)
			if isPercent {
				v /= 100
			}
			if *to = v; err != nil || isPercent != percent || !good(v) {
				e = strictyaml.Wrong(n, "%s: give %s", strictyaml.Shown(written), words)
			}
		}
		r.note(e)
	}
}

// isURL tells whether a text is the URL of a service, without a user, a query or a fragment.
func isURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.User == nil &&
		u.RawQuery == "" && u.Fragment == ""
}

// over is a moment that is over: a rule that ended then has what was applied to its containers taken back.
const over = "1970-01-01T00:00:00Z"

// spread gives the rules that a rule of a rollout is on one node: the rule for its treated pods, until the rollout's state is
// old, and one for all other pods that applies nothing and takes back what is in force. Where it is kept it is the rule itself.
func (r *Rollout) spread(o Object, each rule, node *Node) []placed {
	if each.Leave || o.Rollout.Phase == canary.Kept && o.Rollout.Tried == r.Tried {
		return []placed{{rule: each, mode: policy.Apply}}
	}
	var out []placed
	if uids := r.treated(o, node); len(uids) > 0 {
		treated := rule{each.Rule, maps.Clone(each.given)}
		match, _ := each.given["match"].(map[string]any)
		match = maps.Clone(match)
		if match == nil {
			match = map[string]any{}
		}
		match["pods"], treated.Match.Pods = uids, []string{}
		treated.given["match"], treated.given["until"] = match, o.Rollout.Until.UTC().Format(time.RFC3339)
		out = append(out, placed{rule: treated, mode: policy.Apply})
	}
	others := rule{each.Rule, maps.Clone(each.given)}
	others.given["until"] = over
	return append(out, placed{rule: others, mode: policy.Observe})
}

// withdrawn are the rules of a policy that is no longer accepted in the middle of a step, and is not in force: they apply nothing, and
// take back what is in force, because the agents ask a rule what has ended. They are none if there is no room for so many.
func withdrawn(o Object, room int) (all []placed) {
	if !o.Rollout.Trying() {
		return nil
	}
	for _, given := range []map[string]any{o.Kept, o.Spec} {
		s, wrong := parse(o, given)
		if wrong != nil || s.rollout == nil || s.rollout.Tried != o.Rollout.Tried || s.most(o) > room {
			continue
		}
		o.Rollout = canary.State{}
		for i, r := range s.rules {
			all = append(all, s.places(o, i, r, nil)...)
		}
		return all
	}
	return nil
}

// treated are the UIDs of the node's pods that have the remedy, in order.
func (r *Rollout) treated(o Object, node *Node) (uids []any) {
	if o.Rollout.Tried != r.Tried { // always so of what is withdrawn, which has no node
		return nil
	}
	for _, p := range node.Pods[o.Namespace] {
		if o.Rollout.Treats(p) {
			uids = append(uids, p.UID)
		}
	}
	slices.SortFunc(uids, func(a, b any) int { return strings.Compare(a.(string), b.(string)) })
	return uids[:min(len(uids), policy.MaxPods)]
}
