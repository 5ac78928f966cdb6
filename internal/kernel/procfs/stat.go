package procfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"github.com/unthrottle/unthrottle/topology"
)

// userHZ is the unit of times in /proc, 1/100 s on every architecture that Go knows
// (USER_HZ, include/uapi/asm-generic/param.h).
const userHZ = 100

// maxText bounds what is read: the lines of the CPUs come first.
const maxText = 4 << 20

// Times are what a CPU, or all together, has done since boot. What means something is
// the difference of two: 300 years of CPU time are more than a Duration holds, and wrap.
type Times struct {
	All   time.Duration
	Idle  time.Duration // waiting for I/O too
	Steal time.Duration // kept back by a hypervisor
}

// Busy is all but Idle: what was stolen too, for whoever wanted the CPU.
func (t Times) Busy() time.Duration { return t.All - t.Idle }

// Used is what something on this machine ran for: all but Idle and Steal.
func (t Times) Used() time.Duration { return t.All - t.Idle - t.Steal }

// Since is what was done after an earlier look.
func (t Times) Since(earlier Times) Times {
	return Times{All: t.All - earlier.All, Idle: t.Idle - earlier.Idle, Steal: t.Steal - earlier.Steal}
}

// Stat is one look at /proc/stat. Times are counted in ticks of 1/100 s, at the tick or exactly as the kernel is built
// (CONFIG_TICK_CPU_ACCOUNTING, CONFIG_VIRT_CPU_ACCOUNTING_GEN). A CPU that goes offline loses its line, and the sum of
// all keeps what it had (show_stat, fs/proc/stat.c). The time spent waiting for I/O may go down
// (Documentation/filesystems/proc.rst).
type Stat struct {
	Total Times         // of all CPUs together, those that are offline now too
	CPUs  map[int]Times // of each that is online
}

// ReadStat reads the file stat of a proc file system.
func ReadStat(proc fs.FS) (Stat, error) {
	file, err := proc.Open("stat")
	if err != nil {
		return Stat{}, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxText))
	if err != nil {
		return Stat{}, err
	}
	return ParseStat(string(text))
}

// ParseStat reads the text of /proc/stat. Errors say which line is none of a CPU.
func ParseStat(text string) (Stat, error) {
	var s Stat
	first := true
	for line := range strings.Lines(text) {
		name, times, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		number, ok := strings.CutPrefix(name, "cpu")
		if !ok {
			break // the CPUs stand first
		}
		t, err := parseTimes(times)
		if err != nil {
			return Stat{}, fmt.Errorf("/proc/stat: %.20q: %w", name, err)
		}
		if first != (number == "") {
			return Stat{}, fmt.Errorf("/proc/stat: %.20q: the line of all CPUs comes first, once", name)
		}
		if first {
			s, first = Stat{Total: t, CPUs: map[int]Times{}}, false
			continue
		}
		cpu, err := strconv.Atoi(number)
		if err != nil || cpu < 0 || cpu >= topology.MaxCPUs {
			return Stat{}, fmt.Errorf("/proc/stat: %.20q is no CPU", name)
		}
		s.CPUs[cpu] = t
	}
	if len(s.CPUs) == 0 {
		return Stat{}, errors.New("/proc/stat: it has no CPUs")
	}
	return s, nil
}

// parseTimes reads user, nice, system, idle, iowait, irq, softirq, steal; guest times,
// which may follow, are in user and nice already.
func parseTimes(text string) (t Times, err error) {
	fields := strings.Fields(text)
	if len(fields) < 8 {
		return t, errors.New("fewer than 8 times")
	}
	for i, field := range fields[:8] {
		n, err := strconv.ParseUint(field, 10, 63)
		if err != nil {
			return Times{}, fmt.Errorf("%.40q is no number of ticks", field)
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
