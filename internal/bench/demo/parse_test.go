package demo

import (
	"math"
	"os"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/kernel/procfs"
)

func TestSpentOfChangedCPUsIsUnknown(t *testing.T) {
	type times = map[int]procfs.Times
	two := times{0: {All: time.Second}, 1: {All: time.Second}}
	for name, after := range map[string]times{
		"gone": {0: {All: time.Second}}, "other": {0: {All: time.Second}, 2: {All: time.Second}}, "backwards": {0: {}, 1: {All: time.Second}}, "none": nil,
	} {
		if _, _, ok := spent(two, after); ok {
			t.Errorf("%s: known", name)
		}
	}
	later := times{0: {All: 2 * time.Second, Steal: 100 * tms}, 1: {All: 2 * time.Second, Idle: 500 * tms}, 7: {All: time.Hour}}
	if shares := busyShares(two, later, time.Second); len(shares) != 2 || shares[0] != 1 || shares[1] != 0.5 {
		t.Errorf("shares %v", shares)
	}
	delete(later, 7)
	if used, stolen, ok := spent(two, later); !ok || math.Abs(used-1.4) > 1e-9 || stolen != 0.1 {
		t.Errorf("used %v, stolen %v, %v", used, stolen, ok)
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
