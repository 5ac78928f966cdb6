package host

import (
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"
)

// userHZ is the unit of times in /proc, 1/100 s on every architecture that Go knows
// (USER_HZ, include/uapi/asm-generic/param.h).
const userHZ = 100

// Times are what all CPUs together have done since boot. What means something is the
// difference of two: 300 years of CPU time are more than a Duration holds, and wrap.
type Times struct {
	All   time.Duration
	Idle  time.Duration // waiting for I/O too
	Steal time.Duration // kept back by a hypervisor
}

// Busy is all but Idle: what was stolen too, for whoever wanted the CPU.
func (t Times) Busy() time.Duration { return t.All - t.Idle }

// ReadTimes reads them from proc/stat below a root.
func ReadTimes(root fs.FS) (Times, error) {
	text, err := fs.ReadFile(root, "proc/stat")
	if err != nil {
		return Times{}, err
	}
	return ParseTimes(string(text))
}

// ParseTimes reads the first line of /proc/stat (proc_stat(5)): user, nice, system,
// idle, iowait, irq, softirq, steal; guest times are in user already.
func ParseTimes(stat string) (t Times, err error) {
	line, _, _ := strings.Cut(stat, "\n")
	fields := strings.Fields(line)
	if len(fields) < 9 || fields[0] != "cpu" {
		return t, fmt.Errorf("/proc/stat: %.40q is no line of all CPUs", line)
	}
	for i, text := range fields[1:9] {
		n, err := strconv.ParseUint(text, 10, 63)
		if err != nil {
			return Times{}, fmt.Errorf("/proc/stat: %.40q is no number of ticks", text)
		}
		d := time.Duration(n) * (time.Second / userHZ)
		t.All += d
		switch i {
		case 3, 4:
			t.Idle += d
		case 7:
			t.Steal += d
		}
	}
	return t, nil
}
