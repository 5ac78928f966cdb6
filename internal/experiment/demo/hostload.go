package demo

import (
	"os"
	"time"

	"github.com/unthrottle/unthrottle/internal/kernel/procfs"
)

// cpuTimes reads what the CPUs have done since boot; nil where that cannot be read.
func cpuTimes(procDir string) map[int]procfs.Times {
	s, err := procfs.ReadStat(os.DirFS(procDir))
	if err != nil {
		return nil
	}
	return s.CPUs
}

// spent is the CPU-seconds that all CPUs together were in use, and that a
// hypervisor kept back, between two looks; false where that is not known.
func spent(before, after map[int]procfs.Times) (used, stolen float64, ok bool) {
	if len(before) == 0 || len(before) != len(after) {
		return 0, 0, false
	}
	for cpu, now := range after {
		was, ok := before[cpu]
		d := now.Since(was)
		if !ok || d.Used() < 0 || d.Steal < 0 {
			return 0, 0, false // a CPU came or went
		}
		used += d.Used().Seconds()
		stolen += d.Steal.Seconds()
	}
	return used, stolen, true
}

// busyShares is each CPU's use between two looks that lie apart this long.
func busyShares(before, after map[int]procfs.Times, apart time.Duration) map[int]float64 {
	shares := map[int]float64{}
	for cpu, now := range after {
		if was, ok := before[cpu]; ok && apart > 0 {
			shares[cpu] = min(1, max(0, now.Since(was).Busy().Seconds()/apart.Seconds()))
		}
	}
	return shares
}
