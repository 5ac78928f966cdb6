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
		name := found.Pool(t.tid, t.pool.Name)
		if name == t.pool.Name {
			continue
		}
		p := b.roleOf(t.pool, name)
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
	b.measured = slices.DeleteFunc(b.measured, func(p *Pool) bool {
		return changed[p] && !slices.ContainsFunc(b.order, func(t *thread) bool { return t.pool == p })
	})
}

// roleOf returns the pool of a role of the same process; nil: there are too many pools.
func (b *builder) roleOf(p *Pool, name string) *Pool {
	key := poolName{p.process, name}
	if role := b.byName[key]; role != nil {
		return role
	}
	if len(b.measured) == maxPools {
		return nil
	}
	role := &Pool{Name: name, process: p.process, comm: p.comm, recorded: newTimes()}
	b.byName[key] = role
	b.measured = append(b.measured, role)
	return role
}
