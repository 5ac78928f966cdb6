package nri

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/containerd/nri/pkg/api"

	"github.com/unthrottle/unthrottle/internal/container/names"
	"github.com/unthrottle/unthrottle/internal/text"
)

// Bounds of what is kept of what the runtime says.
const (
	maxLabels     = 64
	maxLabelKey   = 317 // a prefix of 253 characters, "/", and 63 more
	maxLabelValue = 256
	// maxAnnotations is a bit more than is read of them, so that the reader sees that there are too many.
	maxAnnotations = 32
)

// known is what is kept of a container.
type known struct {
	names       names.Names
	labels      map[string]string
	annotations map[string]string
	copied      copied
}

// handlers are what the runtime calls. Its methods are the subscription: the library finds them by name.
type handlers struct {
	plugin  *Plugin
	session *session
}

// Configure is called once for each session.
func (h *handlers) Configure(_ context.Context, _, runtime, version string) (api.EventMask, error) {
	select {
	case <-h.session.over:
		return 0, errors.New("too late")
	default:
	}
	h.plugin.o.Log.Info("NRI session", "runtime", text.Sanitize(runtime, text.MaxName), "version", text.Sanitize(version, text.MaxName))
	return 0, nil // all that the handlers below are for
}

// Synchronize is called with all containers when a session begins.
func (h *handlers) Synchronize(_ context.Context, pods []*api.PodSandbox, containers []*api.Container) ([]*api.ContainerUpdate, error) {
	of := make(map[string]*api.PodSandbox, len(pods))
	for _, pod := range pods {
		of[pod.GetId()] = pod
	}
	all := make(map[string]known, min(len(containers), names.MaxContainers))
	for _, c := range containers {
		if len(all) == names.MaxContainers {
			break
		}
		if names.IsID(c.GetId()) {
			all[c.GetId()] = h.plugin.describe(of[c.GetPodSandboxId()], c)
		}
	}
	h.change(func(p *Plugin) {
		p.known, p.session, p.why, p.figures.Live = all, h.session, nil, true
		p.figures.Sessions++
	})
	return nil, nil
}

// StartContainer is called before a container's program runs.
func (h *handlers) StartContainer(_ context.Context, pod *api.PodSandbox, c *api.Container) error {
	if !names.IsID(c.GetId()) {
		return nil
	}
	k := h.plugin.describe(pod, c)
	h.change(func(p *Plugin) {
		if _, have := p.known[c.GetId()]; have || len(p.known) < names.MaxContainers {
			p.known[c.GetId()] = k
		}
	})
	return nil
}

// PostUpdateContainer is called after the kubelet, or whom else the runtime serves, updated a container. Our own updates
// do not come here.
func (h *handlers) PostUpdateContainer(_ context.Context, _ *api.PodSandbox, c *api.Container) error {
	h.plugin.o.Log.Info("the runtime resized a container", "container", text.Sanitize(c.GetName(), text.MaxName), "id",
		text.Sanitize(c.GetId(), 64))
	h.change(func(p *Plugin) {
		p.figures.Resizes++
		if k, ok := p.known[c.GetId()]; ok {
			k.copied.take(c.GetLinux().GetResources())
			k.copied.resizes++
			p.known[c.GetId()] = k
		}
	})
	return nil
}

// RemoveContainer is called when a container is no more.
func (h *handlers) RemoveContainer(_ context.Context, _ *api.PodSandbox, c *api.Container) error {
	h.change(func(p *Plugin) { delete(p.known, c.GetId()) })
	return nil
}

// change changes what the plugin knows, if the session is still its own, and tells so.
func (h *handlers) change(by func(p *Plugin)) {
	p := h.plugin
	p.mu.Lock()
	select {
	case <-h.session.over:
		p.mu.Unlock()
		return
	default:
	}
	by(p)
	p.generation++
	changed := p.changed
	p.mu.Unlock()
	if changed != nil {
		changed()
	}
}

// describe takes what is kept, made safe. The pod may be unknown.
func (p *Plugin) describe(pod *api.PodSandbox, c *api.Container) known {
	n := names.FromLabels(c.GetAnnotations())
	n.CRI, n.Runtime = true, ""
	for to, name := range map[*string]string{&n.Namespace: pod.GetNamespace(), &n.Pod: pod.GetName(), &n.PodContainer: c.GetName()} {
		if names.IsDNS(name) {
			*to = name
		}
	}
	n.TemplateHash = names.TemplateHash(pod.GetLabels())
	k := known{names: n, annotations: p.annotations(pod)}
	k.copied.take(c.GetLinux().GetResources())
	for key, value := range pod.GetLabels() {
		if len(k.labels) == maxLabels {
			break
		}
		if len(key) <= maxLabelKey && len(value) <= maxLabelValue {
			if k.labels == nil {
				k.labels = map[string]string{}
			}
			k.labels[key] = value
		}
	}
	return k
}

// annotations keeps those of a pod that are for us, as they are. A value that is too long is cut where it is still too long
// for its reader.
func (p *Plugin) annotations(pod *api.PodSandbox) map[string]string {
	if p.o.AnnotationPrefix == "" {
		return nil
	}
	all := pod.GetAnnotations()
	var ours map[string]string
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if !strings.HasPrefix(key, p.o.AnnotationPrefix) || len(key) > maxLabelKey {
			continue
		}
		if len(ours) == maxAnnotations {
			break
		}
		if ours == nil {
			ours = map[string]string{}
		}
		value := all[key]
		ours[key] = value[:min(len(value), 2*maxLabelValue)]
	}
	return ours
}
