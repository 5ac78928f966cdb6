package gather

import (
	"io/fs"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
)

// hidden finds out whether processes are hidden from us; only v1 hides them.
func (g *gatherer) hidden() error {
	if g.facts.CPUVersion != cgroup.V1 && g.facts.CPUSetVersion != cgroup.V1 {
		return nil
	}
	proc, err := fs.Sub(g.o.Root, "proc")
	if err != nil {
		return err
	}
	outside, err := cgroup.OutsideHostPIDs(proc)
	g.facts.HiddenProcesses, g.facts.HiddenUnknown = outside, err != nil
	return nil
}
