package cgroup

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Stat has a cgroup's CPU counters. The kernel never decreases them. A reader that sees them fall reads another cgroup
// under the same path.
type Stat struct {
	// Bandwidth reports that the kernel counts periods here. If it is false (a v2 cgroup without the cpu controller),
	// the next three fields were not measured.
	Bandwidth bool
	// Periods and ThrottledPeriods are nr_periods and nr_throttled: only of this cgroup's own quota.
	Periods, ThrottledPeriods uint64
	// Throttled is throttled_time (v1) or throttled_usec (v2): own quota only, a sum over CPUs.
	Throttled time.Duration
	// ThrottledTotal is the same in cpu.stat.local: own and inherited. It is nil before 6.6, which has no such file.
	ThrottledTotal *time.Duration
	// Bursts and BurstTime are nr_bursts and burst_time; nil before 5.16.
	Bursts    *uint64
	BurstTime *time.Duration
	// Usage is the CPU time used with all descendants; nil where it is not measurable (v1 without cpuacct).
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
		if s.ThrottledTotal, err = parseStatLocal(v, text); err != nil {
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
	text, err := fsys.Read(CPUAcct, path, FileUsage)
	if errors.Is(err, ErrNoFile) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	usage, err := ParseUsage([]byte(text))
	if err != nil {
		return nil, badFile(fsys, CPUAcct, path, FileUsage, err)
	}
	return &usage, nil
}

func badFile(fsys FS, c Controller, path, file string, err error) error {
	return NewError(fsys, c, Error{Op: OpRead, Path: path, File: file, Errno: err, Kind: ErrFormat})
}

// ParseStat reads cpu.stat of that version; see [ParseCPUStat]. It ignores lines of the other version.
func ParseStat(v Version, text string) (Stat, error) {
	raw, err := parseOf(v, text)
	if err != nil {
		return Stat{}, err
	}
	return Stat{
		Bandwidth: raw.Has(LinePeriods), Periods: raw.Periods, ThrottledPeriods: raw.ThrottledPeriods, Throttled: raw.Throttled,
		Bursts: measured(&raw, LineBursts, raw.Bursts), BurstTime: measured(&raw, LineBurstTime, raw.BurstTime),
		Usage: measured(&raw, LineUsage, raw.Usage),
	}, nil
}

// parseStatLocal reads cpu.stat.local: one line, throttled_time (v1) or throttled_usec (v2). It returns nil if the line
// is missing.
func parseStatLocal(v Version, text string) (*time.Duration, error) {
	raw, err := parseOf(v, text)
	return measured(&raw, LineThrottled, raw.Throttled), err
}

// parseOf leaves out the lines whose unit is the other version's.
func parseOf(v Version, text string) (CPUStat, error) {
	other := "_usec"
	if v == V2 {
		other = "_time"
	}
	var ours []byte
	for line := range strings.Lines(text) {
		if name, _, _ := strings.Cut(line, " "); !strings.HasSuffix(name, other) {
			ours = append(ours, line...)
		}
	}
	return ParseCPUStat(ours)
}

// measured returns a pointer to a figure whose line was present, nil for one that was not measured.
func measured[T any](s *CPUStat, line StatLines, figure T) *T {
	if !s.Has(line) {
		return nil
	}
	return &figure
}

func parseCount(text string) (uint64, error) {
	n, err := strconv.ParseUint(strings.TrimSpace(text), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: %.40q is not a count", ErrFormat, text)
	}
	return n, nil
}
