package limit

import (
	"io/fs"
	"math"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

func files(text map[string]string) fstest.MapFS {
	fsys := fstest.MapFS{}
	for name, t := range text {
		fsys[name] = &fstest.MapFile{Data: []byte(t)}
	}
	return fsys
}

const (
	mountsV2 = "30 29 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n"
	mountsV1 = "33 29 0:28 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n" +
		"34 29 0:29 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
	v1 = "sys/fs/cgroup/cpu,cpuacct/"
)

func TestTheLeastLimitAlongThePathIsInForce(t *testing.T) {
	for name, c := range map[string]struct {
		files         map[string]string
		quota, period time.Duration
		err           string
	}{
		"v2, the parent's": {map[string]string{"proc/self/cgroup": "0::/a/b\n", "proc/self/mountinfo": mountsV2,
			"sys/fs/cgroup/a/b/cpu.max": "200000 100000\n", "sys/fs/cgroup/a/cpu.max": "70000 100000\n"},
			70 * time.Millisecond, 100 * time.Millisecond, ""},
		"v2, none": {map[string]string{"proc/self/cgroup": "0::/a\n", "proc/self/mountinfo": mountsV2,
			"sys/fs/cgroup/a/cpu.max": "max 100000\n"}, 0, 0, ""},
		"v2, without the controller": {map[string]string{"proc/self/cgroup": "0::/a\n", "proc/self/mountinfo": mountsV2,
			"sys/fs/cgroup/a/cpu.stat": "usage_usec 1\n"}, 0, 0, ""},
		"v1": {map[string]string{"proc/self/cgroup": "4:cpu,cpuacct:/x\n0::/\n", "proc/self/mountinfo": mountsV1 + mountsV2,
			v1 + "x/cpu.cfs_quota_us": "50000\n", v1 + "x/cpu.cfs_period_us": "20000\n",
			v1 + "cpu.cfs_quota_us": "-1\n", v1 + "cpu.cfs_period_us": "100000\n"}, 50 * time.Millisecond, 20 * time.Millisecond, ""},
		"v1, a container's mount with the path of the host": {map[string]string{"proc/self/cgroup": "4:cpu:/docker/1\n",
			"proc/self/mountinfo":                "33 29 0:28 /docker/1 /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu\n",
			"sys/fs/cgroup/cpu/cpu.cfs_quota_us": "150000\n", "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n"},
			150 * time.Millisecond, 100 * time.Millisecond, ""},
		"a cgroup namespace entered from outside": {map[string]string{"proc/self/cgroup": "0::/../../a\n", "proc/self/mountinfo": mountsV2,
			"sys/fs/cgroup/a/cpu.max": "50000 100000"}, 0, 0, "not known in this cgroup namespace"},
		"a cgroup namespace over the host's mount, v1": {map[string]string{"proc/self/cgroup": "1:cpu:/\n",
			"proc/self/mountinfo":                "32 31 0:29 /../.. /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n",
			"sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n"}, 0, 0, "not known in this cgroup namespace"},
		"a cgroup namespace over the host's mount, v2": {map[string]string{"proc/self/cgroup": "0::/\n",
			"proc/self/mountinfo":    "30 29 0:26 /.. /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
			"sys/fs/cgroup/cpu.stat": "usage_usec 1\n"}, 0, 0, "not known in this cgroup namespace"},
		"farther above than the mount": {map[string]string{"proc/self/cgroup": "0::/../../a\n",
			"proc/self/mountinfo":     "30 29 0:26 /.. /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
			"sys/fs/cgroup/a/cpu.max": "50000 100000"}, 0, 0, "not known in this cgroup namespace"},
		"above, and in what the mount shows": {map[string]string{"proc/self/cgroup": "0::/../../a\n",
			"proc/self/mountinfo":     "30 29 0:26 /../.. /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
			"sys/fs/cgroup/a/cpu.max": "50000 100000"}, 50 * time.Millisecond, 100 * time.Millisecond, ""},
		"the host's mount, and one of the namespace's own": {map[string]string{"proc/self/cgroup": "0::/\n",
			"proc/self/mountinfo": "30 29 0:26 /.. /host rw - cgroup2 cgroup2 rw\n" + mountsV2, "sys/fs/cgroup/cpu.max": "50000 100000"},
			50 * time.Millisecond, 100 * time.Millisecond, ""},
		"a blank in a path": {map[string]string{"proc/self/cgroup": "0::/\n",
			"proc/self/mountinfo": "30 29 0:26 / /sys/fs/c\\040g rw - cgroup2 x rw\n",
			"sys/fs/c g/cpu.max":  "50000 100000"}, 50 * time.Millisecond, 100 * time.Millisecond, ""},
		"unreadable":  {map[string]string{}, 0, 0, "the cgroup of this process"},
		"not mounted": {map[string]string{"proc/self/cgroup": "4:cpu:/a\n", "proc/self/mountinfo": mountsV2}, 0, 0, "not mounted"},
		"gone": {map[string]string{"proc/self/cgroup": "0::/a\n", "proc/self/mountinfo": mountsV2},
			0, 0, "the CPU limit of this process"},
		"garbage": {map[string]string{"proc/self/cgroup": "0::/a\n", "proc/self/mountinfo": mountsV2,
			"sys/fs/cgroup/a/cpu.max": "many 100000"}, 0, 0, `/sys/fs/cgroup/a/cpu.max: "many" is not`},
	} {
		l, err := Read(files(c.files))
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: %v, not an error with %q", name, err, c.err)
			}
			continue
		}
		if err != nil || l.Quota != c.quota || l.Limited() && l.Period != c.period {
			t.Errorf("%s: %v of %v, %v; want %v of %v", name, l.Quota, l.Period, err, c.quota, c.period)
		}
	}
}

