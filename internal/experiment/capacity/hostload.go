package capacity

import (
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/unthrottle/unthrottle/internal/kernel/procfs"
)

// hostBusy is how long all CPUs together were busy, or taken by a hypervisor; false:
// not readable.
func hostBusy() (time.Duration, bool) {
	s, err := procfs.ReadStat(os.DirFS("/proc"))
	return s.Total.Busy(), err == nil
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
		sum += switchesOf(string(text))
	}
	return sum, true
}

// switchesOf adds both lines of /proc/PID/task/TID/status on switches.
func switchesOf(status string) uint64 {
	sum := uint64(0)
	for _, name := range []string{"voluntary_ctxt_switches", "nonvoluntary_ctxt_switches"} {
		value, _ := procfs.StatusField(status, name)
		n, _ := strconv.ParseUint(value, 10, 64)
		sum += n
	}
	return sum
}
