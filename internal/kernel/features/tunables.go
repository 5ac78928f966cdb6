package features

import (
	"fmt"
	"io/fs"
	"math/bits"
	"path"
	"slices"
	"strconv"
	"time"

	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/topology"
)

// Tunable is a setting of the host's scheduler that differs from the kernel's default.
type Tunable struct {
	// Name is the last part of its file's path.
	Name string `json:"name"`
	// Value and Usual are as the file has them: what is set, and what the kernel would set on this host.
	Value int64 `json:"value"`
	Usual int64 `json:"usual"`
	// Means is what the difference costs containers with a limit.
	Means string `json:"means"`
	// Unit is "ns" or "us"; "" for a number without one.
	Unit string `json:"unit"`
}

// String is the setting with its default and what the difference costs.
func (t Tunable) String() string {
	unit := map[string]time.Duration{"ns": time.Nanosecond, "us": time.Microsecond}[t.Unit]
	show := func(v int64) string {
		if unit == 0 || v < 0 {
			return strconv.FormatInt(v, 10)
		}
		return text.ExactDuration(time.Duration(v) * unit)
	}
	return fmt.Sprintf("%s is %s, usually %s: %s", t.Name, show(t.Value), show(t.Usual), t.Means)
}

// tunable is a file of the scheduler with its default.
type tunable struct {
	// files are where it is, by release: the first that can be read counts.
	files []string
	// usual are its defaults by release. With scaled they are multiplied for the host's CPUs (get_update_sysctl_factor in
	// kernel/sched/fair.c).
	usual         []int64
	scaled        bool
	unit          string
	higher, lower string
}

// The folders of the scheduler's tunables: since 5.13 most are in debugfs, which root alone can read.
const (
	schedSysctl = "proc/sys/kernel/sched_"
	schedDebug  = "sys/kernel/debug/sched/"
)

// scalingFiles say how times grow with the host's CPUs: 0 not at all, 1 with their logarithm, 2 with their number.
var scalingFiles = []string{schedDebug + "tunable_scaling", schedSysctl + "tunable_scaling"}

// tunables have the defaults of kernel/sched/fair.c and kernel/sched/rt.c, Linux 4.14 to 7.0. The base slice was 0.75 ms
// before 6.15; before 6.6 it was called min_granularity_ns.
var tunables = []tunable{
	{files: []string{schedSysctl + "cfs_bandwidth_slice_us"}, usual: []int64{5000}, unit: "us",
		higher: "a CPU takes more of a quota at once, so that other CPUs of the container stop earlier",
		lower:  "CPUs fetch quota more often, under one lock for each container"},
	{files: []string{schedDebug + "base_slice_ns", schedDebug + "min_granularity_ns", schedSysctl + "min_granularity_ns"},
		usual: []int64{700_000, 750_000}, scaled: true, unit: "ns",
		higher: "a thread that wakes waits longer behind threads that burn CPU",
		lower:  "threads that burn CPU are switched more often"},
	{files: []string{schedDebug + "latency_ns", schedSysctl + "latency_ns"}, usual: []int64{6_000_000}, scaled: true, unit: "ns",
		higher: "each thread of a full CPU runs longer before the next one",
		lower:  "threads that burn CPU are switched more often"},
	{files: []string{schedDebug + "wakeup_granularity_ns", schedSysctl + "wakeup_granularity_ns"},
		usual: []int64{1_000_000}, scaled: true, unit: "ns",
		higher: "a thread that wakes waits longer behind threads that burn CPU",
		lower:  "threads that wake preempt others more often"},
	{files: []string{schedDebug + "migration_cost_ns", schedSysctl + "migration_cost_ns"}, usual: []int64{500_000}, unit: "ns",
		higher: "an idle CPU leaves threads waiting at a busy one for longer",
		lower:  "threads move between CPUs more often"},
	{files: scalingFiles, usual: []int64{1},
		higher: "the scheduler's times grow with each CPU, up to eight times",
		lower:  "the scheduler's times are those of a host with one CPU"},
	{files: []string{schedSysctl + "rt_runtime_us"}, usual: []int64{950_000}, unit: "us",
		higher: "real-time threads may take more of each second from everything else",
		lower:  "real-time threads may take less of each second; at -1, all of it"},
}

// readTunables lists the tunables that differ from the kernel's default. Known is false where the scheduler's own times
// cannot be read, as for an ordinary user, or under lockdown: then the list may lack some.
func readTunables(root fs.FS) (unusual []Tunable, known Answer) {
	unusual, known = []Tunable{}, Unknown
	factor := scaling(root)
	for _, t := range tunables {
		value, name, ok := t.read(root)
		if !ok || t.scaled && factor == 0 {
			continue
		}
		usual := slices.Clone(t.usual)
		if t.scaled {
			known = Yes
			for i := range usual {
				usual[i] *= factor
			}
		}
		if !slices.Contains(usual, value) {
			means := text.Either(value > usual[0], t.higher, t.lower)
			unusual = append(unusual, Tunable{Name: name, Value: value, Usual: usual[0], Means: means, Unit: t.unit})
		}
	}
	return unusual, known
}

// read gives the value in the first file that has one, and that file's name.
func (t tunable) read(root fs.FS) (value int64, name string, ok bool) {
	for _, file := range t.files {
		if v, err := strconv.ParseInt(trimmed(root, file), 10, 64); err == nil {
			return v, path.Base(file), true
		}
	}
	return 0, "", false
}

// scaling is the factor by which this host's CPUs lengthen the scheduler's times; 0: not known.
func scaling(root fs.FS) int64 {
	how, _, ok := tunable{files: scalingFiles}.read(root)
	online, err := topology.ParseList(trimmed(root, "sys/devices/system/cpu/online"))
	if !ok || err != nil || online.IsEmpty() {
		return 0
	}
	cpus := min(online.Size(), 8)
	switch how {
	case 0:
		return 1
	case 2:
		return int64(cpus)
	}
	return int64(bits.Len(uint(cpus)))
}
