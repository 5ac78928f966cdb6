package provoke

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/test/lab/require"
	"github.com/unthrottle/unthrottle/test/wait"
)

// TestMain lets the test binary stand in for the program that children run.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == ChildCommand {
		os.Exit(ChildMain())
	}
	os.Exit(m.Run())
}

func start(t *testing.T, pools ...Pool) *Process {
	t.Helper()
	p, err := Start("", Spec{Pools: pools, Deadline: time.Minute})
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
	return p
}

// threads are the names and the user and kernel ticks of a process's threads.
func threads(t *testing.T, pid int) map[string][2]int {
	t.Helper()
	files, err := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/stat")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][2]int{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		_, rest, _ := strings.Cut(string(text), "(")
		end := strings.LastIndex(rest, ")")
		fields := strings.Fields(rest[end+1:])
		user, _ := strconv.Atoi(fields[11])
		kernel, _ := strconv.Atoi(fields[12])
		all[rest[:end]] = [2]int{user, kernel}
	}
	return all
}

func TestThreadsHaveNamesAndWork(t *testing.T) {
	require.Kernel(t)
	p := start(t, Pool{Name: "http-worker", Threads: 3, Work: ms, Every: 10 * ms},
		Pool{Name: "GC Thread", Threads: 1, Work: 5 * ms})
	wait.Until(t, "4 named threads", func() bool {
		all := threads(t, p.Pid())
		return !slices.ContainsFunc([]string{"http-worker-1", "http-worker-2", "http-worker-3", "GC Thread-1"},
			func(name string) bool { _, ok := all[name]; return !ok })
	})
	wait.Until(t, "the busy one works", func() bool { return threads(t, p.Pid())["GC Thread-1"][0] > 5 })
	all := threads(t, p.Pid())
	if busy, paced := all["GC Thread-1"], all["http-worker-1"]; paced[0] > busy[0] {
		t.Errorf("1 ms in 10 took more than a burner: %v, %v", paced, busy)
	}
}

func TestKernelWorkIsInTheKernel(t *testing.T) {
	require.Kernel(t)
	p := start(t, Pool{Name: "reader", Threads: 1, Work: 30 * ms, Kernel: true})
	wait.Until(t, "kernel work", func() bool { return threads(t, p.Pid())["reader-1"][1] > 30 })
	if all := threads(t, p.Pid())["reader-1"]; all[0]*5 > all[1] {
		t.Errorf("%d ticks in user mode, %d in the kernel", all[0], all[1])
	}
}

func TestSpecsThatMakeNoSense(t *testing.T) {
	ok := Pool{Name: "a", Threads: 1, Work: ms}
	for name, change := range map[string]func(*Pool){
		"no name":         func(p *Pool) { p.Name = "" },
		"long name":       func(p *Pool) { p.Name = "twelve bytes" },
		"no threads":      func(p *Pool) { p.Threads = 0 },
		"no work":         func(p *Pool) { p.Work = 0 },
		"backwards":       func(p *Pool) { p.Every = -1 },
		"together, never": func(p *Pool) { p.Together = true },
	} {
		p := ok
		change(&p)
		if c, err := Start("", Spec{Pools: []Pool{p}, Deadline: time.Minute}); err == nil {
			_ = c.Stop()
			t.Errorf("%s: started", name)
		}
	}
	if _, err := Start("", Spec{Pools: []Pool{ok}}); err == nil || !strings.Contains(err.Error(), "deadline") {
		t.Errorf("without a deadline: %v", err)
	}
}

// The worked example of the package's words; what others do is not the target's demand.
func TestDemand(t *testing.T) {
	s := Causes()[0]
	s.Loads = append(s.Loads, Load{"other", []Pool{{Name: "burner", Threads: 3, Work: ms}}})
	if got := s.Demand(); math.Abs(got-0.32) > 1e-9 {
		t.Errorf("8 threads, 10 ms in 250: %v CPUs", got)
	}
}

func TestScenariosAreSound(t *testing.T) {
	for _, s := range Causes() {
		known := map[string]bool{}
		for _, g := range s.Groups {
			if i := strings.LastIndex(g.Path, "/"); i > 0 && !known[g.Path[:i]] {
				t.Errorf("%s: %s comes before its parent", s.Name, g.Path)
			}
			known[g.Path] = true
		}
		if !known[s.Target] || s.Cause == "" {
			t.Errorf("%s: no target, or no cause", s.Name)
		}
		for _, l := range s.Loads {
			if err := (Spec{Pools: l.Pools}).Check(); err != nil || !known[l.Group] {
				t.Errorf("%s: %v", s.Name, err)
			}
		}
	}
}
