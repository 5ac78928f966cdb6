package limit

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/unthrottle/unthrottle/libs/go/pace"
)

// Limit is the bandwidth limit in force: the least along the path. The zero value is no limit.
type Limit struct {
	Quota, Period time.Duration
	// stat and usage are the files with the counters of the level that has the limit; "": none.
	stat, usage string
	v2          bool
}

// Limited reports whether there is a quota.
func (l Limit) Limited() bool { return l.Quota > 0 && l.Period > 0 }

// CPUs is Quota / Period; +Inf without a limit.
func (l Limit) CPUs() float64 {
	if !l.Limited() {
		return math.Inf(1)
	}
	return float64(l.Quota) / float64(l.Period)
}

// Read finds the limit in force. root stands for the root of the file system. An error means that the limit is not known.
func Read(root fs.FS) (Limit, error) {
	p, err := findPlace(root)
	if err != nil {
		return Limit{}, err
	}
	var least Limit
	read := 0
	for _, folder := range p.levels() {
		l, err := p.level(root, folder)
		if errors.Is(err, fs.ErrNotExist) {
			continue // the root cgroup has no quota, nor has a v2 cgroup without the cpu controller
		}
		if err != nil {
			return Limit{}, err
		}
		read++
		if l.Limited() && l.CPUs() < least.CPUs() {
			least = l
		}
	}
	// The root cgroup of v2 has no cpu.max, and every other cgroup has cpu.stat.
	if read == 0 {
		if _, err := fs.Stat(root, path.Join(p.own, "cpu.stat")); err != nil {
			return Limit{}, fmt.Errorf("the CPU limit of this process: %w", err)
		}
	}
	return least, nil
}

func (p place) level(root fs.FS, folder string) (Limit, error) {
	if p.v2 {
		name := path.Join(folder, "cpu.max")
		text, err := fs.ReadFile(root, name)
		if err != nil {
			return Limit{}, err
		}
		quota, period, ok := strings.Cut(strings.TrimSpace(string(text)), " ")
		if !ok {
			return Limit{}, fmt.Errorf("/%s: %q is not \"QUOTA PERIOD\"", name, cut(string(text)))
		}
		l := Limit{stat: path.Join(folder, "cpu.stat"), usage: path.Join(folder, "cpu.stat"), v2: true}
		if l.Period, err = microseconds(name, period); err != nil || quota == "max" {
			return l, err
		}
		l.Quota, err = microseconds(name, quota)
		return l, err
	}
	name := path.Join(folder, "cpu.cfs_quota_us")
	quota, err := fs.ReadFile(root, name)
	if err != nil {
		return Limit{}, err
	}
	l := Limit{stat: path.Join(folder, "cpu.stat")}
	// cpuacct is mounted together with cpu, or has the same tree elsewhere.
	if above, ok := strings.CutPrefix(p.own, folder); ok && p.usage != "" {
		if at, ok := strings.CutSuffix(p.usage, above); ok {
			l.usage = path.Join(at, "cpuacct.usage")
		}
	}
	if strings.TrimSpace(string(quota)) == "-1" {
		return l, nil
	}
	if l.Quota, err = microseconds(name, string(quota)); err != nil {
		return Limit{}, err
	}
	name = path.Join(folder, "cpu.cfs_period_us")
	period, err := fs.ReadFile(root, name)
	if err != nil {
		return Limit{}, err
	}
	l.Period, err = microseconds(name, string(period))
	return l, err
}

// microseconds parses a figure of a cgroup file. The kernel's largest quota and period are far below an hour.
func microseconds(name, text string) (time.Duration, error) {
	text = strings.TrimSpace(text)
	us, err := strconv.ParseInt(text, 10, 64)
	if err != nil || us <= 0 || us > int64(time.Duration(math.MaxInt64)/time.Microsecond) {
		return 0, fmt.Errorf("/%s: %q is not a number of microseconds", name, cut(text))
	}
	return time.Duration(us) * time.Microsecond, nil
}

// cut bounds what an error repeats of a file.
func cut(text string) string { return text[:min(len(text), 40)] }

// Counters are those of the level that has the limit.
type Counters struct {
	// Periods and Throttled are nr_periods and nr_throttled, as unsigned 32 bits where they are beyond the kernel's int.
	Periods, Throttled uint64
	// ThrottledTime is the kernel's sum over CPUs, no wall time.
	ThrottledTime time.Duration
}

// Since is what was counted since an earlier reading; false: the counters went back.
func (c Counters) Since(before Counters) (periods, throttled uint64, ok bool) {
	p, t := pace.Step(before.Periods, c.Periods), pace.Step(before.Throttled, c.Throttled)
	return uint64(max(0, p)), uint64(max(0, t)), p >= 0 && t >= 0
}

// Counters reads cpu.stat.
func (l Limit) Counters(root fs.FS) (Counters, error) {
	if l.stat == "" {
		return Counters{}, errors.New("no cgroup of this process has a limit")
	}
	values, err := flatKeys(root, l.stat)
	if err != nil {
		return Counters{}, err
	}
	c := Counters{Periods: values["nr_periods"], Throttled: values["nr_throttled"]}
	if _, ok := values["nr_periods"]; !ok {
		return c, fmt.Errorf("/%s: no nr_periods", l.stat)
	}
	c.ThrottledTime = time.Duration(min(values["throttled_time"], math.MaxInt64))
	if l.v2 {
		c.ThrottledTime = time.Duration(min(values["throttled_usec"], math.MaxInt64/1000)) * time.Microsecond
	}
	return c, nil
}

// Used is the CPU time of the level that has the limit, with all processes in it.
func (l Limit) Used(root fs.FS) (time.Duration, error) {
	if l.usage == "" {
		return 0, errors.New("no file has the CPU time of the cgroup with the limit")
	}
	if l.v2 {
		values, err := flatKeys(root, l.usage)
		return time.Duration(min(values["usage_usec"], math.MaxInt64/1000)) * time.Microsecond, err
	}
	text, err := fs.ReadFile(root, l.usage)
	if err != nil {
		return 0, err
	}
	ns, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("/%s: %q is not a number of nanoseconds", l.usage, cut(string(text)))
	}
	return time.Duration(ns), nil
}

// flatKeys reads a file of lines "KEY NUMBER". Lines of another form are left out.
func flatKeys(root fs.FS, name string) (map[string]uint64, error) {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return nil, err
	}
	values := make(map[string]uint64)
	for line := range strings.Lines(string(text)) {
		key, number, _ := strings.Cut(strings.TrimSpace(line), " ")
		if v, ok := counter(number); ok {
			values[key] = v
		}
	}
	return values, nil
}

// counter parses a number of cpu.stat. Some are an int in the kernel (struct cfs_bandwidth): after 2^31-1, which is 25 days of periods of
// 1 ms, they go on at -2^31, and read as 32 bits without a sign they go on upwards.
func counter(number string) (uint64, bool) {
	if v, err := strconv.ParseUint(number, 10, 64); err == nil {
		return v, true
	}
	v, err := strconv.ParseInt(number, 10, 32)
	return uint64(uint32(v)), err == nil
}