// CPU time is that of the cgroup with the limit, or not known: with trees apart a process may be in another cgroup of cpuacct.
func TestUsageOfAnotherCgroupIsNotKnown(t *testing.T) {
	for name, c := range map[string]struct {
		groups string
		known  bool
	}{
		"the same tree":              {"4:cpu:/a/b\n5:cpuacct:/a/b\n", true},
		"in cpuacct's root":          {"4:cpu:/a/b\n5:cpuacct:/\n", false},
		"in the group above":         {"4:cpu:/a/b\n5:cpuacct:/a\n", false},
		"in another that ends alike": {"4:cpu:/a/b\n5:cpuacct:/c/b\n", false},
		"without cpuacct":            {"4:cpu:/a/b\n", false},
	} {
		fsys := files(map[string]string{"proc/self/cgroup": c.groups,
			"proc/self/mountinfo": "33 29 0:28 / /cpu rw - cgroup cgroup rw,cpu\n" +
				"34 29 0:29 / /acct rw - cgroup cgroup rw,cpuacct\n",
			"cpu/a/b/cpu.cfs_quota_us": "70000", "cpu/a/b/cpu.cfs_period_us": "100000", "acct/a/b/cpuacct.usage": "5000000",
			"acct/a/cpuacct.usage": "6000000", "acct/c/b/cpuacct.usage": "7000000", "acct/cpuacct.usage": "8000000"})
		l, err := Read(fsys)
		if err != nil || !l.Limited() {
			t.Fatalf("%s: %+v, %v", name, l, err)
		}
		if used, err := l.Used(fsys); (err == nil) != c.known || c.known && used != 5*time.Millisecond {
			t.Errorf("%s: %v, %v", name, used, err)
		}
	}
}

func TestNoLimitIsInfinite(t *testing.T) {
	if got := (Limit{}).CPUs(); !math.IsInf(got, 1) {
		t.Error(got)
	}
}

