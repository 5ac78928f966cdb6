package nri

import (
	"context"
	"time"

	"github.com/containerd/nri/pkg/api"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/text"
)

// Resized makes room for a limit that the runtime is about to write to the cgroups that at names (period 0: it stays), and returns the
// values that it wrote: the kernel refuses a quota below a burst. It writes directly, since the runtime waits for it.
type Resized func(ctx context.Context, at func(path string) bool, want cgroup.Limit) []cgroup.Value

// resizeTime is for how long a resize may wait for room: the runtime drops plugins that take longer than two seconds.
const resizeTime = time.Second

// BeforeResize has f called before each update of a container's quota by others. Call it before Run.
func (p *Plugin) BeforeResize(f Resized) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.resized = f
}

// UpdateContainer is called before the kubelet, or whom else the runtime serves, updates a container. It never refuses.
func (h *handlers) UpdateContainer(ctx context.Context, _ *api.PodSandbox, c *api.Container,
	r *api.LinuxResources) ([]*api.ContainerUpdate, error) {
	h.plugin.mu.Lock()
	resized := h.plugin.resized
	h.plugin.mu.Unlock()
	id, quota := c.GetId(), r.GetCpu().GetQuota().GetValue()
	if resized == nil || quota <= 0 || idIn(id) != id {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, resizeTime)
	defer cancel()
	want := cgroup.Limit{Quota: time.Duration(quota) * time.Microsecond,
		Period: time.Duration(r.GetCpu().GetPeriod().GetValue()) * time.Microsecond}
	lowered := resized(ctx, func(path string) bool { return idIn(cgroup.Base(path)) == id }, want)
	if len(lowered) == 0 {
		return nil, nil
	}
	h.plugin.o.Log.Info("a burst was lowered for a resize", "container", text.Sanitize(c.GetName(), text.MaxName), "id",
		id, "quota_us", quota)
	// On v2 the runtime's copy has the burst and would write it again.
	u := &api.ContainerUpdate{}
	u.SetContainerId(id)
	for _, v := range lowered {
		if v.File != cgroup.LimitFiles(cgroup.V2)[1] {
			return nil, nil
		}
		u.AddLinuxUnified(v.File, v.Value)
	}
	return []*api.ContainerUpdate{u}, nil
}
