package features

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"github.com/unthrottle/unthrottle/internal/text"
)

// Kernel describes the running kernel's CPU bandwidth control.
type Kernel struct {
	// Release is uname's release, for display only; no decision uses it.
	Release string `json:"release"`
	// HZ is the scheduler tick's rate in 1/s; nil if the build configuration is unreadable. The kernel notices an
	// overrun of the quota at a tick, so one period's overrun is up to 1/HZ per CPU.
	HZ *int `json:"hz"`
	// SliceMicroseconds is what a CPU takes from the pool at a time (sysctl kernel.sched_cfs_bandwidth_slice_us); nil
	// if unreadable.
	SliceMicroseconds *int64 `json:"-"`
	// DefaultPeriodMicroseconds is the period of a new cgroup; nil without a readable cgroup that has a cpu controller.
	DefaultPeriodMicroseconds *int64 `json:"-"`
	// Burst reports that later periods may spend unused quota (5.14).
	Burst Answer `json:"burst"`
	// StatLocal reports that cpu.stat.local shows the cost of ancestors' quotas (6.6).
	StatLocal Answer `json:"cpu_stat_local"`
	// TaskThrottle reports that threads are parked on their return to user mode instead of in place (6.18).
	TaskThrottle Answer `json:"task_throttle"`
	// SliceExpiry reports that unused slices are lost at each period's end (4.18 to 5.3 and kernels with
	// that backport).
	SliceExpiry Answer `json:"slice_expiry"`
	// BTF reports that the kernel has its type information.
	BTF Answer `json:"btf"`
	// SchedExt reports that the kernel can run BPF schedulers.
	SchedExt Answer `json:"sched_ext"`
	// SchedExtScheduler names the loaded BPF scheduler, "" for none. A loaded one may ignore CPU limits altogether.
	SchedExtScheduler string `json:"sched_ext_scheduler"`
	// Autogroup is sched_autogroup_enabled; it groups only tasks of the root cgroup.
	Autogroup Answer `json:"autogroup"`
	// Unusual are the scheduler's settings that differ from the kernel's defaults; Gather reads them.
	Unusual []Tunable `json:"unusual_tunables"`
	// TunablesRead is Yes where the scheduler's times were read, and Unknown where Unusual may lack some.
	TunablesRead Answer `json:"tunables_read"`
}

// MarshalJSON has the lengths in seconds.
func (k Kernel) MarshalJSON() ([]byte, error) {
	type plain Kernel
	seconds := func(us *int64) *float64 {
		if us == nil {
			return nil
		}
		s := float64(*us) / 1e6
		return &s
	}
	return json.Marshal(struct {
		plain
		Slice         *float64 `json:"slice_seconds"`
		DefaultPeriod *float64 `json:"default_period_seconds"`
	}{plain(k), seconds(k.SliceMicroseconds), seconds(k.DefaultPeriodMicroseconds)})
}

// Answer is yes, no, or unknown; in JSON true, false or null.
type Answer string

// MarshalJSON implements json.Marshaler.
func (a Answer) MarshalJSON() ([]byte, error) {
	switch a {
	case Yes:
		return []byte("true"), nil
	case No:
		return []byte("false"), nil
	}
	return []byte("null"), nil
}

// The three answers.
const (
	Yes     Answer = "yes"
	No      Answer = "no"
	Unknown Answer = "unknown"
)

func answer(b bool) Answer {
	if b {
		return Yes
	}
	return No
}

// maxBTF bounds the read of the kernel's type information; 6.18 has about 6 MB.
const maxBTF = 64 << 20

// maxConfig bounds an unpacked kernel configuration; they are near 300 kB.
const maxConfig = 4 << 20

// ReadKernel reads the kernel's side from root, the file system of "/". An ordinary user's rights suffice. Unreadable
// values stay nil or Unknown. The caller passes burst and statLocal, because files in a cgroup decide them.
func ReadKernel(root fs.FS, burst, statLocal Answer) Kernel {
	k := ReadScheduler(root)
	k.Burst, k.StatLocal = burst, statLocal
	k.readBTF(root)
	return k
}

// ReadScheduler is ReadKernel without what only the kernel's type information tells, 6 MB to read: TaskThrottle,
// SliceExpiry and BTF stay Unknown, and so do Burst and StatLocal.
func ReadScheduler(root fs.FS) Kernel {
	k := Kernel{
		Release:      trimmed(root, "proc/sys/kernel/osrelease"),
		HZ:           readHZ(root),
		Burst:        Unknown,
		StatLocal:    Unknown,
		Autogroup:    Unknown,
		SchedExt:     Unknown,
		TaskThrottle: Unknown,
		SliceExpiry:  Unknown,
		BTF:          Unknown,
	}
	if v, err := strconv.ParseInt(trimmed(root, "proc/sys/kernel/sched_cfs_bandwidth_slice_us"), 10, 64); err == nil {
		k.SliceMicroseconds = &v
	}
	if v := trimmed(root, "proc/sys/kernel/sched_autogroup_enabled"); v != "" {
		k.Autogroup = answer(v != "0")
	}
	if _, err := fs.Stat(root, "sys/kernel"); err == nil {
		_, err := fs.Stat(root, "sys/kernel/sched_ext")
		k.SchedExt = answer(err == nil)
	}
	if trimmed(root, "sys/kernel/sched_ext/state") == "enabled" {
		k.SchedExtScheduler = trimmed(root, "sys/kernel/sched_ext/root/ops")
		if k.SchedExtScheduler == "" {
			k.SchedExtScheduler = "(unnamed)"
		}
	}
	return k
}

