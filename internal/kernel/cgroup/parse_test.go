package cgroup

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/unthrottle/unthrottle/topology"
)

func TestParseProcCgroup(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []membership
	}{
		{"v2", "0::/system.slice/a.service\n", []membership{{Path: "/system.slice/a.service"}}},
		{"v1 together", "4:cpu,cpuacct:/a\n1:name=systemd:/b\n0::/\n", []membership{
			{Controllers: []Controller{CPU, CPUAcct}, Path: "/a"}, {Controllers: []Controller{"name=systemd"}, Path: "/b"}, {Path: "/"}}},
		{"colon in the name", "0::/a:b:c\n", []membership{{Path: "/a:b:c"}}},
		{"deleted", "0::/a (deleted)\n", []membership{{Path: "/a", Deleted: true}}},
		{"v1 does not mark what is deleted", "2:cpu:/a (deleted)\n", []membership{{Controllers: []Controller{CPU}, Path: "/a (deleted)"}}},
		{"outside our namespace", "0::/../b\n", []membership{{Path: "/../b"}}},
		{"no newline at the end", "0::/a", []membership{{Path: "/a"}}},
		{"junk", "\n:\n::\nx:cpu:/a\n0:cpu:/a\n3::/a\n-1::/a\n0::a\n99999999999::/a\n", nil},
		{"torn by a newline in a name", "0::/a\nb\n", []membership{{Path: "/a"}}},
	} {
		if diff := cmp.Diff(c.want, parseProcCgroup(c.text)); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

func TestParsePids(t *testing.T) {
	if pids, err := ParsePids("12\n0\n4194304\n"); err != nil || !slices.Equal(pids, []int{12, 0, 4194304}) {
		t.Errorf("%v, %v", pids, err)
	}
	for _, text := range []string{"x\n", "-1\n", "1 2\n", "\n", "99999999999\n"} {
		if pids, err := ParsePids(text); !errors.Is(err, ErrFormat) {
			t.Errorf("%q: %v, %v", text, pids, err)
		}
	}
}

func TestParseStat(t *testing.T) {
	us := time.Microsecond
	count := func(n uint64) *uint64 { return &n }
	duration := func(d time.Duration) *time.Duration { return &d }
	for _, c := range []struct {
		name, text string
		v          Version
		want       Stat
	}{
		{"6.18 on v1", "nr_periods 11\nnr_throttled 10\nthrottled_time 815000000\nnr_bursts 2\nburst_time 7\n", V1,
			Stat{Bandwidth: true, Periods: 11, ThrottledPeriods: 10, Throttled: 815 * time.Millisecond,
				Bursts: count(2), BurstTime: duration(7)}},
		{"5.10 on v1", "nr_periods 1\nnr_throttled 0\nthrottled_time 0\n", V1, Stat{Bandwidth: true, Periods: 1}},
		{"6.12 on v2", "usage_usec 10\nuser_usec 4\nsystem_usec 6\nnice_usec 0\nnr_periods 3\nnr_throttled " +
			"2\nthrottled_usec 5\nnr_bursts 1\nburst_usec 9\n", V2,
			Stat{Bandwidth: true, Periods: 3, ThrottledPeriods: 2, Throttled: 5 * us, Bursts: count(1),
				BurstTime: duration(9 * us), Usage: duration(10 * us)}},
		{"v2 without the controller", "usage_usec 10\nuser_usec 4\nsystem_usec 6\n", V2, Stat{Usage: duration(10 * us)}},
		{"empty", "", V2, Stat{}},
		{"another unit is not ours", "throttled_usec 5\nusage_usec 1\n", V1, Stat{}},
	} {
		got, err := ParseStat(c.v, c.text)
		if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v %s", c.name, err, diff)
		}
	}
	for _, text := range []string{"nr_periods x", "nr_periods -2147483649", "nr_throttled ",
		"throttled_time 18446744073709551615", "throttled_time 99999999999999999999"} {
		if got, err := ParseStat(V1, text); !errors.Is(err, ErrFormat) {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
}

func TestParseStatLocal(t *testing.T) {
	for _, c := range []struct {
		text string
		v    Version
		want string
	}{{"throttled_time 5\n", V1, "5ns"}, {"throttled_usec 5", V2, "5µs"}, {"throttled_usec 5", V1, "none"}, {"", V2, "none"}} {
		got, err := parseStatLocal(c.v, c.text)
		text := "none"
		if got != nil {
			text = got.String()
		}
		if err != nil || text != c.want {
			t.Errorf("%q: %s, %v", c.text, text, err)
		}
	}
	if _, err := parseStatLocal(V2, "throttled_usec x"); !errors.Is(err, ErrFormat) {
		t.Errorf("got %v", err)
	}
}

func TestWeights(t *testing.T) {
	for shares, weight := range map[uint64]uint64{0: 1, 2: 1, 1024: 100, 512: 50, 2048: 200, 102400: 10000, 262144: 10000} {
		if got := WeightOfShares(shares); got != weight {
			t.Errorf("shares %d: weight %d, want %d", shares, got, weight)
		}
	}
	for weight := uint64(MinWeight); weight <= MaxWeight; weight++ {
		if got := WeightOfShares(SharesOfWeight(weight)); got != weight {
			t.Errorf("weight %d becomes %d on the way through shares", weight, got)
		}
	}
	if w := SharesWrite(V2, 2048); w != (FileValue{"cpu.weight", "200"}) {
		t.Errorf("%+v", w)
	}
	if w := SharesWrite(V1, 1); w != (FileValue{"cpu.shares", "2"}) {
		t.Errorf("%+v", w)
	}
}

func FuzzProcCgroup(f *testing.F) {
	f.Add("4:cpu,cpuacct:/a\n1:name=systemd:/b\n0::/ (deleted)\n")
	f.Add("0::/../b:c\n::\n")
	f.Fuzz(func(t *testing.T, text string) {
		memberships := parseProcCgroup(text)
		if len(memberships) > maxHierarchies {
			t.Fatalf("%d lines", len(memberships))
		}
		for _, m := range memberships {
			if !strings.HasPrefix(m.Path, "/") || strings.Contains(m.Path, "\n") {
				t.Fatalf("path %q", m.Path)
			}
		}
	})
}

func FuzzStat(f *testing.F) {
	f.Add(true, "nr_periods 11\nnr_throttled 10\nthrottled_time 815000000\nnr_bursts 2\nburst_time 7\n")
	f.Add(false, "usage_usec 10\nnr_periods 3\nthrottled_usec 18446744073709551615\n")
	f.Fuzz(func(t *testing.T, v1 bool, text string) {
		v := V2
		if v1 {
			v = V1
		}
		s, err := ParseStat(v, text)
		if err != nil {
			return
		}
		if s.Throttled < 0 || s.BurstTime != nil && *s.BurstTime < 0 || s.Usage != nil && *s.Usage < 0 {
			t.Fatalf("negative time in %+v", s)
		}
		if _, err := parseStatLocal(v, text); err != nil {
			return
		}
		if d, err := ParseUsage([]byte(text)); err == nil && d < 0 {
			t.Fatalf("usage %v", d)
		}
	})
}

func FuzzMax(f *testing.F) {
	for _, text := range []string{"max 100000", "50000 100000\n", "1", "9223372036854775 1000000"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		l, err := ParseMax(text)
		if err != nil {
			return
		}
		if l.Period < 0 || l.Burst != 0 || l.Quota < -1 {
			t.Fatalf("%q: %+v", text, l)
		}
		// The written form reads back as the same limit.
		for _, w := range maxWrites(Limit{Quota: 1, Period: 1}, l) {
			if again, err := ParseMax(w.Value); err != nil || again != l {
				t.Fatalf("%q: %+v comes back as %+v, %v", text, l, again, err)
			}
		}
	})
}

func FuzzCPUList(f *testing.F) {
	for _, text := range []string{"0-3,8", "", "0-7:2/4", "1-0", "99999999999", "0,0,1"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		set, err := parseCPUs(text)
		if err != nil {
			return
		}
		if set.Size() > topology.MaxCPUs {
			t.Fatalf("%q: %d CPUs", text, set.Size())
		}
		if again, err := parseCPUs(set.String()); err != nil || !again.Equals(set) {
			t.Fatalf("%q: %s comes back as %s, %v", text, set, again, err)
		}
	})
}

func FuzzPids(f *testing.F) {
	f.Add("1\n0\n22\n")
	f.Fuzz(func(t *testing.T, text string) {
		pids, err := ParsePids(text)
		if err != nil {
			return
		}
		var b strings.Builder
		for _, pid := range pids {
			if pid < 0 {
				t.Fatalf("%q: pid %d", text, pid)
			}
			fmt.Fprintf(&b, "%d\n", pid)
		}
		if again, err := ParsePids(b.String()); err != nil || !slices.Equal(again, pids) {
			t.Fatalf("%v comes back as %v, %v", pids, again, err)
		}
	})
}
