package child

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/test/lab/require"
)

// config of the children of these tests.
type config struct {
	Deadline time.Duration
	Hang     bool // nothing but the kernel's timer ends it
	Fail     string
}

// envParent makes the test binary a parent to be killed.
const envParent = "UNTHROTTLE_CHILD_PARENT"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "__test" {
		os.Exit(childMain())
	}
	if os.Getenv(envParent) != "" {
		p, err := Start(Options{Command: "__test", Config: config{Deadline: time.Minute}})
		if err != nil {
			panic(err)
		}
		fmt.Println(p.Pid())
		time.Sleep(time.Minute)
	}
	os.Exit(m.Run())
}

// childMain says how many CPUs it may use, and then every word that it is told.
func childMain() int {
	var c config
	inside, err := Enter(&c)
	if err == nil && c.Fail == "" {
		err = inside.EndAfter(c.Deadline)
	}
	if c.Fail != "" {
		err = errors.New(c.Fail)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	if c.Hang {
		select {}
	}
	var cpus unix.CPUSet
	_ = unix.SchedGetaffinity(0, &cpus)
	fmt.Println(cpus.Count())
	for {
		word, ok := inside.Word()
		if !ok {
			return 0
		}
		fmt.Printf("%c\n", word)
	}
}

func started(t *testing.T, c config, cpus cpuset.CPUSet) *Process {
	t.Helper()
	p, err := Start(Options{Command: "__test", Config: c, CPUs: cpus})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Stop() })
	return p
}

func TestWordsAndTheEnd(t *testing.T) {
	require.Kernel(t)
	p := started(t, config{Deadline: time.Minute}, cpuset.New())
	out := bufio.NewReader(p.Out())
	if _, err := out.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	if err := p.Tell('x'); err != nil {
		t.Fatal(err)
	}
	if line, err := out.ReadString('\n'); err != nil || line != "x\n" {
		t.Errorf("it heard %q, %v", line, err)
	}
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
	if err := unix.Kill(p.Pid(), 0); !errors.Is(err, unix.ESRCH) {
		t.Errorf("child %d after Stop: %v", p.Pid(), err)
	}
	if err := p.Tell('y'); err == nil || !strings.Contains(err.Error(), "ended") {
		t.Errorf("a word to the dead: %v", err)
	}
}

func TestChildRunsOnItsCPUsAndItsParentOnAll(t *testing.T) {
	require.Kernel(t)
	var before, after unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		t.Fatal(err)
	}
	one := 0
	for !before.IsSet(one) {
		one++
	}
	p := started(t, config{Deadline: time.Minute}, cpuset.New(one))
	if line, err := bufio.NewReader(p.Out()).ReadString('\n'); err != nil || line != "1\n" {
		t.Errorf("it may use %q CPUs, %v", line, err)
	}
	if err := unix.SchedGetaffinity(0, &after); err != nil || after != before {
		t.Errorf("our own CPUs have changed from %v to %v, %v", before, after, err)
	}
}

// ends waits for a child's end without touching it.
func ends(t *testing.T, pid int) {
	t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 30_000); n != 1 {
		t.Errorf("child %d still runs, %v", pid, err)
	}
}

func TestDeadlineEndsIt(t *testing.T) {
	require.Kernel(t)
	ends(t, started(t, config{Deadline: time.Second}, cpuset.New()).Pid())
}

// The kernel's timer must end a child whose own threads do not. Its own timer
// is a goroutine's; this child's deadline is so that both are armed, and SIGKILL
// comes a second later at most.
func TestKernelEndsOneThatHangs(t *testing.T) {
	require.Kernel(t)
	p := started(t, config{Deadline: time.Second, Hang: true}, cpuset.New())
	ends(t, p.Pid())
}

func TestKilledByAnother(t *testing.T) {
	require.Kernel(t)
	p := started(t, config{Deadline: time.Minute}, cpuset.New())
	if err := unix.Kill(p.Pid(), unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := p.Stop(); err == nil || !strings.Contains(err.Error(), "signal: killed") {
		t.Errorf("Stop after another process's SIGKILL: %v", err)
	}
}

func TestChildEndsWhenItsParentIsKilled(t *testing.T) {
	require.Kernel(t)
	parent := exec.Command("/proc/self/exe")
	parent.Env = append(os.Environ(), envParent+"=1")
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	fd, err := unix.PidfdOpen(pid, 0) // stays this very process when it is reaped
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()
	if n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 30_000); n != 1 {
		t.Errorf("child %d outlives its parent: %v", pid, err)
	}
}

func TestFailuresAreTold(t *testing.T) {
	require.Kernel(t)
	p := started(t, config{Fail: "no bananas"}, cpuset.New())
	ends(t, p.Pid())
	if err := p.Stop(); err == nil || !strings.Contains(err.Error(), "no bananas") {
		t.Errorf("got %v", err)
	}
	if _, err := Start(Options{Exe: "/nonexistent", Command: "__test", Config: config{}}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	if _, err := Start(Options{Command: "__test", Config: strings.Repeat("x", maxConfig)}); err == nil ||
		!strings.Contains(err.Error(), "bytes") {
		t.Errorf("got %v", err)
	}
	if _, err := Start(Options{Command: "__test", Config: config{}, CPUs: cpuset.New(1000)}); err == nil {
		t.Error("started on a CPU that is not there")
	}
}

func FuzzDecode(f *testing.F) {
	for _, line := range []string{"{\"Deadline\":5}\n", "{}\n", "{}{}\n", "{\"X\":1}\n", "", "{", "null\n"} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var c config
		err := decode(bufio.NewReaderSize(strings.NewReader(text), 16), &c)
		if err == nil && !strings.Contains(text, "\n") {
			t.Errorf("%q was cut off, and taken", text)
		}
	})
}
