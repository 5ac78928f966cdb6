package probe_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/load/cgrouptest"
)

// TestMain lets the test binary serve as the programs that children run.
func TestMain(m *testing.M) {
	cgrouptest.Child()
	if len(os.Args) > 2 && os.Args[1] == childCommand {
		child(os.Args[2], os.Args[3:])
		os.Exit(0)
	}
	os.Exit(m.Run())
}

const (
	childCommand = "probe-test-child"
	// childLife bounds every child, also after a failed test.
	childLife = 60 * time.Second
)

// child waits for a line on its standard input and then works.
func child(kind string, args []string) {
	time.AfterFunc(childLife, func() { os.Exit(3) })
	in := bufio.NewReader(os.Stdin)
	if _, err := in.ReadString('\n'); err != nil {
		os.Exit(2)
	}
	switch kind {
	case "pingpong":
		n, _ := strconv.Atoi(args[0])
		fmt.Println(pingPong(n, len(args) > 1))
	case "nap":
		nap()
	case "burn":
		for range args {
			go func() {
				runtime.LockOSThread()
				for i := 0; ; i++ {
				}
			}()
		}
	case "exec":
		go execElsewhere()
	case "rename":
		go rename()
	case "serve":
		serve(args[0], args[1])
	case "serveudp":
		serveUDP(args[0])
	case "answerudp":
		n, _ := strconv.Atoi(args[0])
		answerUDP(n)
	case "handonudp":
		handOnUDP()
	case "fork":
		go func() {
			for {
				_ = exec.Command("/proc/self/exe", childCommand, "nothing").Run()
			}
		}()
	}
	_, _ = in.ReadString('\n') // until the test closes it
}

// pingPong passes a byte to and fro between two threads n times, on one CPU or any, and gives the time that took.
func pingPong(n int, oneCPU bool) time.Duration {
	var there, back [2]int
	if unix.Pipe(there[:]) != nil || unix.Pipe(back[:]) != nil {
		os.Exit(2)
	}
	turn := func(from, to int, first bool) {
		runtime.LockOSThread()
		if oneCPU {
			var set unix.CPUSet
			set.Set(0)
			_ = unix.SchedSetaffinity(0, &set)
		}
		b := []byte{0}
		for i := range n {
			if first || i > 0 {
				rawWrite(to, b)
			}
			rawRead(from, b)
		}
		if !first {
			rawWrite(to, b)
		}
	}
	start := time.Now()
	go turn(there[0], back[1], false)
	turn(back[0], there[1], true)
	return time.Since(start)
}

// nap sleeps again and again, and uses more memory in between than a CPU's cache holds.
func nap() {
	const stride = 64
	memory := make([]byte, 8<<20)
	for range 2 {
		go func() {
			runtime.LockOSThread()
			for {
				_ = unix.Nanosleep(&unix.Timespec{Nsec: 1e6}, nil)
				for i := 0; i < len(memory); i += stride {
					memory[i]++
				}
			}
		}()
	}
}

// rawRead blocks its thread without Go's scheduler.
func rawRead(fd int, b []byte) {
	unix.RawSyscall(unix.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), 1)
}

func rawWrite(fd int, b []byte) {
	unix.RawSyscall(unix.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), 1)
}

// execElsewhere calls execve from a thread that is not the first. That thread then has the first one's number, start
// time and slot.
func execElsewhere() {
	runtime.LockOSThread()
	if unix.Gettid() == unix.Getpid() {
		go execElsewhere() // while this one keeps the first thread
		select {}
	}
	_ = unix.Exec("/proc/self/exe", []string{"probe-test", childCommand, "nothing"}, os.Environ())
	os.Exit(2)
}

// rename gives its thread a new name as fast as it can.
func rename() {
	runtime.LockOSThread()
	for i := 0; ; i++ {
		name := append([]byte(fmt.Sprintf("n%d", i)), 0)
		_ = unix.Prctl(unix.PR_SET_NAME, uintptr(unsafe.Pointer(&name[0])), 0, 0, 0)
	}
}

// running is a child in a cgroup.
type running struct {
	*exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// start moves a child, still waiting, into a cgroup and then lets it work. A waiting thread avoids a difference: after
// a move of a running thread the cgroup's counter changes immediately, but the probe only at the next tick. On a busy
// machine's guest that tick may come late.
func start(t testing.TB, tr *cgrouptest.Tree, path, kind string, args ...string) running {
	t.Helper()
	c := exec.Command("/proc/self/exe", append([]string{childCommand, kind}, args...)...)
	// No preemption, because a thread that burns would sleep for it, on a slow machine for long.
	c.Env = append(os.Environ(), "GOMAXPROCS=4", "GODEBUG=asyncpreemptoff=1")
	in, err := c.StdinPipe()
	must(t, err)
	out, err := c.StdoutPipe()
	must(t, err)
	c.Stderr = os.Stderr
	must(t, c.Start())
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	must(t, c.Process.Signal(unix.SIGSTOP))
	must(t, unix.Waitid(unix.P_PID, c.Process.Pid, nil, unix.WSTOPPED, nil))
	attach(t, tr, path, c.Process.Pid)
	must(t, c.Process.Signal(unix.SIGCONT))
	_, err = in.Write([]byte("go\n"))
	must(t, err)
	return running{c, in, bufio.NewReader(out)}
}

// attach puts a process into a cgroup of every hierarchy.
func attach(t testing.TB, tr *cgrouptest.Tree, path string, pid int) {
	t.Helper()
	for _, c := range cgroup.Controllers() {
		if _, ok := tr.Host.Version(c); ok {
			must(t, tr.Host.Attach(c, path, pid))
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
