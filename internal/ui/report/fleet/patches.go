package fleet

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/figure"
)

// Patch is a file for one workload of Kubernetes.
type Patch struct {
	// Name is NAMESPACE/KIND-NAME.yaml of a patch, NAMESPACE/throttlepolicy-KIND-NAME.yaml of a policy.
	Name string
	YAML []byte
}

// Patches are those of the services that give cores back by a lower limit, alone or with a remedy on the node that
// recordings tell the price of, whatever the estimate may be off by: strategic merge patches, as kubectl patch and
// kustomize take them. The limit is the upper bound of what is enough. policies are the ThrottlePolicies that ask for the
// remedies. left says how many services save something and have none, by the reason; crowded which policies are too many for
// their namespace.
func Patches(d Document) (patches, policies []Patch, left, crowded []string) {
	byFile, reasons, asking := map[string][]Service{}, map[string]int{}, map[string][]*ruled{}
	for _, s := range d.Services {
		if s.CoresAfter == nil || s.CoresNow == nil || !(*s.CoresAfter < *s.CoresNow) {
			continue
		}
		if why := noPatch(&s); why != "" {
			reasons[why]++
			continue
		}
		name := s.Workload.Namespace + "/" + s.Workload.file() + ".yaml"
		byFile[name] = append(byFile[name], s)
	}
	for _, name := range slices.Sorted(maps.Keys(byFile)) {
		services := byFile[name]
		patches = append(patches, Patch{name, patch(d, services)})
		if onNode := slices.DeleteFunc(slices.Clone(services), func(s Service) bool { return !s.onNode() }); len(onNode) > 0 {
			w, of := onNode[0].Workload, &ruled{rules: len(onNode)}
			policies = append(policies, Patch{w.Namespace + "/" + w.policyFile(), throttlePolicy(d, onNode)})
			for _, s := range onNode {
				of.saved += *s.CoresNow - *s.CoresAfter
			}
			of.file = w.policyFile()
			asking[w.Namespace] = append(asking[w.Namespace], of)
		}
	}
	for why, n := range reasons {
		left = append(left, fmt.Sprintf("%s: %s", text.Count(n, "service"), why))
	}
	slices.Sort(left)
	for _, namespace := range slices.Sorted(maps.Keys(asking)) {
		if line := tooMany(namespace, asking[namespace]); line != "" {
			crowded = append(crowded, line)
		}
	}
	return patches, policies, left, crowded
}

// ruled is a policy with so many rules, for remedies that save so many cores.
type ruled struct {
	file  string
	rules int
	saved float64
}

// tooMany says which policies a namespace has no room for, when those that save most come first; "": it has for all.
func tooMany(namespace string, policies []*ruled) string {
	const some = 3
	slices.SortStableFunc(policies, func(a, b *ruled) int { return cmp.Compare(b.saved, a.saved) })
	rules, names := 0, []string(nil)
	for _, p := range policies {
		if rules += p.rules; rules > policy.MaxNamespaceRules {
			names = append(names, p.file)
		}
	}
	if len(names) == 0 {
		return ""
	}
	list := strings.Join(names[:min(some, len(names))], ", ")
	if more := len(names) - some; more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Sprintf("namespace %s: its ThrottlePolicies have %d rules, and %d count together: those that save most have room, but not "+
		"%s. Leave these and their patches out, or give their containers one rule with a wider pattern", namespace, rules,
		policy.MaxNamespaceRules, list)
}

// file is the name of the patch of a workload, without its ending, and of the policy; policyFile that of its file.
func (w *Workload) file() string       { return strings.ToLower(w.Kind) + "-" + w.Name }
func (w *Workload) policyFile() string { return "throttlepolicy-" + w.file() + ".yaml" }

// onNode: the remedy is a setting on the node.
func (s *Service) onNode() bool { return s.Remedy != nil && Asks(*s.Remedy) == AsksNode }

// objectName is what Kubernetes allows as the name of an object (RFC 1123, subdomain); a file's name can be made of it.
var objectName = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$`)

// noPatch is why a service that saves something has none; "": it has.
func noPatch(s *Service) string {
	w := s.Workload
	switch {
	case w == nil:
		return "it is no Deployment, StatefulSet or DaemonSet, or that is not known"
	case s.Unknown > s.Young:
		return "what some of its containers need is not known"
	case s.Remedy == nil || *s.Remedy != Lower && !s.onNode():
		return "it saves by more than another limit, which its owners have to change"
	case w.LimitCPUs == nil:
		return "its containers have different limits now"
	case s.onNode() && s.price() == nil:
		return "it saves by a burst, a narrow or a pin, and no recordings tell of all its containers whether that keeps their p99"
	case s.onNode() && len(w.Name) > longestTold:
		return "Kubernetes cuts the names of its pods, so no ThrottlePolicy can tell them from others"
	case !(s.enough() < *w.LimitCPUs):
		return "the estimate may be off by all that it saves"
	case !objectName.MatchString(w.Namespace) || !objectName.MatchString(w.Name) || !objectName.MatchString(w.Container):
		return "its names are none that Kubernetes allows"
	}
	return ""
}

// longestTold is how long the name of a Deployment may be so that those of its pods are whole: 63 characters, of which a
// hash and what is random take 17.
const longestTold = 46

// price is that of the service's remedy, of all its containers that were observed for long enough; nil: there is none.
func (s *Service) price() *Price {
	for i := range s.Prices {
		if p := &s.Prices[i]; s.Remedy != nil && p.Remedy == *s.Remedy && p.Containers == s.Containers-s.Unknown {
			return p
		}
	}
	return nil
}

// enough is the limit that surely is enough for each container, with the remedy: in tenths of a CPU, and whole where its
// CPUs are. It is infinite where that is not known.
func (s *Service) enough() float64 {
	enough := 0.0
	if s.LimitHigh == nil {
		enough = math.Inf(1)
	} else if !s.onNode() {
		enough = *s.LimitHigh
	}
	if p := s.price(); p != nil {
		enough = max(enough, p.CoresAfterHigh/float64(p.Containers))
	}
	return tenthsUp(enough)
}

// atLeast is the limit from which on it may be enough.
func (s *Service) atLeast() float64 {
	if p := s.price(); p != nil {
		return p.CoresAfterLow / float64(p.Containers)
	}
	return *s.LimitLow
}

// tenthsUp is a limit in whole tenths of a CPU that is enough.
func tenthsUp(cpus float64) float64 { return math.Ceil(10*cpus-1e-9) / 10 }

// Parts of the files. JSON strings are YAML's: a name such as "on" stays a string.
const (
	fileHead = `# By 'unthrottle fleet report', from rows of %s to %s UTC. %s
