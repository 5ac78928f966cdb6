package gather

import (
	"io/fs"
	"strconv"

	"github.com/unthrottle/unthrottle/internal/cure/hoststate"
	"github.com/unthrottle/unthrottle/internal/kernel/irq"
	"github.com/unthrottle/unthrottle/topology"
)

// Interrupts looks at a host's interrupts; root stands for "/".
func Interrupts(from irq.FS, root fs.FS) (hoststate.Interrupts, error) {
	interrupts, err := from.Interrupts()
	if err != nil {
		return hoststate.Interrupts{}, err
	}
	text, err := from.Read(irq.Default)
	if err != nil {
		return hoststate.Interrupts{}, err
	}
	set, err := topology.ParseList(text)
	return hoststate.Interrupts{All: interrupts, Default: set, Balanced: running(root, "irqbalance")}, err
}

// running tells whether a process of this name can be seen.
func running(root fs.FS, name string) bool {
	entries, err := fs.ReadDir(root, "proc")
	if err != nil {
		return false
	}
	for _, e := range entries {
		if pid, err := strconv.ParseUint(e.Name(), 10, 31); err == nil && comm(root, int(pid)) == name {
			return true
		}
	}
	return false
}
