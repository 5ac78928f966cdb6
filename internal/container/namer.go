package container

import (
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/text"
)

// describe makes the Container from the path alone.
func (i identity) describe(g cgroup.Group) Container {
	c := Container{Group: g, ID: i.id, Runtime: i.runtime, PodUID: i.podUID, Unit: i.unit, Name: i.name}
	c.setName("")
	return c
}

// setName sets the best name: Kubernetes' names, then known (from the runtime), then the path's.
func (c *Container) setName(known string) {
	switch {
	case c.Pod != "" && c.ContainerName != "":
		known = c.Pod + "/" + c.ContainerName
	case c.Pod != "" && c.ID != "":
		known = c.Pod + "/" + shortID(c.ID)
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
	if isID(id) {
		return id[:12]
	}
	return id
}

// namer looks names up; it reads the log folders at most once, and only if a container needs them.
type namer struct {
	o    Options
	pods *podNames
}

// name completes a container's names and reports whether all are known, so that no later look-up is necessary.
func (n *namer) name(c *Container) bool {
	if c.Runtime == Systemd || c.ID == "" {
		return true
	}
	runtimeName := ""
	if c.Runtime == Docker {
		if config, ok := readDocker(n.o.DockerDir, c.ID); ok {
			runtimeName = trimSlash(config.Name)
			c.fromLabels(config.Config.Labels)
		}
	}
	if c.PodUID != "" && (c.Pod == "" || c.ContainerName == "") {
		if n.pods == nil {
			names := readPodNames(n.o.VarLog)
			n.pods = &names
		}
		if pod, ok := n.pods.pods[c.PodUID]; ok {
			c.Namespace, c.Pod = pod.namespace, pod.pod
		}
		if name, ok := n.pods.containers[c.ID]; ok {
			c.ContainerName = name
		}
	}
	c.setName(runtimeName)
	switch {
	case c.PodUID != "":
		return c.Pod != "" && c.ContainerName != ""
	case c.Runtime == Docker:
		return runtimeName != ""
	}
	return true
}

// fromLabels takes the names that cri-dockerd leaves in docker's labels.
func (c *Container) fromLabels(labels map[string]string) {
	for label, to := range map[string]*string{
		"io.kubernetes.pod.name":       &c.Pod,
		"io.kubernetes.pod.namespace":  &c.Namespace,
		"io.kubernetes.container.name": &c.ContainerName,
	} {
		if value := labels[label]; isDNS(value) {
			*to = value
		}
	}
}

func trimSlash(name string) string {
	if len(name) > 1 && name[0] == '/' {
		return name[1:]
	}
	return name
}