apiVersion: %s
kind: %s
metadata:
  name: %q
  namespace: %q
spec:
`
	limitHead = `A limit is the upper bound of what stops the
# container for no more than %s of its time to work%s.`
	templateHead = `  template:
    spec:
      containers:
`
	patchContainer = `      - name: %q # limit %s now, between %s and %s asked%s; %s of %s cores saved over %s%s
        resources:
          limits:
            cpu: %s
`
	policyHead = `Apply it before %s.yaml, which lowers the
# limits: the agent applies and judges a remedy when its container is stopped.`
	policyRule = `  - match: {name: %q}
    # %s, %s instead of %s%s
    remedy: auto
    verify: probe
`
)

// patch is the file of the services of one workload, its containers.
func patch(d Document, services []Service) []byte {
	w, kept := services[0].Workload, ""
	if slices.ContainsFunc(services, func(s Service) bool { return s.Priced > 0 }) {
		kept = ", and keeps its\n# p99 where a recording tells it"
	}
	b := begin(d, fmt.Sprintf(limitHead, percent(&d.Bound), kept), "apps/v1", w.Kind, w.Name, w.Namespace)
	b.WriteString(templateHead)
	for _, s := range services {
		w, to, with := s.Workload, s.enough(), ""
		if s.onNode() {
			with = " with " + s.remedyNamed() + " by " + w.policyFile() + ", which comes first"
		}
		fmt.Fprintf(b, patchContainer, w.Container, millis(*w.LimitCPUs), millis(s.atLeast()), millis(to), with,
			cores((*w.LimitCPUs-to)*float64(s.Containers)), cores(*s.CoresNow), text.Count(s.Containers, "container"),
			s.fewerFail(&d), millis(to))
		// A request above the limit is refused, and one that was equal made the pod Guaranteed.
		if r := w.RequestCPUs; r != nil && (*r > to || *r == *w.LimitCPUs) {
			fmt.Fprintf(b, "          requests:\n            cpu: %s\n", millis(min(*r, to)))
		}
	}
	return b.Bytes()
}

// fewerFail says for how many hosts that fail its limit is enough, where that is fewer than were asked for.
func (s *Service) fewerFail(d *Document) string {
	switch n := s.FailoverHosts; {
	case n >= d.FailoverHosts:
		return ""
	case n == 0:
		return fmt.Sprintf("; not enough when a host fails: it is on %d", s.Hosts)
	case n == 1:
		return fmt.Sprintf("; enough when 1 host fails: it is on %d", s.Hosts)
	default:
		return fmt.Sprintf("; enough when %d hosts fail: it is on %d", n, s.Hosts)
	}
}

// begin begins the file of an object.
func begin(d Document, says, version, kind, name, namespace string) *bytes.Buffer {
	const form = "2006-01-02 15:04"
	var b bytes.Buffer
	fmt.Fprintf(&b, fileHead, d.From.UTC().Format(form), d.Until.UTC().Format(form), says, version, kind, name, namespace)
	return &b
}

// throttlePolicy is the file of the policy that asks for the remedies of a workload's containers. A policy that applies
// names none: the agent chooses by its forecast, as nothing could judge another one.
func throttlePolicy(d Document, services []Service) []byte {
	w := services[0].Workload
	b := begin(d, fmt.Sprintf(policyHead, w.file()), "unthrottle.dev/v1alpha1", "ThrottlePolicy", w.file(), w.Namespace)
	fmt.Fprintf(b, "  mode: %s\n  rules:\n", policy.Apply)
	for _, s := range services {
		keeps := ""
		if latency := judged(s); latency != figure.Missing {
			keeps = ", keeps " + latency
		}
		keeps += s.fewerFail(&d)
		fmt.Fprintf(b, policyRule, policy.PodsOf(w.Kind, w.Name)+"/"+s.Workload.Container, s.remedyNamed()+s.flags(), millis(s.enough()),
			millis(*s.Workload.LimitCPUs), keeps)
		if *s.Remedy == Pin { // it may grant more CPU than the limit
			fmt.Fprintf(b, "    may: [%s]\n    cpus: %.0f\n", Pin, math.Ceil(s.enough()))
		}
		if s.Objective != nil {
			if o, err := policy.ParseObjective(s.Objective.bound().String()); err == nil {
				fmt.Fprintf(b, "    slo: {objective: %q}\n", o.String())
			}
		}
	}
	return b.Bytes()
}

// millis is a number of CPUs as a quantity of Kubernetes.
func millis(cpus float64) string { return fmt.Sprintf("%.0fm", 1000*cpus) }

func cores(v float64) string { return fmt.Sprintf("%.1f", v) }
