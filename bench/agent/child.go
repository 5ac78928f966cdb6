package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/kernel/procfs"
)

// child is a process of ours. A variant ends when its stdin closes, which the kernel does when this program
// ends, or at its deadline. The agent knows neither: it ends by a signal, from this program or from the
// kernel when this program ends.
type child struct {
	name   string
	cmd    *exec.Cmd
	stdin  io.Closer
	stderr output
}

// output is what a child has said so far; at most the first 64 KiB are kept.
type output struct {
	mu   sync.Mutex
	text []byte
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text = append(o.text, p[:min(len(p), max(0, 64<<10-len(o.text)))]...)
	return len(p), nil
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return string(o.text)
}

// job is what a variant is to do.
type job struct {
	Top     string        // the cgroup whose children are observed
	Cgroups int           // how many there are
	Stopped int           // how many of them, the first, are stopped again and again
	First   int           // a walker's first cgroup
	Step    int           // and how many further its next is
	Life    time.Duration // the variant's deadline
}

func start(name, program string, args ...string) (*child, error) {
	c := &child{name: name, cmd: exec.Command(program, args...)}
	c.cmd.Stderr = &c.stderr
	stdin, err := c.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	c.stdin = stdin
	// The signal comes when the thread that started the child ends: main holds on to its thread.
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return c, c.cmd.Start()
}

func startVariant(name string, j job) (*child, error) {
	text, err := json.Marshal(j)
	if err != nil {
		return nil, err
	}
	return start(name, "/proc/self/exe", "-variant", name, "-job", string(text))
}

func stopAll(children []*child) {
	for _, c := range children {
		_ = c.stdin.Close()
		_ = c.cmd.Process.Signal(syscall.SIGTERM)
	}
	for _, c := range children {
		end := time.AfterFunc(3*time.Second, func() { _ = c.cmd.Process.Kill() })
		_ = c.cmd.Wait()
		end.Stop()
	}
}

// cpuTimes is the CPU time of each child so far, by its CPU clock; nil where it has ended.
func cpuTimes(children []*child) []*time.Duration {
	times := make([]*time.Duration, len(children))
	for i, c := range children {
		var t unix.Timespec
		// The clock of another process (include/linux/posix-timers_types.h): ~pid << 3, and 2 for CPUCLOCK_SCHED.
		if unix.ClockGettime(int32(^c.cmd.Process.Pid<<3|2), &t) == nil {
			d := time.Duration(t.Nano())
			times[i] = &d
		}
	}
	return times
}

// residentBytes is VmRSS; 0 if the process has ended.
func residentBytes(pid int) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	value, _ := procfs.StatusField(string(text), "VmRSS")
	kib, _ := strconv.ParseInt(strings.TrimSuffix(value, " kB"), 10, 64)
	return kib << 10
}
