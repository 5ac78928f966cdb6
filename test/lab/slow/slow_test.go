package slow

import (
	"encoding/json"
	"fmt"
	"math"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/test/lab/require"
	"github.com/unthrottle/unthrottle/test/lab/wire"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		said string
		cpus int
		idle float64
		want Factor // 0: refused
	}{
		{"1", 16, 2, 1}, {"20", 16, 2, 20}, {"100", 16, 2, 100},
		{"auto", 16, 2, 20}, {"auto", 32, 2, 40}, {"auto", 2, 8, 1}, {"auto", 16, 1, 40}, {"auto", 64, 0, 100},
		{"0", 16, 2, 0}, {"101", 16, 2, 0}, {"-3", 16, 2, 0}, {"1.5", 16, 2, 0}, {"", 16, 2, 0}, {"fast", 16, 2, 0},
		{"99999999999999999999", 1, 1, 0},
	} {
		got, err := Parse(c.said, c.cpus, c.idle)
		if got != c.want || (err == nil) != (c.want != 0) {
			t.Errorf("%q for %d CPUs beside %g idle: %d, %v; want %d", c.said, c.cpus, c.idle, got, err, c.want)
		}
		if err != nil && !strings.Contains(err.Error(), "1 to 100, or auto") {
			t.Errorf("%q: %v does not name what is accepted", c.said, err)
		}
	}
}

// fine is a run with nothing wrong.
func fine() Ran {
	return Ran{
		Factor: 20, Guest: 12 * time.Second, Host: 334 * time.Second, Pace: 20.1, Others: new(0.1),
		Speed: wire.Speed{LoopRateOne: 4e9, LoopRateAll: 5e8, SwitchNs: 4000, SleepLateUs: 100},
	}
}

func TestJudge(t *testing.T) {
	if got := Judge(fine()).String(); got != "slow: K=20 guest 12.0 s host 334 s calibration ok" {
		t.Error(got)
	}
	for what, c := range map[string]struct {
		change func(*Ran)
		says   string
	}{
		"late":           {func(r *Ran) { r.Speed.SleepLateUs = 800 }, "a sleep of 1 ms ends 800 us late"},
		"slow switches":  {func(r *Ran) { r.Speed.SwitchNs = 90_000 }, "a switch takes 90 us"},
		"a busy host":    {func(r *Ran) { r.Others = new(0.4) }, "others had 40 % of the host's CPUs"},
		"others unknown": {func(r *Ran) { r.Others = nil }, "was not measured"},
		"another pace":   {func(r *Ran) { r.Pace = 15 }, "15.00 times slower, not 20"},
		"not calibrated": {func(r *Ran) { r.Speed = wire.Speed{} }, "not calibrated"},
		"not steady":     {func(r *Ran) { r.Steady = true }, "a CPU is 8.00 times as fast while no other is busy"},
	} {
		r := fine()
		c.change(&r)
		got := Judge(r)
		if got.OK || len(got.Off) != 1 || !strings.Contains(got.String(), "calibration off: ") || !strings.Contains(got.String(), c.says) {
			t.Errorf("%s: %+v", what, got)
		}
	}
}

// The keys are a contract.
func TestResultAsJSON(t *testing.T) {
	text, err := json.Marshal(Judge(fine()))
	if err != nil {
		t.Fatal(err)
	}
	var keys map[string]any
	if err := json.Unmarshal(text, &keys); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"factor", "guest_seconds", "host_seconds", "loop_rate_one", "loop_rate_all",
		"switch_ns", "sleep_late_us", "steal_share", "ok"} {
		if _, ok := keys[key]; !ok {
			t.Errorf("no %s in %s", key, text)
		}
	}
}

