package demo

import (
	"os"
	"strings"
	"testing"
	"time"
)

const procStat = `cpu  300 0 30 4000 5 0 6 7 0 0
cpu0 100 1 10 2000 2 3 4 5 50 0
cpu1 200 0 20 2000 3 0 2 2 0 0
intr 12345 0 0
ctxt 99
`

func TestParseCPUTimes(t *testing.T) {
	got, err := parseCPUTimes(strings.NewReader(procStat))
	want := []cpuTime{{0, 1180 * tms, 50 * tms}, {1, 2220 * tms, 20 * tms}}
	if err != nil || len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	for name, bad := range map[string]string{
		"few":    "cpu0 1 2 3\n",
		"word":   "cpu0 1 2 3 4 x 6 7 8\n",
		"minus":  "cpu0 1 2 3 4 5 6 7 -8\n",
		"huge":   "cpu0 99999999999999999 2 3 4 5 6 7 8\n",
		"no cpu": "cpux 1 2 3 4 5 6 7 8\n",
		"number": "cpu99999 1 2 3 4 5 6 7 8\n",
	} {
		if got, err := parseCPUTimes(strings.NewReader(bad)); err == nil {
			t.Errorf("%s: taken as %v", name, got)
		}
	}
}

func FuzzCPUTimes(f *testing.F) {
	f.Add(procStat)
	f.Add("cpu0 68719476735 68719476735 68719476735 0 0 68719476735 68719476735 1\n")
	f.Fuzz(func(t *testing.T, text string) {
		all, err := parseCPUTimes(strings.NewReader(text))
		for _, c := range all {
			if err == nil && (c.busy < 0 || c.stolen < 0 || c.cpu < 0) {
				t.Fatalf("%+v", c)
			}
		}
	})
}

func TestSpentOfChangedCPUsIsUnknown(t *testing.T) {
	two := []cpuTime{{0, time.Second, 0}, {1, time.Second, 0}}
	for name, after := range map[string][]cpuTime{
		"gone": two[:1], "other": {{0, time.Second, 0}, {2, time.Second, 0}}, "backwards": {{0, 0, 0}, {1, time.Second, 0}}, "none": nil,
	} {
		if _, _, ok := spent(two, after); ok {
			t.Errorf("%s: known", name)
		}
	}
	if shares := busyShares(two, []cpuTime{{0, 2 * time.Second, 0}, {1, 1500 * tms, 0}, {7, time.Hour, 0}}, time.Second); len(shares) != 2 || shares[0] != 1 || shares[1] != 0.5 {
		t.Errorf("shares %v", shares)
	}
}

func TestNames(t *testing.T) {
	o := owner{"ab12", 77, 123456, 4026531836}
	if o.name() != "unthrottle-demo-ab12.77.123456.4026531836" {
		t.Error(o.name())
	}
	for _, foreign := range []string{
		"unthrottle-demo-", "unthrottle-demo-ab12", "unthrottle-demo-ab12.77.123456", "unthrottle-demo-ab12.77.123456.1.2",
		"unthrottle-demo-AB.77.1.1", "unthrottle-demo-ab.077.1.1", "unthrottle-demo-ab.-7.1.1", "unthrottle-demo-ab.0.1.1",
		"unthrottle-demo-.7.1.1", "unthrottle-demo-ab.7.1.+1", "unthrottle-demo-ab.99999999999.1.1", "docker-ab.7.1.1",
	} {
		if got, ok := parseName(foreign); ok {
			t.Errorf("%q is taken as a demo's: %+v", foreign, got)
		}
	}
}

func FuzzName(f *testing.F) {
	f.Add("unthrottle-demo-ab12.77.123456.4026531836")
	f.Add("unthrottle-demo-ab.077.1.1")
	f.Fuzz(func(t *testing.T, name string) {
		if o, ok := parseName(name); ok && o.name() != name {
			t.Fatalf("%q is read as %q", name, o.name())
		}
	})
}

func TestAlive(t *testing.T) {
	us, err := ourselves("/proc", "x")
	if err != nil {
		t.Fatal(err)
	}
	earlier, elsewhere, never := us, us, us
	earlier.startTime--
	elsewhere.pidNS++
	elsewhere.startTime--
	never.pid = 1 << 30
	for name, c := range map[string]struct {
		o    owner
		want bool
	}{"us": {us, true}, "the PID's last user": {earlier, false}, "another namespace": {elsewhere, true}, "no process": {never, false}} {
		if got := c.o.alive("/proc", us.pidNS); got != c.want {
			t.Errorf("%s: alive %v", name, got)
		}
	}
}

func FuzzStartTime(f *testing.F) {
	own, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(own))
	f.Add("7 (a) b) c) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4242 20")
	f.Fuzz(func(t *testing.T, stat string) { parseStartTime(stat) })
}

func TestStartTimeOfStrangeNames(t *testing.T) {
	got, ok := parseStartTime("7 (a) b) (c) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4242 20")
	if !ok || got != 4242 {
		t.Errorf("got %d, %v", got, ok)
	}
	for _, bad := range []string{"", "7 (a", "7 (a) S 1 2", "7 (a) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 x 20"} {
		if got, ok := parseStartTime(bad); ok {
			t.Errorf("%q: %d", bad, got)
		}
	}
}
