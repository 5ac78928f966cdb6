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
	const field = "spec.rollout"
	if given["rollout"] == nil {
		return nil, nil
	}
	var file lines
	file.value(field, "", "rollout", given["rollout"])
	var first *Mistake
	note := func(e *strictyaml.Error) {
		if e == nil || first != nil {
			return
		}
		at, why := field, e.Why
		if e.Line > 0 && e.Line <= len(file.fields) {
			at = file.fields[e.Line-1]
		}
		if e.Key != "" {
			why = "key " + strictyaml.Shown(e.Key) + " " + why
		}
		first = invalid(at, "%s", text.Sanitize(why, 300))
	}
	doc, wrong := strictyaml.Document(file.bytes(), policy.MaxConfigBytes)
	if wrong != nil {
		note(wrong)
		return nil, first
	}
	r, seen := &Rollout{}, map[string]bool{}
	texts := func(to *string) func(*yaml.Node) {
		return func(n *yaml.Node) {
			var e *strictyaml.Error
			if *to, e = strictyaml.Text(n, MaxQuery); e == nil && strings.TrimSpace(*to) == "" {
				e = strictyaml.Wrong(n, "it is empty: write a query")
			}
			note(e)
		}
	}
	number := func(to *float64, words string, good func(float64) bool, percent bool) func(*yaml.Node) {
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
			note(e)
		}
	}
	var members func(prefix string, n *yaml.Node, known map[string]func(*yaml.Node))
	members = func(prefix string, n *yaml.Node, known map[string]func(*yaml.Node)) {
		strictyaml.Members(n, note, func(key, value *yaml.Node) {
			read, ok := known[key.Value]
			if !ok {
				note(strictyaml.Unknown(key, slices.Sorted(maps.Keys(known))))
				return
			}
			seen[prefix+key.Value] = true
			read(value)
		})
	}
	members("", doc, map[string]func(*yaml.Node){"rollout": func(n *yaml.Node) {
		members("", n, map[string]func(*yaml.Node){
			"share": number(&r.Share, "a share above 0% and up to 50%, such as 10%",
				func(v float64) bool { return v > 0 && v <= canary.MostShare }, true),
			"watch": func(n *yaml.Node) {
				var e *strictyaml.Error
				r.Watch, e = strictyaml.Duration(n, LeastWatch, MostWatch)
				note(e)
			},
			"nodes": func(n *yaml.Node) {
				var e *strictyaml.Error
				r.Nodes, e = strictyaml.Whole(n, 0, MaxNodes)
				note(e)
			},
			"latency": texts(&r.Latency),
			"guard": func(n *yaml.Node) {
				members("guard.", n, map[string]func(*yaml.Node){
					"prometheus": func(n *yaml.Node) {
						var e *strictyaml.Error
						if r.Prometheus, e = strictyaml.Text(n, MaxText); e == nil && !isURL(r.Prometheus) {
							e = strictyaml.Wrong(n, "%s is no URL of a Prometheus: write it as http://prometheus.monitoring:9090",
								strictyaml.Shown(r.Prometheus))
						}
						note(e)
					},
					"query": texts(&r.Query),
					"bound": number(&r.Bound, "a number", func(float64) bool { return true }, false),
				})
			},
		})
	}})
	for _, key := range []string{"share", "watch", "latency", "guard.prometheus", "guard.query", "guard.bound"} {
		if first == nil && !seen[key] {
			first = invalid(field+"."+key, "it is missing: a rollout is judged by it")
		}
	}
	if first != nil {
		return nil, first
	}
	rules, err := json.Marshal(given["rules"])
	if err != nil {
		return nil, invalid("spec.rules", "%s", text.Sanitize(err.Error(), 100))
	}
	sum := sha256.Sum256(rules)
	r.Tried = hex.EncodeToString(sum[:8])
	return r, nil
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

// treated are the UIDs of the node's pods that have the remedy, in order.
func (r *Rollout) treated(o Object, node *Node) (uids []any) {
	if o.Rollout.Tried != r.Tried {
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
