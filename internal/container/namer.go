package container

import (
	"github.com/unthrottle/unthrottle/internal/container/names"
	"github.com/unthrottle/unthrottle/internal/container/runtimes"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/text"
)

// describe makes the Container from the path alone.
func (i identity) describe(g cgroup.Group) Container {
	c := Container{Group: g, ID: i.id, Runtime: i.runtime, PodUID: i.podUID, Unit: i.unit, Name: i.name, QoS: i.qos}
	c.setName("")
	return c
}

// setName sets the best name: Kubernetes' names, then known (from the runtime), then the path's.
func (c *Container) setName(known string) {
	inNamespace := ""
	if c.Namespace != "" {
		inNamespace = c.Namespace + "/"
	}
	switch {
	case c.Pod != "" && c.ContainerName != "":
		known = inNamespace + c.Pod + "/" + c.ContainerName
	case c.Pod != "" && c.ID != "":
		known = inNamespace + c.Pod + "/" + shortID(c.ID)
	case known != "":
	case c.Name != "":
		known = c.Name
	case c.ID != "":
		known = shortID(c.ID)
	default:
		known = c.Group.Path
	}
	c.Name = text.Sanitize(known, text.MaxName)
}

// shortID returns the first 12 digits, as docker and crictl show them.
func shortID(id string) string {
	if names.IsID(id) {
		return id[:12]
	}
	return id
}

// namer looks names up; it reads the log folders at most once, and only if a container needs them.
type namer struct {
	host *cgroup.Host
	o    Options
	pods *podNames
}

// name completes a container's names and reports whether a later look-up is of no use.
func (n *namer) name(c *Container) bool {
	if c.Runtime == Systemd || c.ID == "" {
		return true
	}
	said, settled := n.o.Runtimes.Names(runtimes.Query{Runtime: c.Runtime, ID: c.ID,
		PID: func() (int, bool) { return n.process(c.Group.Path) }})
	c.take(said)
	if c.PodUID != "" && !said.Sandbox && (c.Pod == "" || c.ContainerName == "") {
		if n.pods == nil {
			logs := readPodNames(n.o.VarLog)
			n.pods = &logs
		}
		if pod, ok := n.pods.pods[c.PodUID]; ok {
			c.Namespace, c.Pod = pod.namespace, pod.pod
		}
		if name, ok := n.pods.containers[c.ID]; ok {
			c.ContainerName = name
		}
		settled = settled && c.Pod != "" && c.ContainerName != ""
	}
	c.setName(said.Name)
	return settled
}

// take takes over what a runtime said. In a pod the container's name is Kubernetes' alone. Labels with a pod's name are
// believed only of the runtime itself, or where the path is a pod's too.
func (c *Container) take(said names.Names) {
	c.Image, c.Project, c.Service = said.Image, said.Project, said.Service
	if c.Runtime == "" || c.Runtime == Kubernetes && said.Runtime != "" {
		c.Runtime = said.Runtime
	}
	switch {
	case said.Pod != "" && (said.CRI || c.PodUID != ""):
		c.Pod, c.Namespace, c.ContainerName, c.TemplateHash = said.Pod, said.Namespace, said.PodContainer, said.TemplateHash
	case c.PodUID == "":
		c.ContainerName = said.Name
	}
}

// Bounds on the search for a process of a cgroup.
const maxCgroupsAsked = 16

// process returns a process of a cgroup or of a descendant.
func (n *namer) process(path string) (int, bool) {
	queue := []string{path}
	for i := 0; i < len(queue) && i < maxCgroupsAsked; i++ {
		pids, err := n.host.Members(queue[i])
		if err == nil && len(pids) > 0 && pids[0] > 0 {
			return pids[0], true
		}
		if children, err := n.host.Children(cgroup.CPU, queue[i]); err == nil {
			queue = append(queue, children...)
		}
	}
	return 0, false
}
