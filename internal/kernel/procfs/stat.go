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

// userHZ is the unit of times in /proc, 1/100 s on every architecture that Go knows (USER_HZ,
// include/uapi/asm-generic/param.h).
const userHZ = 100

// maxText bounds the read: the lines of the CPUs come first.
const maxText = 4 << 20

// Times are the times of a CPU, or of all together, since boot. Only the difference of two has a meaning: 300 years of
// CPU time exceed a Duration and wrap.
type Times struct {
	All   time.Duration
	Idle  time.Duration // including waiting for I/O
	Steal time.Duration // taken by a hypervisor
}

// Busy returns all but Idle. It includes stolen time, for which a task wanted the CPU.
func (t Times) Busy() time.Duration { return t.All - t.Idle }

// Used returns the time for which tasks of this machine ran: all but Idle and Steal.
func (t Times) Used() time.Duration { return t.All - t.Idle - t.Steal }

// Since returns the difference from an earlier reading.
func (t Times) Since(earlier Times) Times {
	return Times{All: t.All - earlier.All, Idle: t.Idle - earlier.Idle, Steal: t.Steal - earlier.Steal}
}

// Stat is one reading of /proc/stat. The kernel counts times in ticks of 1/100 s, at the tick or exactly, depending on
// its build (CONFIG_TICK_CPU_ACCOUNTING, CONFIG_VIRT_CPU_ACCOUNTING_GEN). A CPU that goes offline loses its line, but
// the sum of all keeps its time (show_stat, fs/proc/stat.c). The time spent waiting for I/O may decrease
// (Documentation/filesystems/proc.rst).
type Stat struct {
	Total Times         // of all CPUs together, including those now offline
	CPUs  map[int]Times // of each online CPU
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
	return parseStat(string(text))
}

// parseStat reads the text of /proc/stat. Its errors name the line that is not a CPU's.
func parseStat(text string) (Stat, error) {
	var s Stat
	first := true
	for line := range strings.Lines(text) {
		name, times, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		number, ok := strings.CutPrefix(name, "cpu")
		if !ok {
			break // the CPUs come first
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
			return Stat{}, fmt.Errorf("/proc/stat: %.20q is not a CPU", name)
		}
		s.CPUs[cpu] = t
	}
	if len(s.CPUs) == 0 {
		return Stat{}, errors.New("/proc/stat: it has no CPUs")
	}
	return s, nil
}

// parseTimes reads user, nice, system, idle, iowait, irq, softirq, steal. Guest times may follow; user and nice include
// them already.
func parseTimes(text string) (t Times, err error) {
	fields := strings.Fields(text)
	if len(fields) < 8 {
		return t, errors.New("fewer than 8 times")
	}
	for i, field := range fields[:8] {
		n, err := strconv.ParseUint(field, 10, 63)
		if err != nil {
			return Times{}, fmt.Errorf("%.40q is not a number of ticks", field)
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
