package container

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/text"
)

// NotFound reports a target that names nothing here, with similar names.
type NotFound struct {
	Target string
	// Near holds at most 5 names that the user may mean, nearest first.
	Near []string
	// Why has more about the cause; it may be "".
	Why string
}

func (e *NotFound) Error() string {
	text := fmt.Sprintf("no container, unit or cgroup %s", quote(e.Target))
	if e.Why != "" {
		text += ": " + e.Why
	}
	if len(e.Near) > 0 {
		text += "; did you mean " + alternatives(e.Near) + "?"
	} else if e.Why == "" {
		text += ": 'unthrottle ls' lists what is here"
	}
	return text
}

// Ambiguous reports a target that fits several containers.
type Ambiguous struct {
	Target string
	// Candidates holds at most 5 of them, as "name (path)"; More counts the rest.
	Candidates []string
	More       int
}

func (e *Ambiguous) Error() string {
	text := fmt.Sprintf("%s fits several, name one of: %s", quote(e.Target), strings.Join(e.Candidates, ", "))
	if e.More > 0 {
		text += fmt.Sprintf(" and %d more", e.More)
	}
	return text
}

// NotMeasurable reports a target that cannot be resolved from our namespace.
type NotMeasurable struct{ Target, Why string }

func (e *NotMeasurable) Error() string {
	return fmt.Sprintf("%s cannot be resolved here: %s", quote(e.Target), e.Why)
}

// alternatives are names as people list what they choose from: "a, b or c".
func alternatives(names []string) string {
	last := len(names) - 1
	if last == 0 {
		return names[0]
	}
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

func quote(s string) string { return `"` + text.Sanitize(s, 200) + `"` }

// Resolve finds the container that a user means by target; containers are those of List. A target is one of:
//
//   - "pid:N",
//   - a cgroup's path or directory, also one without its own line, and text written by text.EscapePath,
//   - an id or a unique prefix of one,
//   - a name: container, pod, "pod/container", also with "namespace/" before it, or a unit, also without its suffix,
//   - the last components of a cgroup's path, if only one container's ends with them: "checkout" for /shop/checkout,
//   - a service of compose, "project/service" or "service",
//   - "RUNTIME:" and a name or id, "docker:web": of this runtime's containers alone.
//
// A pod's name means its only named container, and a service its only container. Errors are *NotFound, *Ambiguous and
// *NotMeasurable.
func Resolve(h *cgroup.Host, containers []Container, target string) (Container, error) {
	if target == "" {
		return Container{}, &NotFound{Target: target, Why: "the target is empty"}
	}
	if pid, ok := strings.CutPrefix(target, "pid:"); ok {
		return resolvePID(h, containers, target, pid)
	}
	if found := filter(containers, func(c Container) bool { return c.Group.Path == target }); len(found) > 0 {
		return only(found, target)
	}
	if found := byName(containers, target); len(found) > 0 {
		return only(found, target)
	}
	if path, err := cgroup.CleanPath(h, target); err == nil && cgroup.Exists(h, cgroup.CPU, path) {
		return at(h, containers, path)
	}
	if found := filter(containers, func(c Container) bool { return strings.HasSuffix(c.Group.Path, "/"+target) }); len(found) > 0 {
		return only(found, target)
	}
	if found := byID(containers, target); len(found) > 0 {
		return only(found, target)
	}
	if runtime, name, ok := strings.Cut(target, ":"); ok && slices.Contains(runtimePrefixes, runtime) {
		return resolveOf(containers, target, runtime, name)
	}
	return Container{}, &NotFound{Target: target, Near: near(containers, target)}
}

// byName returns the containers with a name; where none has it, those of the pod, then of the service.
func byName(containers []Container, name string) []Container {
	for _, match := range []func(Container, string) bool{hasName, hasPod, hasService} {
		if found := filter(containers, func(c Container) bool { return match(c, name) }); len(found) > 0 {
			return found
		}
	}
	return nil
}

func byID(containers []Container, prefix string) []Container {
	return filter(containers, func(c Container) bool { return c.ID != "" && strings.HasPrefix(c.ID, prefix) })
}

// resolveOf resolves a name or id among the containers of one runtime.
func resolveOf(containers []Container, target, runtime, name string) (Container, error) {
	own := filter(containers, func(c Container) bool { return c.Runtime == runtime || runtime == Kubernetes && c.Pod != "" })
	if len(own) == 0 {
		return Container{}, &NotFound{Target: target, Why: runtime + " runs no container here"}
	}
	if name == "" {
		return Container{}, &NotFound{Target: target, Why: "a name or id must follow " + runtime + ":"}
	}
	found := byName(own, name)
	if len(found) == 0 {
		found = byID(own, name)
	}
	if len(found) == 0 {
		return Container{}, &NotFound{Target: target, Near: near(own, name)}
	}
	return only(found, target)
}

func resolvePID(h *cgroup.Host, containers []Container, target, number string) (Container, error) {
	pid, err := strconv.Atoi(number)
	if err != nil || pid < 1 {
		return Container{}, &NotFound{Target: target, Why: "pid: takes a process number above 0"}
	}
	if h.PrivateNamespace() {
		return Container{}, &NotMeasurable{target, "in a private cgroup namespace the kernel shows the paths of " +
			"other processes relative to it; name the cgroup's path, or run in the host's cgroup namespace"}
	}
	path, ok, err := h.Of(pid, cgroup.CPU)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return Container{}, &NotFound{Target: target, Why: "no such process in this PID namespace"}
	case err != nil:
		return Container{}, &NotMeasurable{target, err.Error()}
	case !ok:
		return Container{}, &NotMeasurable{target, "the kernel names no cgroup of the cpu hierarchy for it"}
	}
	return holding(h, containers, path)
}

