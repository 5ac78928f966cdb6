package policy

import (
	"path"
	"slices"
	"strings"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
)

// For finds the rule for a container: the first that matches; nil: none does.
// labels are the container's, nil where they are not known.
func (r Rules) For(c container.Container, labels map[string]string) *Rule {
	for i := range r.Rules {
		if r.Rules[i].Match.fits(c, labels) {
			return &r.Rules[i]
		}
	}
	return nil
}

func (m Match) fits(c container.Container, labels map[string]string) bool {
	if m.Name != "" && !m.hasName(c) {
		return false
	}
	if m.Pods != nil && !slices.Contains(m.Pods, c.PodUID) {
		return false
	}
	if m.Namespace != "" && !glob(m.Namespace, c.Namespace) || m.Cgroup != "" && !globPath(m.Cgroup, c.Group.Path) {
		return false
	}
	for key, value := range m.Labels {
		if have, ok := labels[key]; !ok || have != value {
			return false
		}
	}
	return true
}

// hasName fits the pattern to each name of a container, also to "pod/container" without the namespace before it.
func (m Match) hasName(c container.Container) bool {
	return glob(m.Name, c.Name) || glob(m.Name, c.Pod) || glob(m.Name, c.ContainerName) || glob(m.Name, c.Unit) ||
		glob(m.Name, c.Service) || c.Pod != "" && glob(m.Name, c.Pod+"/"+c.ContainerName)
}

// PodsOf is a pattern for the names of all pods that a controller of Kubernetes makes, also of those to come; "": of such a
// kind that is not known.
func PodsOf(kind, name string) string {
	switch kind {
	case "Deployment", "CronJob":
		return name + "-*-?????"
	case "StatefulSet":
		return name + "-[0-9]*"
	case "ReplicaSet", "DaemonSet", "Job":
		return name + "-?????"
	}
	return ""
}

// glob fits a pattern to a name; an empty name is one that is not known.
func glob(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return name != "" && ok && err == nil
}

func globPath(pattern, at string) bool {
	top, all := strings.CutSuffix(pattern, "/**")
	if all && top == "" {
		return true
	}
	for {
		if glob(top, at) {
			return true
		}
		if !all || at == "/" {
			return false
		}
		at = cgroup.Parent(at)
	}
}
