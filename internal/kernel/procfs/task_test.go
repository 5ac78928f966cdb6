package procfs

import (
	"os"
	"strings"
	"testing"
	"time"
)

// The stat of a task named "a) (b 1", with flags 4194560 and start time 890123.
const taskStat = "17 (a) (b 1) S 1 17 17 0 -1 4194560 150 0 0 0 2 3 0 0 20 0 1 0 890123 4096 100 18446744073709551615\n"

func TestTask(t *testing.T) {
	if ticks, err := StartTime(taskStat); err != nil || ticks != 890123 {
		t.Errorf("started at %d, %v", ticks, err)
	}
	if flags, err := Flags(taskStat); err != nil || flags != 4194560 {
		t.Errorf("flags %d, %v", flags, err)
	}
	for _, bad := range []string{"", ")", "17 (a)", "17 a S 1 17 17 0 -1 4194560 150 0 0 0 2 3 0 0 20 0 1 0 890123",
		strings.Replace(taskStat, "890123", "-1", 1)} {
		if ticks, err := StartTime(bad); err == nil {
			t.Errorf("%q: started at %d", bad, ticks)
		}
	}
	for stat, want := range map[string]uint64{
		"2 (kthreadd) S 0 0 0 0 -1 2129984 0 0":     2129984,
		"9 (a) b) (c d) S 1 9 9 0 -1 4194560 1 2 3": 4194560,
	} {
		if got, err := Flags(stat); err != nil || got != want {
			t.Errorf("%q: %d, %v", stat, got, err)
		}
	}
	for state, want := range map[string]bool{"S": false, "R": false, "Z": true, "X": true} {
		if got, err := Ended("9 (a) Z (b) " + state + " 1 9 9"); err != nil || got != want {
			t.Errorf("state %s: ended %v, %v", state, got, err)
		}
	}
	own, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		t.Fatal(err)
	}
	if ticks, err := StartTime(string(own)); err != nil || ticks == 0 {
		t.Errorf("this process started at %d, %v", ticks, err)
	}
}

func TestStatusField(t *testing.T) {
	const status = "Name:\tx: y\nCpus_allowed:\t3\nCpus_allowed_list:\t0-1\nempty:\n"
	for name, want := range map[string]string{"Name": "x: y", "Cpus_allowed_list": "0-1", "empty": ""} {
		if got, ok := StatusField(status, name); !ok || got != want {
			t.Errorf("%s: %q, %v; want %q", name, got, ok, want)
		}
	}
	if got, ok := StatusField(status, "Cpus"); ok {
		t.Errorf("there is no line Cpus: %q", got)
	}
}

func FuzzTask(f *testing.F) {
	f.Add(taskStat)
	f.Add(") ) )")
	f.Fuzz(func(t *testing.T, stat string) {
		_, _ = StartTime(stat)
		_, _ = Flags(stat)
		_, _ = Ended(stat)
		_, _ = StatusField(stat, "x")
	})
}

func TestScheduled(t *testing.T) {
	if ran, waited, err := Scheduled("1500000 98500000 12\n"); err != nil || ran != 1500*time.Microsecond ||
		waited != 98500*time.Microsecond {
		t.Errorf("ran %v, waited %v, %v", ran, waited, err)
	}
	for _, bad := range []string{"", "1", "a b c", "-1 2 3"} {
		if _, _, err := Scheduled(bad); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}

func TestAge(t *testing.T) {
	stat := func(ticks string) string { return "7 (a) b) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 " + ticks + " 0 0" }
	for _, c := range []struct {
		stat, uptime string
		want         time.Duration
		ok           bool
	}{
		{stat("500"), "35.25 60.00\n", 30*time.Second + 250*time.Millisecond, true},
		{stat("500"), "5.00 1", 0, true}, {stat("501"), "5.00 1", 0, true},
		{stat("18446744073709551615"), "5.00 1", 0, false}, {stat("x"), "5.00 1", 0, false}, {stat("1"), "", 0, false},
		{stat("1"), "NaN 1", 0, false}, {stat("1"), "-1 1", 0, false}, {stat("1"), "1e300", 0, false}, {"", "5", 0, false},
	} {
		if got, err := Age(c.stat, c.uptime); got != c.want || (err == nil) != c.ok {
			t.Errorf("%s, %s: %v, %v", c.stat, c.uptime, got, err)
		}
	}
}

func TestParseSchedstat(t *testing.T) {
	want := Schedstat{Ran: 1500 * time.Microsecond, Waited: 98500 * time.Microsecond, Runs: 12}
	if s, err := ParseSchedstat([]byte("1500000 98500000 12\n")); err != nil || s != want {
		t.Errorf("%+v, %v", s, err)
	}
	for _, bad := range []string{"", "1 2", "1 2 ", " 1 2 3", "1  2 3", "1 2 x", "-1 2 3", "1 2 99999999999999999999"} {
		if s, err := ParseSchedstat([]byte(bad)); err == nil || s != (Schedstat{}) {
			t.Errorf("%q: %+v, %v", bad, s, err)
		}
	}
}

func FuzzParseSchedstat(f *testing.F) {
	f.Add("1500000 98500000 12\n")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseSchedstat([]byte(text))
		if s.Ran < 0 || s.Waited < 0 || err != nil && (s != Schedstat{} || len(err.Error()) > 400) {
			t.Errorf("%+v, %v", s, err)
		}
	})
}