// holding returns the container that a cgroup belongs to, else the cgroup itself.
func holding(h *cgroup.Host, containers []Container, path string) (Container, error) {
	best := -1
	for i, c := range containers {
		if c.Runtime != "" && cgroup.Below(path, c.Group.Path) &&
			(best < 0 || len(c.Group.Path) > len(containers[best].Group.Path)) {
			best = i
		}
	}
	if best >= 0 {
		return containers[best], nil
	}
	return at(h, containers, path)
}

// at returns the cgroup at exactly this path.
func at(h *cgroup.Host, containers []Container, path string) (Container, error) {
	for _, c := range containers {
		if c.Group.Path == path {
			return c, nil
		}
	}
	group, err := h.Group(path)
	if errors.Is(err, cgroup.ErrNoCgroup) {
		return Container{}, &NotFound{Target: path, Why: "the cgroup is gone"}
	}
	if err != nil {
		return Container{}, err
	}
	found, ok := recognise(relative(path, h.Top(cgroup.CPU)))
	if !ok || found.depth != depth(relative(path, h.Top(cgroup.CPU))) {
		found = identity{podUID: found.podUID}
	}
	return found.describe(group), nil
}

func hasName(c Container, target string) bool {
	if target == c.Name || target == c.ID || c.ContainerName != "" && target == c.ContainerName {
		return true
	}
	if c.Unit != "" && (target == c.Unit || c.Runtime == Systemd && target == trimUnit(c.Unit)) {
		return true
	}
	// Where the namespace is known, Name begins with it.
	return c.Namespace != "" && c.Namespace+"/"+target == c.Name
}

func hasService(c Container, target string) bool {
	return c.Service != "" && (target == c.Service || target == c.ComposeService())
}

func hasPod(c Container, target string) bool {
	return c.Pod != "" && (target == c.Pod || target == c.Namespace+"/"+c.Pod) || c.PodUID != "" && target == c.PodUID
}

func trimUnit(unit string) string {
	if i := strings.LastIndexByte(unit, '.'); i > 0 {
		return unit[:i]
	}
	return unit
}

func filter(containers []Container, match func(Container) bool) []Container {
	var found []Container
	for _, c := range containers {
		if match(c) {
			found = append(found, c)
		}
	}
	return found
}

// prefixed is a container's name with its runtime, as a target may be given.
func prefixed(c Container) string {
	if c.ID == "" || c.Runtime == "" {
		return c.Name
	}
	return c.Runtime + ":" + c.Name
}

// only decides among several. In a pod, containers with a name precede those without; the sandbox has none.
func only(found []Container, target string) (Container, error) {
	if named := filter(found, func(c Container) bool { return c.ContainerName != "" }); len(named) > 0 {
		found = named
	}
	if len(found) == 1 {
		return found[0], nil
	}
	e := &Ambiguous{Target: target}
	for _, c := range found {
		if len(e.Candidates) == maxNear {
			break
		}
		e.Candidates = append(e.Candidates, fmt.Sprintf("%s (%s)", prefixed(c), text.Sanitize(c.Group.Path, 200)))
	}
	e.More = len(found) - len(e.Candidates)
	slices.Sort(e.Candidates)
	return Container{}, e
}
