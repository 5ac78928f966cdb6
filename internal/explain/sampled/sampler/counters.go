package sampler

import (
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/explain/sampled"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
)

// counters are the open cpu.stat files of the levels with a quota, and what tells the CPU time of the target's cgroup.
type counters struct {
	stats  []int // by level; -1: not read
	usage  int   // cpuacct.usage; -1: none, cpu.stat has it
	alone  bool  // see group.alone: the cgroup's CPU time is not the target's
	buffer [4096]byte
}

// openCounters opens them. Levels without a quota count nothing.
func openCounters(g *group) *counters {
	c := &counters{usage: -1, alone: g.alone}
	if g.host == nil {
		return c
	}
	for i, l := range g.levels {
		fd := -1
		if i == 0 || l.Limit.Limited() {
			fd = openFile(g.host.Dir(cgroup.CPU, l.Path), cgroup.FileStat)
		}
		c.stats = append(c.stats, fd)
	}
	if v, ok := g.host.Version(cgroup.CPUAcct); ok && v == cgroup.V1 && !g.alone && g.at.CPUAcctPath == g.at.Path {
		c.usage = openFile(g.host.Dir(cgroup.CPUAcct, g.at.CPUAcctPath), cgroup.FileUsage)
	}
	return c
}

func openFile(dir, name string) int {
	if dir == "" {
		return -1
	}
	fd, err := unix.Open(filepath.Join(dir, name), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1
	}
	return fd
}

// read fills a sample. gone says that the target's cgroup was removed.
func (c *counters) read(s *sampled.Sample) (gone bool) {
	s.Counters, s.Used = make([]*sampled.Counters, len(c.stats)), nil
	for i, fd := range c.stats {
		if fd < 0 {
			continue
		}
		n, err := unix.Pread(fd, c.buffer[:], 0)
		if err != nil {
			gone = gone || i == 0 && err == unix.ENODEV
			continue
		}
		stat, err := cgroup.ParseCPUStat(c.buffer[:n])
		if err != nil {
			continue
		}
		if stat.Has(cgroup.LinePeriods | cgroup.LineThrottledPeriods | cgroup.LineThrottled) {
			s.Counters[i] = &sampled.Counters{Periods: stat.Periods, ThrottledPeriods: stat.ThrottledPeriods, Throttled: stat.Throttled}
		}
		if i == 0 && stat.Has(cgroup.LineUsage) && !c.alone {
			s.Used = new(stat.Usage)
		}
	}
	if c.usage >= 0 {
		if n, err := unix.Pread(c.usage, c.buffer[:], 0); err == nil {
			if used, err := cgroup.ParseUsage(c.buffer[:n]); err == nil {
				s.Used = &used
			}
		}
	}
	return gone
}

func (c *counters) close() {
	for _, fd := range append(c.stats, c.usage) {
		if fd >= 0 {
			_ = unix.Close(fd)
		}
	}
}

// ownCPU is the CPU time of this process so far.
func ownCPU() time.Duration {
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil { // the kernel refuses no process its own
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
