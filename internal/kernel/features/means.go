package features

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/irq"
	"github.com/unthrottle/unthrottle/topology"
)

// Means are the host's means for single settings of remedies.
type Means struct {
	// Idle says whether a cgroup has cpu.idle (since Linux 5.15).
	Idle Answer
	// NoInterrupts says why interrupts cannot be moved, and NoRealtime why threads
	// get no real-time policy. Both are "" where nothing speaks against it.
	NoInterrupts, NoRealtime string
	// ThreadsPerCore is the most hardware threads of an online core; 0: the kernel
	// does not tell the cores. NUMANodes counts the nodes; 0: not known.
	ThreadsPerCore, NUMANodes int
}

// readMeans reads them; sample is a cgroup below the root.
func readMeans(h *cgroup.Host, root fs.FS, sample string) Means {
	m := Means{
		Idle:         hasFile(h, sample, "cpu.idle", "cpu.idle"),
		NoInterrupts: noInterrupts(filepath.Join("/proc/irq", irq.Default)),
		NoRealtime:   noRealtime(root, h.Dir(cgroup.CPU, h.Top(cgroup.CPU))),
	}
	if sys, err := fs.Sub(root, "sys"); err == nil {
		if machine, err := topology.Read(sys); err == nil {
			m.ThreadsPerCore, m.NUMANodes = threadsPerCore(machine), len(machine.NUMANodes)
		}
	}
	return m
}

// noInterrupts asks the kernel whether the CPUs of later interrupts can be written:
// in containers /proc/irq is missing or read-only.
func noInterrupts(file string) string {
	if err := unix.Access(file, unix.R_OK|unix.W_OK); err != nil {
		return fmt.Sprintf("%s: %v: run as root, outside a container", file, err)
	}
	return ""
}

// noRealtime looks at the two settings that make the kernel or this program refuse a real-time policy. top is the folder of
// the cpu controller. Its cgroups have cpu.rt_runtime_us with CONFIG_RT_GROUP_SCHED on cgroup v1 only, and each new one
// has 0 in it. So the answer depends on no single cgroup that is there by chance.
func noRealtime(root fs.FS, top string) string {
	const all, group = "proc/sys/kernel/sched_rt_runtime_us", "cpu.rt_runtime_us"
	if us, ok := number(fs.ReadFile(root, all)); ok && us < 0 {
		return "/" + all + " is -1: a thread that never sleeps would stop its CPU; set it below sched_rt_period_us"
	}
	if _, ok := number(os.ReadFile(filepath.Join(top, group))); !ok {
		return ""
	}
	below, err := filepath.Glob(filepath.Join(top, "*", group))
	if err != nil {
		return ""
	}
	for _, file := range below {
		if us, ok := number(os.ReadFile(file)); ok && us != 0 {
			return ""
		}
	}
	return group + " is 0 in every cgroup, as in each new one (CONFIG_RT_GROUP_SCHED): write it first, from the root downwards"
}

// number is what a file holds; false: it was not read, or holds none.
func number(data []byte, err error) (int64, bool) {
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
	return n, err == nil
}

// threadsPerCore is the most online hardware threads of one core; 0: not known.
func threadsPerCore(m topology.Machine) int {
	threads, most := map[topology.ID]int{}, 0
	for _, c := range m.CPUs {
		if c.Online && c.Core != topology.Unknown {
			threads[c.Core]++
			most = max(most, threads[c.Core])
		}
	}
	return most
}
