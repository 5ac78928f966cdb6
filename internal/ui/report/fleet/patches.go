package fleet

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/unthrottle/unthrottle/internal/text"
)

// Patch is a file that sets the limits of one workload's containers: a strategic merge patch, as kubectl patch and
// kustomize take it.
type Patch struct {
	// Name is NAMESPACE/KIND-NAME.yaml.
	Name string
	YAML []byte
}

// Patches are those of the services that give cores back by a lower limit alone, whatever the estimate may be off by.
// The limit is the upper bound of what is enough. left says how many services save something and have none, by the
// reason.
func Patches(d Document) (patches []Patch, left []string) {
	byFile, reasons := map[string][]Service{}, map[string]int{}
	for _, s := range d.Services {
		if s.CoresAfter == nil || s.CoresNow == nil || !(*s.CoresAfter < *s.CoresNow) {
			continue
		}
		if why := noPatch(&s); why != "" {
			reasons[why]++
			continue
		}
		w := s.Workload
		name := w.Namespace + "/" + strings.ToLower(w.Kind) + "-" + w.Name + ".yaml"
		byFile[name] = append(byFile[name], s)
	}
	for name, services := range byFile {
		patches = append(patches, Patch{name, patch(d, services)})
	}
	slices.SortFunc(patches, func(a, b Patch) int { return strings.Compare(a.Name, b.Name) })
	for why, n := range reasons {
		left = append(left, fmt.Sprintf("%s: %s", text.Count(n, "service"), why))
	}
	slices.Sort(left)
	return patches, left
}

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
	case s.Remedy != nil && Asks[*s.Remedy] == AsksNode:
		return "it saves by a burst, a narrow or a pin, which no field of a pod sets: a ThrottlePolicy does"
	case s.Remedy == nil || *s.Remedy != Lower:
		return "it saves by more than another limit, which its owners have to change"
	case w.LimitCPUs == nil:
		return "its containers have different limits now"
	case s.LimitHigh == nil || !(tenthsUp(*s.LimitHigh) < *w.LimitCPUs):
		return "the estimate may be off by all that it saves"
	case !objectName.MatchString(w.Namespace) || !objectName.MatchString(w.Name) || !objectName.MatchString(w.Container):
		return "its names are none that Kubernetes allows"
	}
	return ""
}

// tenthsUp is a limit in whole tenths of a CPU that is enough.
func tenthsUp(cpus float64) float64 { return math.Ceil(10*cpus-1e-9) / 10 }

// Parts of a patch. JSON strings are YAML's: a name such as "on" stays a string.
const (
	patchHead = `# By 'unthrottle fleet report', from rows of %s to %s UTC. A limit is the upper bound of what stops the
# container for no more than %s of its time to work%s.
apiVersion: apps/v1
kind: %s
metadata:
  name: %q
  namespace: %q
spec:
  template:
    spec:
      containers:
`
	patchContainer = `      - name: %q # limit %s now, between %s and %s asked; %s of %s cores saved over %s
        resources:
          limits:
            cpu: %s
`
)

// patch is the file of the services of one workload, its containers.
func patch(d Document, services []Service) []byte {
	var b strings.Builder
	w, kept := services[0].Workload, ""
	if slices.ContainsFunc(services, func(s Service) bool { return s.Priced > 0 }) {
		kept = ", and keeps its\n# p99 where a recording tells it"
	}
	fmt.Fprintf(&b, patchHead, d.From.UTC().Format("2006-01-02 15:04"), d.Until.UTC().Format("2006-01-02 15:04"),
		percent(&d.Bound), kept, w.Kind, w.Name, w.Namespace)
	for _, s := range services {
		w, to := s.Workload, tenthsUp(*s.LimitHigh)
		fmt.Fprintf(&b, patchContainer, w.Container, millis(*w.LimitCPUs), millis(*s.LimitLow), millis(to),
			cores((*w.LimitCPUs-to)*float64(s.Containers)), cores(*s.CoresNow), text.Count(s.Containers, "container"),
			millis(to))
		// A request above the limit is refused, and one that was equal made the pod Guaranteed.
		if r := w.RequestCPUs; r != nil && (*r > to || *r == *w.LimitCPUs) {
			fmt.Fprintf(&b, "          requests:\n            cpu: %s\n", millis(min(*r, to)))
		}
	}
	return []byte(b.String())
}

// millis is a number of CPUs as a quantity of Kubernetes.
func millis(cpus float64) string { return fmt.Sprintf("%.0fm", 1000*cpus) }

func cores(v float64) string { return fmt.Sprintf("%.1f", v) }
