package bench

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// userHZ is the unit of times in /proc, 1/100 s on every architecture that this
// project builds for (USER_HZ, include/uapi/asm-generic/param.h).
const userHZ = 100

// busyTime reads from the text of /proc/stat how long all CPUs together were busy
// (user, nice, system, irq, softirq) or taken by a hypervisor (steal); guest
// time is in user already (proc_stat(5)).
func busyTime(stat string) (time.Duration, error) {
	line, _, _ := strings.Cut(stat, "\n")
	fields := strings.Fields(line)
	if len(fields) < 9 || fields[0] != "cpu" {
		return 0, errors.New("/proc/stat does not begin with the sum of all CPUs")
	}
	sum := time.Duration(0)
	for _, i := range []int{1, 2, 3, 6, 7, 8} {
		ticks, err := strconv.ParseUint(fields[i], 10, 50)
		if err != nil {
			return 0, fmt.Errorf("/proc/stat: %.40q is no time", fields[i])
		}
		sum += time.Duration(ticks) * time.Second / userHZ
	}
	return sum, nil
}

// hostBusy is busyTime of this host; false: not readable.
func hostBusy() (time.Duration, bool) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, false
	}
	busy, err := busyTime(string(text))
	return busy, err == nil
}

// switches counts the context switches of all threads of a process so far; the
// threads of a service do not come and go.
func switches(pid int) (uint64, bool) {
	dir := filepath.Join("/proc", strconv.Itoa(pid), "task")
	tasks, err := os.ReadDir(dir)
	if err != nil {
		return 0, false
	}
	sum := uint64(0)
	for _, task := range tasks {
		text, err := os.ReadFile(filepath.Join(dir, task.Name(), "status"))
		if err != nil {
			continue // it has ended
		}
		sum += switchesOf(text)
	}
	return sum, true
}

// switchesOf reads both lines of /proc/PID/task/TID/status on switches.
func switchesOf(status []byte) uint64 {
	sum := uint64(0)
	for line := range bytes.Lines(status) {
		name, value, _ := strings.Cut(string(line), ":")
		if name == "voluntary_ctxt_switches" || name == "nonvoluntary_ctxt_switches" {
			n, _ := strconv.ParseUint(strings.TrimSpace(value), 10, 64)
			sum += n
		}
	}
	return sum
}