func TestCountersAreThoseOfTheLevelWithTheLimit(t *testing.T) {
	two := files(map[string]string{"proc/self/cgroup": "0::/a/b\n", "proc/self/mountinfo": mountsV2,
		"sys/fs/cgroup/a/b/cpu.max": "max 100000", "sys/fs/cgroup/a/cpu.max": "70000 100000",
		"sys/fs/cgroup/a/cpu.stat": "usage_usec 5000\nnr_periods 7\nnr_throttled 3\nthrottled_usec 9\n"})
	mapFS := files(map[string]string{"proc/self/cgroup": "4:cpu,cpuacct:/x\n", "proc/self/mountinfo": mountsV1,
		v1 + "x/cpu.cfs_quota_us": "70000", v1 + "x/cpu.cfs_period_us": "100000", v1 + "x/cpuacct.usage": "5000000",
		v1 + "x/cpu.stat": "nr_periods 7\nnr_throttled 3\nthrottled_time 9000\n"})
	for name, fsys := range map[string]fs.FS{"v2": two, "v1": mapFS} {
		l, err := Read(fsys)
		if err != nil {
			t.Fatal(name, err)
		}
		if c, err := l.Counters(fsys); err != nil || c != (Counters{7, 3, 9 * time.Microsecond}) {
			t.Errorf("%s: %+v, %v", name, c, err)
		}
		if used, err := l.Used(fsys); err != nil || used != 5*time.Millisecond {
			t.Errorf("%s: %v, %v", name, used, err)
		}
	}
	if _, err := (Limit{}).Counters(two); err == nil {
		t.Error("no limit has counters")
	}
}

// The kernel's counters of periods are an int, printed with its sign.
func TestCountersGoOnPastAnInt(t *testing.T) {
	fsys := files(map[string]string{"proc/self/cgroup": "0::/a\n", "proc/self/mountinfo": mountsV2,
		"sys/fs/cgroup/a/cpu.max":  "70000 100000",
		"sys/fs/cgroup/a/cpu.stat": "usage_usec 5000\nnr_periods -2147483647\nnr_throttled 2147483647\nthrottled_usec 9\n"})
	l, err := Read(fsys)
	if err != nil {
		t.Fatal(err)
	}
	if c, err := l.Counters(fsys); err != nil || c.Periods != 1<<31+1 || c.Throttled != 1<<31-1 {
		t.Errorf("%+v, %v", c, err)
	}
}

// Differences hold where an int and where 32 bits turn over, and are none where another cgroup is read.
func TestDifferencesHoldOverEachTurn(t *testing.T) {
	for _, c := range []struct{ before, now, want uint64 }{{1<<31 - 1, 1 << 31, 1}, {1<<32 - 1, 0, 1}, {1<<32 - 3, 4, 7}, {5, 5, 0}} {
		periods, throttled, ok := (Counters{Periods: c.now, Throttled: c.now}).Since(Counters{Periods: c.before, Throttled: c.before})
		if periods != c.want || throttled != c.want || !ok {
			t.Errorf("from %d to %d: %d periods, %d stopped, %t", c.before, c.now, periods, throttled, ok)
		}
	}
	if _, _, ok := (Counters{Periods: 2}).Since(Counters{Periods: 7}); ok {
		t.Error("counters went back")
	}
}

func FuzzRead(f *testing.F) {
	f.Add("0::/a\n", mountsV2, "70000 100000")
	f.Add("4:cpu,cpuacct:/a\n", mountsV1, "70000")
	f.Fuzz(func(t *testing.T, groups, mounts, value string) {
		l, err := Read(files(map[string]string{"proc/self/cgroup": groups, "proc/self/mountinfo": mounts, "sys/fs/cgroup/a/cpu.max": value,
			v1 + "a/cpu.cfs_quota_us": value, v1 + "a/cpu.cfs_period_us": value}))
		if err == nil && l.Limited() && !(l.CPUs() > 0) {
			t.Errorf("%+v", l)
		}
	})
}
