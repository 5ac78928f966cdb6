package gather

import (
	"io/fs"

	"github.com/unthrottle/unthrottle/internal/kernel/procfs"
)

// cpuTimes reads /proc/stat below a root; nil where it cannot be read.
func cpuTimes(root fs.FS) map[int]procfs.Times {
	proc, err := fs.Sub(root, "proc")
	if err != nil {
		return nil
	}
	s, err := procfs.ReadStat(proc)
	if err != nil {
		return nil
	}
	return s.CPUs
}

// loads is the busy share of each CPU between two readings; nil where none can
// be told: a clock of ticks that did not go on, or went back.
func loads(before, after map[int]procfs.Times) map[int]float64 {
	var all map[int]float64
	for id, now := range after {
		was, ok := before[id]
		d := now.Since(was)
		if busy := d.Busy(); !ok || d.All <= 0 || busy < 0 || busy > d.All {
			continue
		}
		if all == nil {
			all = map[int]float64{}
		}
		all[id] = d.Busy().Seconds() / d.All.Seconds()
	}
	return all
}
