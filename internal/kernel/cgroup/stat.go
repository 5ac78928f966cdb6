package cgroup

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Stat is a cgroup's CPU counters. They never fall in the kernel; a reader that sees them fall has met another
// cgroup under the same path.
type Stat struct {
	// Bandwidth tells whether the kernel counts periods here. False (a v2 cgroup without the cpu controller): the
	// next three fields were not measured.
	Bandwidth bool
	// Periods and ThrottledPeriods are nr_periods and nr_throttled: only of this cgroup's own quota.
	Periods, ThrottledPeriods uint64
	// Throttled is throttled_time (v1) or throttled_usec (v2): own quota only, a sum over CPUs.
	Throttled time.Duration
	// ThrottledTotal is the same in cpu.stat.local: own and inherited. Nil: the kernel has no such file (before 6.6).
	ThrottledTotal *time.Duration
	// Bursts and BurstTime are nr_bursts and burst_time. Nil: kernel before 5.16.
	Bursts    *uint64
	BurstTime *time.Duration
	// Usage is the CPU time used with all descendants. Nil: not measurable (v1 without cpuacct).
	Usage *time.Duration
}

// ReadStat reads cpu.stat, cpu.stat.local and on v1 cpuacct.usage.
func ReadStat(fsys FS, g Group) (Stat, error) {
	v, ok := fsys.Version(CPU)
	if !ok {
		return Stat{}, NewError(fsys, CPU, Error{Op: OpRead, Path: g.Path, File: FileStat, Kind: ErrNoController})
	}
	text, err := fsys.Read(CPU, g.Path, FileStat)
	if err != nil {
		return Stat{}, err
	}
	s, err := ParseStat(v, text)
	if err != nil {
		return Stat{}, badFile(fsys, CPU, g.Path, FileStat, err)
	}
	text, err = fsys.Read(CPU, g.Path, FileStatLocal)
	switch {
	case err == nil:
		if s.ThrottledTotal, err = ParseStatLocal(v, text); err != nil {
			return Stat{}, badFile(fsys, CPU, g.Path, FileStatLocal, err)
		}
	case !errors.Is(err, ErrNoFile):
		return Stat{}, err
	}
	if s.Usage == nil && g.CPUAcctPath != "" {
		if acct, ok := fsys.Version(CPUAcct); ok && acct == V1 {
			if s.Usage, err = readUsage(fsys, g.CPUAcctPath); err != nil {
				return Stat{}, err
			}
		}
	}
	return s, nil
}

func readUsage(fsys FS, path string) (*time.Duration, error) {
	text, err := fsys.Read(CPUAcct, path, fileUsage)
	if errors.Is(err, ErrNoFile) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	usage, err := ParseUsage(text)
	if err != nil {
		return nil, badFile(fsys, CPUAcct, path, fileUsage, err)
	}
	return &usage, nil
}

func badFile(fsys FS, c Controller, path, file string, err error) error {
	return NewError(fsys, c, Error{Op: OpRead, Path: path, File: file, Errno: err, Kind: ErrFormat})
}

// ParseStat reads cpu.stat: on v1 times are in ns (throttled_time, burst_time), on v2 in us (throttled_usec,
// burst_usec, usage_usec). Keys that are not ours are skipped.
func ParseStat(v Version, text string) (Stat, error) {
	unit, throttled, burst := time.Nanosecond, "throttled_time", "burst_time"
	if v == V2 {
		unit, throttled, burst = time.Microsecond, "throttled_usec", "burst_usec"
	}
	var s Stat
	for line := range strings.Lines(text) {
		key, number, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if !ok {
			continue
		}
		var err error
		switch key {
		case "nr_periods":
			s.Periods, err = parseEvents(number)
			s.Bandwidth = true
		case "nr_throttled":
			s.ThrottledPeriods, err = parseEvents(number)
		case throttled:
			s.Throttled, err = parseTime(number, unit)
		case "nr_bursts":
			s.Bursts, err = pointer(parseEvents(number))
		case burst:
			s.BurstTime, err = pointer(parseTime(number, unit))
		case "usage_usec":
			if v == V2 {
				s.Usage, err = pointer(parseTime(number, unit))
			}
		}
		if err != nil {
			return Stat{}, fmt.Errorf("%s: %w", key, err)
		}
	}
	return s, nil
}

// ParseStatLocal reads cpu.stat.local: one line, throttled_time (v1) or throttled_usec (v2); nil if it is missing.
func ParseStatLocal(v Version, text string) (*time.Duration, error) {
	unit, name := time.Nanosecond, "throttled_time "
	if v == V2 {
		unit, name = time.Microsecond, "throttled_usec "
	}
	for line := range strings.Lines(text) {
		if number, ok := strings.CutPrefix(line, name); ok {
			return pointer(parseTime(number, unit))
		}
	}
	return nil, nil
}

// ParseUsage reads cpuacct.usage: ns.
func ParseUsage(text string) (time.Duration, error) { return parseTime(text, time.Nanosecond) }

func parseCount(text string) (uint64, error) {
	n, err := strconv.ParseUint(strings.TrimSpace(text), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: %.40q is no count", ErrFormat, text)
	}
	return n, nil
}

// parseEvents reads a counter that is an int in the kernel (struct
// cfs_bandwidth): it goes on at -2^31 after 2^31-1, 25 days of 1 ms periods.
func parseEvents(text string) (uint64, error) {
	if negative, err := strconv.ParseInt(strings.TrimSpace(text), 10, 32); err == nil && negative < 0 {
		return uint64(uint32(int32(negative))), nil
	}
	return parseCount(text)
}

func parseTime(text string, unit time.Duration) (time.Duration, error) {
	n, err := parseCount(text)
	if err == nil && n > uint64(math.MaxInt64/unit) {
		err = fmt.Errorf("%w: %.40q is beyond 292 years", ErrFormat, text)
	}
	if err != nil {
		return 0, err
	}
	return time.Duration(n) * unit, nil
}

func pointer[T any](value T, err error) (*T, error) { return &value, err }