// readBTF looks for member names in the string section of the kernel's type information. Each name below exists in
// exactly one structure (struct cfs_rq or struct cfs_bandwidth of kernel/sched/sched.h). So its presence alone decides.
func (k *Kernel) readBTF(root fs.FS) {
	f, err := root.Open("sys/kernel/btf/vmlinux")
	if err != nil {
		k.BTF = No
		return
	}
	defer f.Close()
	taskThrottle, sliceExpiry := []byte("\x00throttled_limbo_list\x00"), []byte("\x00expires_seq\x00")
	var size int64
	var parked, expires bool
	overlap := max(len(taskThrottle), len(sliceExpiry)) - 1
	buf := make([]byte, 64<<10) // a block at a time: the whole is 6 MB
	for kept := 0; size < maxBTF; {
		n, err := f.Read(buf[kept:])
		size += int64(n)
		seen := buf[:kept+n]
		parked = parked || bytes.Contains(seen, taskThrottle)
		expires = expires || bytes.Contains(seen, sliceExpiry)
		kept = copy(buf, seen[max(0, len(seen)-overlap):])
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			k.BTF = Unknown
			return
		}
	}
	if size == 0 {
		k.BTF = Unknown
		return
	}
	k.BTF, k.TaskThrottle, k.SliceExpiry = Yes, answer(parked), answer(expires)
}

// readHZ reads CONFIG_HZ from the kernel's own copy of its configuration, or from the distribution's copy beside the
// image.
func readHZ(root fs.FS) *int {
	if f, err := root.Open("proc/config.gz"); err == nil {
		defer f.Close()
		if z, err := gzip.NewReader(f); err == nil {
			if hz := hzIn(z); hz != nil {
				return hz
			}
		}
	}
	release := trimmed(root, "proc/sys/kernel/osrelease")
	for _, name := range []string{"boot/config-" + release, "lib/modules/" + release + "/config"} {
		f, err := root.Open(name)
		if err != nil {
			continue
		}
		hz := hzIn(f)
		f.Close()
		if hz != nil {
			return hz
		}
	}
	return nil
}

func hzIn(r io.Reader) *int {
	lines := bufio.NewScanner(io.LimitReader(r, maxConfig))
	for lines.Scan() {
		value, ok := strings.CutPrefix(lines.Text(), "CONFIG_HZ=")
		if !ok {
			continue
		}
		if hz, err := strconv.Atoi(strings.TrimSpace(value)); err == nil && hz > 0 && hz <= 100000 {
			return &hz
		}
	}
	return nil
}

// maxLine bounds a one-line kernel file.
const maxLine = 4096

// trimmed returns the first line of a small file, or "" if it is unreadable.
func trimmed(root fs.FS, name string) string {
	f, err := root.Open(name)
	if err != nil {
		return ""
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxLine))
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(data), "\n")
	return strings.TrimSpace(line)
}

// Behaviour says in words how this kernel throttles, and what that means for the figures of the other commands.
func (k Kernel) Behaviour() []string {
	var says []string
	if k.HZ != nil {
		says = append(says, fmt.Sprintf("a thread past its quota is noticed at a tick: up to %s late per CPU and period",
			text.ExactDuration((time.Second/time.Duration(*k.HZ)).Round(time.Microsecond))))
	}
	switch k.TaskThrottle {
	case Yes:
		says = append(says, "threads are parked when they return to user mode (6.18 and later): a long system call "+
			"runs on and its CPU time is owed")
	case No:
		says = append(says, "threads are parked where they run, also inside a system call (before 6.18)")
	}
	switch k.SliceExpiry {
	case Yes:
		says = append(says, "slices expire at each period's end (a bug of Linux 4.18 to 5.3): throttled far below "+
			"the quota on hosts with many CPUs")
	case No:
		says = append(says, "unused slices survive the period's end")
	}
	switch k.StatLocal {
	case Yes:
		says = append(says, "cpu.stat.local shows what ancestors' quotas cost a container")
	case No:
		says = append(says, "no cpu.stat.local: stopped time has no lower bound, an ancestor's share can only be bounded from above")
	}
	if k.SchedExtScheduler != "" {
		says = append(says, "a sched_ext scheduler is loaded ("+k.SchedExtScheduler+"): it may ignore CPU limits and weights")
	}
	return says
}
