package remedy

import (
	"fmt"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/podresize"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/txn/change"
)

// raisePod raises the limit in the pod's spec. The kubelet then raises the container's cgroup, and the pod's by as
// much.
func (p *planner) raisePod(limit, to float64) error {
	pod, now, asked := cgroup.Parent(p.target.Group.Path), p.f.Pod.CPU, podresize.MilliOf(to)
	switch fixed := now.Fixed(); {
	case p.f.Pod.Unread != "":
		return p.refuse("its pod's spec cannot be read: "+p.f.Pod.Unread, "")
	case now.UID != p.target.PodUID || !p.isPod(pod):
		return p.refuse(fmt.Sprintf("%s is another pod by now, or its cgroup is not that of a pod", p.f.Pod.Name), "")
	case fixed != "":
		return p.refuse(fixed, "raise it in the workload's own spec")
	case now.Left() != "":
		return p.refuse(now.Left(), "raise minAllowed of the autoscaler, or set its updateMode to Off or Initial")
	case now.Pending != "" || now.Running:
		return p.refuse("another resize of its pod is under way", "try again when it is done")
	case !podresize.Near(now.Limit.CPUs(), limit):
		return p.refuse(fmt.Sprintf("its pod's spec has %s, and the kernel enforces %s: "+
			"another program wrote one of them",
			text.CPUs(now.Limit.CPUs()), text.CPUs(limit)), "")
	}
	for _, level := range p.levels()[1:] {
		if quota, limited := level.Limit.Bound(); limited && quota < to-epsilon && level.Path != pod {
			return p.refuse(fmt.Sprintf("the quota of %s at %s would still bind, and a resize does not raise it",
				text.CPUs(quota),
				text.Name(level.Path)), "", level.Path)
		}
	}
	if now.Guaranteed {
		p.warn("its pod is Guaranteed, so that its request is raised with the limit: " +
			"its node needs that much unreserved CPU")
	}
	p.plan.Changes = append(p.plan.Changes, change.Change{Kind: change.KindPodCPU, Op: change.OpSet, Path: pod,
		Unit: p.f.Pod.Name,
		File: podresize.Setting, From: now.Limit.String(), To: asked.String(),
		Why: fmt.Sprintf("limit from %s to %s, by the kubelet", text.CPUs(limit), text.CPUs(to))})
	return nil
}
