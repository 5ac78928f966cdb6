package threads

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/scenario"
	"github.com/unthrottle/unthrottle/test/lab/require"
)

// TestMain lets the test binary stand in for the program that children run.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == Command {
		os.Exit(Main())
	}
	os.Exit(m.Run())
}

const ms = time.Millisecond

func spec(kind scenario.Kind, threads int) Spec {
	return Spec{
		Name: "work", Kind: kind, Threads: threads, Fast: 1, Run: scenario.Fixed(ms), Sleep: scenario.Fixed(5 * ms),
		CPUs: []int{0}, Duration: 300 * ms, Deadline: time.Minute, Seed: 1,
	}
}

// ran runs a workload to its end and gives what it measured; look is called
// shortly before the end, with its process ID.
func ran(t *testing.T, s Spec, look func(pid int)) Result {
	t.Helper()
	p, err := Start("", s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
	})
	if err := p.Go(); err != nil {
		t.Fatal(err)
	}
	if look != nil {
		time.Sleep(s.Duration / 2)
		look(p.Pid())
	}
	time.Sleep(s.Duration + 20*ms)
	r, err := p.Tell()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestSleepRun(t *testing.T) {
	require.Kernel(t)
	r := ran(t, spec(scenario.SleepRun, 3), nil)
	// 3 threads with a cycle of at least 6 ms, in 300 ms.
	if r.Count == 0 || r.Count > 3*50 || r.P50 == nil || *r.P50 < 1 || *r.Max < *r.P50 || r.Unfinished > 3 || r.Rounds != 0 {
		t.Errorf("%+v", r)
	}
}

func TestSleeper(t *testing.T) {
	require.Kernel(t)
	r := ran(t, spec(scenario.Sleeper, 1), nil)
	// Each sleep asked for 5 ms: none is shorter. At the end one is under way, or the work between two.
	if r.Count == 0 || *r.P50 < 4.95 || *r.Max < 5 || r.Unfinished > 1 {
		t.Errorf("%+v", r)
	}
}

// cpuTicks are user and system time of a process, and of each of its threads the
// name, CPU ticks and the CPUs that it may use.
func cpuTicks(t *testing.T, stat string) (name string, user, system int) {
	t.Helper()
	text, err := os.ReadFile(stat)
	if err != nil {
		t.Fatal(err)
	}
	open, closing := strings.IndexByte(string(text), '('), strings.LastIndexByte(string(text), ')')
	fields := strings.Fields(string(text[closing+1:]))
	user, _ = strconv.Atoi(fields[11])
	system, _ = strconv.Atoi(fields[12])
	return string(text[open+1 : closing]), user, system
}

// The fast one burns, the slow ones don't, each is pinned, and all have their
// names.
func TestFib(t *testing.T) {
	require.Kernel(t)
	s := spec(scenario.Fib, 3)
	s.Name, s.Run, s.Duration = "a-long-name-of-fibtest", scenario.Fixed(10*time.Microsecond), 600*ms
	fast, slow := 0, 0
	r := ran(t, s, func(pid int) {
		tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
		for _, task := range tasks {
			name, user, system := cpuTicks(t, task+"/stat")
			switch name {
			case "me-of-fibtest-1":
				fast += user + system
			case "me-of-fibtest-2", "me-of-fibtest-3":
				slow += user + system
			default:
				continue
			}
			status, _ := os.ReadFile(task + "/status")
			if !strings.Contains(string(status), "Cpus_allowed_list:\t0\n") {
				t.Errorf("%s is not pinned to CPU 0", name)
			}
		}
	})
	if fast == 0 || fast <= 4*slow || r.Rounds == 0 || r.Count == 0 {
		t.Errorf("fast %d ticks, slow %d, %+v", fast, slow, r)
	}
}

// What long calls use is system time.
func TestKernel(t *testing.T) {
	require.Kernel(t)
	s := spec(scenario.Kernel, 1)
	s.Run, s.Duration = scenario.Fixed(20*ms), 600*ms
	r := ran(t, s, func(pid int) {
		_, user, system := cpuTicks(t, fmt.Sprintf("/proc/%d/stat", pid))
		if system <= user {
			t.Errorf("user %d ticks, system %d: the calls are not in the kernel", user, system)
		}
	})
	if r.Count == 0 || *r.P50 < 5 {
		t.Errorf("%+v: calls of about 20 ms", r)
	}
}

// All threads of a neighbour are on at once.
func TestNeighbour(t *testing.T) {
	require.Kernel(t)
	s := spec(scenario.Neighbour, 2)
	s.On, s.Off = 20*ms, 80*ms
	if r := ran(t, s, nil); r.Rounds == 0 || r.Count != 0 {
		t.Errorf("%+v", r)
	}
	s.On, s.Off, s.Start = 0, 0, 150*ms
	if late := ran(t, s, nil); late.Rounds == 0 {
		t.Errorf("from its start on: %+v", late)
	}
}

