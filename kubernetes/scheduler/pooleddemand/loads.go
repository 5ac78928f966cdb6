package pooleddemand

import (
	"sync/atomic"
	"time"

	fwk "k8s.io/kube-scheduler/framework"

	"github.com/unthrottle/unthrottle/internal/demand/nodefit"
)

// slots are what is kept of nodes, by name.
type slots struct{ copied[*slot] }

// slot is what is kept of one node.
type slot struct {
	load atomic.Pointer[kept]
	last atomic.Pointer[judged]
}

// kept is a node's load as of a change of the node and of what it tells.
type kept struct {
	generation int64
	// number is that of what the node tells, 0: nothing. changes are those of the feed up to which it is known to be so.
	number  uint64
	changes uint64
	// until is when it must be made anew: what it was made of is too old then.
	until time.Time
	cpus  float64
	load  nodefit.Load
}

// judged is what a node has with the pod of a cycle, so that Score need not work out again what Filter has.
type judged struct {
	pod  *podLoad
	load *kept
	with nodefit.With
}

// of is a node's, which is made if there is none.
func (s *slots) of(node string) *slot {
	found := s.get(node)
	if found == nil {
		s.change(func(all map[string]*slot) {
			if all[node] == nil {
				all[node] = &slot{}
			}
			found = all[node]
		})
	}
	return found
}

// with is what a node has with the pod of a cycle, and how many CPUs it has for pods.
func (p *Plugin) with(l *podLoad, node fwk.NodeInfo) (with nodefit.With, cpus float64) {
	of := p.slots.of(node.Node().Name)
	k := p.loadOf(of, node, l.now)
	if last := of.last.Load(); last != nil && last.pod == l && last.load == k {
		return last.with, k.cpus
	}
	with = p.rule.With(k.cpus, &k.load, &l.Load)
	if p.rule.MaxRequestsRatio > 1 { // else Filter is skipped
		of.last.Store(&judged{pod: l, load: k, with: with})
	}
	return with, k.cpus
}

// loadOf is what runs on a node. It is made anew when the node or its pods change, when it tells something new or nothing any
// more, and when what it was made of may be too old. Pods that it does not tell of are as their service was then.
func (p *Plugin) loadOf(of *slot, node fwk.NodeInfo, now time.Time) *kept {
	before, generation, changes := of.load.Load(), node.GetGeneration(), p.feed.changes.Load()
	current := before != nil && before.generation == generation && !now.After(before.until)
	if current && before.changes == changes {
		return before
	}
	n := p.feed.of(node.Node().Name, now, p.age)
	k := &kept{generation: generation, changes: changes, until: now.Add(p.age)}
	if n != nil {
		k.number, k.until = n.number, n.until.Add(p.age)
	}
	if current && before.number == k.number {
		k.until, k.cpus, k.load = before.until, before.cpus, before.load
	} else {
		k.cpus = cpusOf(node.Node())
		for _, on := range node.GetPods() {
			// What the scheduler has worked out when the pod came to the node.
			requested := float64(on.CalculateResource().Resource.GetMilliCPU()) / 1000
			p.add(&k.load, on.GetPod(), requested, n, now)
		}
	}
	of.load.Store(k)
	return k
}
