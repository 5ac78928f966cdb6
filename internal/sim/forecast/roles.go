package forecast

import (
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/internal/see/recording"
)

// splitRoles gives each role of one name a pool of its own. In which order the threads of several roles together were
// woken tells nothing of any of them.
func (b *builder) splitRoles(f recording.Footer) {
	if b.runs == maxRuns {
		return // not every run was kept, so that the pools' distributions cannot be parted
	}
	found := b.scan.Finish(f)
	changed := map[*Pool]bool{}
	for _, t := range b.order {
		name := found.Pool(t.TID, t.pool.Name)
		if name == t.pool.Name {
			continue
		}
		p := b.pools.add(poolName{t.pool.process, name}, t.pool.comm)
		if p == nil {
			continue // there are too many
		}
		changed[t.pool], changed[p] = true, true
		b.joinPool(t, p)
	}
	for p := range changed {
		b.queueOf(p).forget()
		p.recorded = newTimes()
	}
	for _, t := range b.order {
		if !changed[t.pool] {
			continue
		}
		for _, r := range t.ended {
			t.pool.recorded.Delay.Add(time.Duration(r.delay))
			t.pool.recorded.Response.Add(time.Duration(r.response))
		}
	}
	b.pools.remove(func(p *Pool) bool {
		return changed[p] && !slices.ContainsFunc(b.order, func(t *thread) bool { return t.pool == p })
	})
}