// A program in slow time asks poll for 30 ms and looks at two clocks; the shell's time is real.
const sleeper = `
#include <poll.h>
#include <stdio.h>
#include <sys/time.h>
#include <time.h>
static double of(clockid_t c) { struct timespec t; clock_gettime(c, &t); return t.tv_sec + t.tv_nsec / 1e9; }
static double day(void) { struct timeval t; gettimeofday(&t, 0); return t.tv_sec + t.tv_usec / 1e6; }
int main(void)
{
	double a = of(CLOCK_MONOTONIC), d = day(), r = of(CLOCK_MONOTONIC_RAW);
	poll(0, 0, 30);
	struct timespec more = {.tv_nsec = 30000000};
	ppoll(0, 0, &more, 0);
	printf("%f %f %f\n", of(CLOCK_MONOTONIC) - a, day() - d, of(CLOCK_MONOTONIC_RAW) - r);
}
`

func TestTheLibrarySlowsAProgram(t *testing.T) {
	require.Kernel(t)
	dir := t.TempDir()
	library, err := Library(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := Library(t.Context(), dir); err != nil || again != library {
		t.Errorf("built twice: %s, %v", again, err)
	}
	program := filepath.Join(dir, "sleeper")
	compile := exec.Command("cc", "-D_GNU_SOURCE", "-x", "c", "-o", program, "-")
	compile.Stdin = strings.NewReader(sleeper)
	if out, err := compile.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, k := range []Factor{1, 8} {
		cmd := exec.Command(program)
		k.Apply(cmd, library, false)
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		var seen, day, real float64
		if _, err := fmt.Sscan(string(out), &seen, &day, &real); err != nil {
			t.Fatalf("%s: %v", out, err)
		}
		if seen < 0.059 || math.Abs(day-seen) > 0.1*seen {
			t.Errorf("K=%d: two sleeps of 30 ms took %g s by the program's clock, %g s by its day", k, seen, day)
		}
		// The clock that is not slowed sees K times as much, whatever the host's load.
		if pace := real / seen; math.Abs(pace/float64(k)-1) > 0.05 {
			t.Errorf("K=%d: the clock ran %.2f times slower", k, pace)
		}
	}
}

// A thread waits for 300 ms of a clock that is not slowed; the process's CPU time is printed.
const waiter = `
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int done;
static void *waits(void *name)
{
	pthread_setname_np(pthread_self(), name);
	pthread_mutex_lock(&m);
	while (!done) pthread_cond_wait(&c, &m);
	pthread_mutex_unlock(&m);
	return 0;
}
static double used(void) { struct timespec t; clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); return t.tv_sec + t.tv_nsec / 1e9; }
int main(int argc, char **argv)
{
	pthread_t t;
	pthread_create(&t, 0, waits, argv[1]);
	usleep(300000);
	double waited = used();
	pthread_mutex_lock(&m);
	done = 1;
	pthread_cond_signal(&c);
	pthread_mutex_unlock(&m);
	pthread_join(t, 0);
	usleep(100000); /* the companion stops */
	double before = used();
	usleep(300000);
	printf("%f %f\n", waited, used() - before);
}
`

// While a thread that emulates a CPU waits, another works in its place, and no longer. No other thread has one.
func TestSteadyThreadsHaveCompanions(t *testing.T) {
	require.Kernel(t)
	dir := t.TempDir()
	library, err := Library(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "waiter")
	compile := exec.Command("cc", "-D_GNU_SOURCE", "-pthread", "-x", "c", "-o", program, "-")
	compile.Stdin = strings.NewReader(waiter)
	if out, err := compile.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, c := range []struct {
		name   string
		steady bool
		works  bool
	}{{"CPU 0/TCG", true, true}, {"worker", true, false}, {"CPU 0/TCG", false, false}} {
		cmd := exec.Command(program, c.name)
		Factor(2).Apply(cmd, library, c.steady)
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		var waited, after float64
		if _, err := fmt.Sscan(string(out), &waited, &after); err != nil {
			t.Fatalf("%s: %v", out, err)
		}
		const little = 0.02
		if c.works != (waited > little) || after > little {
			t.Errorf("%+v: %g s of CPU time while it waited, %g after", c, waited, after)
		}
	}
}
