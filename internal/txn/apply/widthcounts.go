package apply

import (
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/internal/txn/change"
	"github.com/unthrottle/unthrottle/internal/widthcap"
)

// CountWidths fills in what the scheduler counts of each transaction that caps its target's width.
func CountWidths(env Env, inForce []txn.InForce) {
	for i := range inForce {
		for _, c := range inForce[i].Changes {
			if c.Kind == change.KindWidth && c.Path == inForce[i].Target {
				inForce[i].Narrow = world{env}.narrow(c)
			}
		}
	}
}

// narrow is a cap that a transaction holds, and its counts. A cap that cannot be read has no figures.
func (w world) narrow(of change.Change) *txn.Narrow {
	want, err := widthcap.Parse(of.To)
	if err != nil {
		return nil
	}
	n := &txn.Narrow{CapCPUs: want.CPUs, MaxCreditSeconds: want.Credit.Seconds()}
	if w.Width == nil {
		return n
	}
	id, err := w.FS.ID(cgroup.CPU, of.Path)
	if err != nil {
		return n
	}
	counts, ok, err := w.Width.Counts(id)
	if err != nil {
		return n
	}
	n.InForce = &ok
	if ok {
		n.Widest, n.CPUsNow, n.SlicesCut = &counts.Widest, &counts.Now, &counts.Cut
		n.Faults = counts.Faults
		n.CreditSeconds, n.AtCapSeconds, n.WaitedSeconds = new(counts.Credit.Seconds()), new(counts.AtCap.Seconds()),
			new(counts.Waited.Seconds())
	}
	return n
}