// A sleep that a phase without load meets lasts to its end, the first one too; and one
// that the load draws out beyond all bounds does not end at once instead.
func TestPhases(t *testing.T) {
	require.Kernel(t)
	s := spec(scenario.SleepRun, 1)
	s.Duration = 10 * time.Second
	for _, test := range []struct {
		start  time.Duration // of the workload
		phases []scenario.Phase
		now    time.Duration // from the scenario's beginning
		want   time.Duration
	}{
		{0, nil, 0, 5 * ms},
		{0, []scenario.Phase{{For: time.Second}, {For: time.Second, Factor: 2}}, 0, time.Second + 5*ms/2},
		{time.Second, []scenario.Phase{{For: time.Second}, {For: time.Second, Factor: 2}}, time.Second, 2*time.Second + 5*ms/2},
		{0, []scenario.Phase{{For: time.Second}}, 0, s.Duration},
		{0, []scenario.Phase{{For: time.Second, Factor: 1e-13}}, 0, 2 * scenario.MaxDuration},
	} {
		one := s
		one.Start, one.Phases = test.start, test.phases
		begin := time.Hour // of the clock
		th := thread{spec: &one, begin: begin, end: begin + s.Duration}
		if got := th.wakeAfter(begin+test.now, 5*ms) - begin; got != test.want {
			t.Errorf("from %v in %v: %v, want %v", test.start, test.phases, got, test.want)
		}
	}
	s.Duration, s.Phases = 100*ms, []scenario.Phase{{For: 100 * ms}}
	if r := ran(t, s, nil); r.Count > 0 || r.Unfinished > 0 {
		t.Errorf("nothing but a phase without load: %+v", r)
	}
}

func TestDraw(t *testing.T) {
	chance := rand.New(rand.NewPCG(1, 2))
	var sum time.Duration
	for range 10_000 {
		u := draw(scenario.Duration{Shape: scenario.Uniform, Low: ms, High: 3 * ms}, chance)
		if u < ms || u > 3*ms {
			t.Fatal(u)
		}
		sum += draw(scenario.Duration{Shape: scenario.Exponential, Mean: ms}, chance)
	}
	if mean := sum / 10_000; mean < 950*time.Microsecond || mean > 1050*time.Microsecond {
		t.Errorf("mean %v", mean)
	}
}

func TestCheck(t *testing.T) {
	good := spec(scenario.SleepRun, 1)
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*Spec){
		"has 1 to 4096":     func(s *Spec) { s.Threads = 0 },
		"1 to 4096":         func(s *Spec) { s.Threads = 5000 },
		"no CPUs to pin":    func(s *Spec) { s.Kind, s.CPUs = scenario.Fib, nil },
		"start 1s: outside": func(s *Spec) { s.Start = time.Second },
		"deadline 0s":       func(s *Spec) { s.Deadline = 0 },
		"needs run":         func(s *Spec) { s.Run = scenario.Duration{} },
		"no threads of":     func(s *Spec) { s.Kind = scenario.Service },
	} {
		bad := good
		change(&bad)
		if err := bad.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
		if _, err := Start("", bad); err == nil {
			t.Errorf("%q was started", want)
		}
	}
}

// Beside a workload's threads nothing of its process runs, and it ends at once
// nevertheless.
func TestHold(t *testing.T) {
	require.Kernel(t)
	s := spec(scenario.SleepRun, 2)
	s.Duration = time.Minute
	p, err := Start("", s)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Disturbed(); err != nil {
		_ = p.Stop()
		if errors.Is(err, unix.EPERM) {
			t.Skipf("needs ptrace(2) of children: %v; runs on any host", err)
		}
		t.Fatal(err)
	}
	if err := p.Go(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(300 * ms)
	before := switches(t, p.Pid())
	own, others := 0, 0
	for end := time.Now().Add(20 * time.Second); own < 100 && time.Now().Before(end); {
		time.Sleep(100 * ms)
		own, others = 0, 0
		for tid, n := range switches(t, p.Pid()) {
			if strings.HasPrefix(n.name, "work-") {
				own += n.switches - before[tid].switches
			} else {
				others += n.switches - before[tid].switches
			}
		}
	}
	// While two threads sleep 80 times each, the runtime's would 50 times and wake others.
	if own < 100 || others > own/20 {
		t.Errorf("%d sleeps of the workload's threads, %d of others", own, others)
	}
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
}

type slept struct {
	name     string
	switches int
}

// switches has how often each thread of a process has slept.
func switches(t *testing.T, pid int) map[string]slept {
	t.Helper()
	all := map[string]slept{}
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var s slept
		for line := range strings.Lines(string(text)) {
			if name, ok := strings.CutPrefix(line, "Name:"); ok {
				s.name = strings.TrimSpace(name)
			}
			if n, ok := strings.CutPrefix(line, "voluntary_ctxt_switches:"); ok {
				s.switches, _ = strconv.Atoi(strings.TrimSpace(n))
			}
		}
		all[file] = s
	}
	return all
}
