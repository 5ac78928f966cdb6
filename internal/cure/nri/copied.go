package nri

import (
	"strconv"

	"github.com/containerd/nri/pkg/api"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
)

// copied is the runtime's copy of a container's settings, as far as the runtime told and we changed it since. nil and ""
// are not known.
type copied struct {
	quota      *int64
	period     *uint64
	cpus, mems string
	// resizes counts the updates by others.
	resizes uint64
}

// take takes in resources that the runtime has now.
func (c *copied) take(r *api.LinuxResources) {
	cpu := r.GetCpu()
	if q := cpu.GetQuota(); q != nil {
		c.quota = new(q.GetValue())
	}
	if p := cpu.GetPeriod(); p != nil {
		c.period = new(p.GetValue())
	}
	if list := cpu.GetCpus(); list != "" {
		c.cpus = list
	}
	if list := cpu.GetMems(); list != "" {
		c.mems = list
	}
}

// value is the copy in the words of a file; false where it is not known.
func (c copied) value(file string) (string, bool) {
	quota := "max"
	if c.quota != nil && *c.quota > 0 {
		quota = strconv.FormatInt(*c.quota, 10)
	}
	v1, v2 := cgroup.LimitFiles(cgroup.V1), cgroup.LimitFiles(cgroup.V2)
	switch file {
	case v1[0]:
		if quota == "max" {
			quota = "-1"
		}
		return quota, c.quota != nil
	case v1[1]:
		if c.period == nil {
			return "", false
		}
		return strconv.FormatUint(*c.period, 10), true
	case v2[0]:
		if c.quota == nil || c.period == nil {
			return "", false
		}
		return quota + " " + strconv.FormatUint(*c.period, 10), true
	case cgroup.FileCPUs:
		return c.cpus, c.cpus != ""
	case cgroup.FileMems:
		return c.mems, c.mems != ""
	}
	return "", false
}

// copyOf returns the runtime's copy of a container's settings.
func (p *Plugin) copyOf(id string) copied {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.known[id].copied
}

// took notes that the runtime's copy has what an update of ours changed.
func (p *Plugin) took(id string, u *api.ContainerUpdate) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if k, ok := p.known[id]; ok {
		k.copied.take(u.GetLinux().GetResources())
		p.known[id] = k
	}
}
