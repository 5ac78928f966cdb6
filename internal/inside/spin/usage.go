package spin

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// maxProcesses bounds how many processes are read: what runs beside us decides on their number.
const maxProcesses = 512

// inSight are the processes that /proc shows here and that are in our cgroup or below it; always this one.
func inSight(proc string) []int {
	own := os.Getpid()
	all := []int{own}
	path, ok := cpuCgroup(proc, "self")
	if !ok {
		return all
	}
	names, err := filepath.Glob(filepath.Join(proc, "[0-9]*"))
	if err != nil {
		return all
	}
	for _, name := range names {
		pid, err := strconv.Atoi(filepath.Base(name))
		if err != nil || pid == own {
			continue
		}
		if of, ok := cpuCgroup(proc, filepath.Base(name)); ok && below(of, path) {
			if all = append(all, pid); len(all) == maxProcesses {
				break
			}
		}
	}
	return all
}

func below(path, top string) bool {
	return path == top || strings.HasPrefix(path, strings.TrimSuffix(top, "/")+"/")
}

// cpuCgroup is the path of a process in the hierarchy of the cpu controller, or in that of v2.
func cpuCgroup(proc, pid string) (string, bool) {
	text, err := os.ReadFile(filepath.Join(proc, pid, "cgroup"))
	if err != nil {
		return "", false
	}
	unified, found := "", false
	for line := range strings.Lines(string(text)) {
		fields := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(fields) != 3 {
			continue
		}
		for _, controller := range strings.Split(fields[1], ",") {
			switch controller {
			case "cpu":
				return fields[2], true
			case "":
				unified, found = fields[2], true
			}
		}
	}
	return unified, found
}

// account is the CPU time that processes used since each was first seen. Threads on all CPUs read it.
type account struct{ of atomic.Pointer[[]*process] }

type process struct {
	pid   int
	first time.Duration
	last  atomic.Int64 // of a process that has ended, too
}

// see adds the processes that are new.
func (a *account) see(pids []int) {
	var processes []*process
	if old := a.of.Load(); old != nil {
		processes = *old
	}
	for _, pid := range pids {
		if len(processes) == maxProcesses || slices.ContainsFunc(processes, func(p *process) bool { return p.pid == pid }) {
			continue
		}
		if used, ok := usage(pid); ok {
			p := &process{pid: pid, first: used}
			p.last.Store(int64(used))
			processes = append(slices.Clone(processes), p)
		}
	}
	a.of.Store(&processes)
}

func (a *account) used() (sum time.Duration) {
	for _, p := range *a.of.Load() {
		if used, ok := usage(p.pid); ok {
			p.last.Store(int64(used))
		}
		sum += time.Duration(p.last.Load()) - p.first
	}
	return sum
}

// busiest is the process that used most beside one, as counted last; 0: none is in sight.
func (a *account) busiest(beside int) (pid int) {
	most := time.Duration(0)
	for _, p := range *a.of.Load() {
		if used := time.Duration(p.last.Load()) - p.first; p.pid != beside && (pid == 0 || used > most) {
			pid, most = p.pid, used
		}
	}
	return pid
}

// usage is the CPU time of a process, by the clock that any user may read (clock_getcpuclockid(3)).
func usage(pid int) (time.Duration, bool) {
	var ts unix.Timespec
	const scheduler = 2 // CPUCLOCK_SCHED
	err := unix.ClockGettime(int32(^pid<<3|scheduler), &ts)
	return time.Duration(ts.Nano()), err == nil
}

// ownUsage is the CPU time of this process.
func ownUsage() time.Duration {
	used, _ := usage(os.Getpid()) // it has such a clock
	return used
}
