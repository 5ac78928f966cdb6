package guest

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/test/lab/wire"
)

// drainGrace bounds the wait for output that a step's children hold open.
const drainGrace = 2 * time.Second

// reaper waits for every child: process 1 inherits the orphans of all others.
type reaper struct {
	// quitGrace is the time between SIGQUIT (a Go program prints its goroutines) and SIGKILL.
	quitGrace time.Duration

	mu      sync.Mutex
	waiting map[int]chan syscall.WaitStatus
}

func startReaper() *reaper {
	r := &reaper{quitGrace: 15 * time.Second, waiting: map[int]chan syscall.WaitStatus{}}
	go r.loop()
	return r
}

func (r *reaper) loop() {
	for {
		// The loop looks before it reaps. In between, no child may be reaped whose waiter is not registered yet, hence
		// the lock in start.
		var info unix.Siginfo
		if err := unix.Waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WNOWAIT, nil); err != nil {
			time.Sleep(10 * time.Millisecond) // ECHILD: no child
			continue
		}
		r.mu.Lock()
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		if err == nil && pid > 0 {
			if c := r.waiting[pid]; c != nil {
				c <- status
				delete(r.waiting, pid)
			}
		}
		r.mu.Unlock()
	}
}

// start starts a process and returns where its status will arrive.
func (r *reaper) start(path string, argv []string, attr *os.ProcAttr) (pid int, status <-chan syscall.WaitStatus, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p, err := os.StartProcess(path, argv, attr)
	if err != nil {
		return 0, nil, err
	}
	pid = p.Pid
	_ = p.Release()
	c := make(chan syscall.WaitStatus, 1)
	r.waiting[pid] = c
	return pid, c, nil
}

// run runs a step to its end, or to its limit, and kills its remaining processes.
func (r *reaper) run(step wire.Step, stdout, stderr io.Writer) wire.ExitStatus {
	start := time.Now()
	status := r.follow(step, stdout, stderr)
	status.WallUsec = time.Since(start).Microseconds()
	killOthers()
	return status
}

// killOthers kills every process but this one. It does so only as process 1: elsewhere they are not ours.
func killOthers() {
	if os.Getpid() == 1 {
		_ = unix.Kill(-1, unix.SIGKILL)
	}
}

func (r *reaper) follow(step wire.Step, stdout, stderr io.Writer) wire.ExitStatus {
	if len(step.Argv) == 0 {
		return wire.ExitStatus{NotRun: "no command"}
	}
	path, err := exec.LookPath(step.Argv[0])
	if err != nil {
		return wire.ExitStatus{NotRun: err.Error()}
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return wire.ExitStatus{NotRun: err.Error()}
	}
	defer null.Close()
	var outputs [2]output
	for i, to := range []io.Writer{stdout, stderr} {
		if outputs[i], err = newOutput(to); err != nil {
			return wire.ExitStatus{NotRun: err.Error()}
		}
	}
	pid, ended, err := r.start(path, step.Argv, &os.ProcAttr{
		Dir:   step.Dir,
		Env:   append(os.Environ(), step.Env...),
		Files: []*os.File{null, outputs[0].child, outputs[1].child},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	for _, o := range outputs {
		defer o.finish()
		o.child.Close()
	}
	if err != nil {
		return wire.ExitStatus{NotRun: err.Error()}
	}
	var limit <-chan time.Time
	if step.LimitSec > 0 {
		limit = time.After(time.Duration(step.LimitSec) * time.Second)
	}
	select {
	case s := <-ended:
		return exitStatus(s, false)
	case <-limit:
	}
	_ = unix.Kill(pid, unix.SIGQUIT)
	select {
	case s := <-ended:
		return exitStatus(s, true)
	case <-time.After(r.quitGrace):
	}
	_ = unix.Kill(-pid, unix.SIGKILL) // its session, which it leads
	return exitStatus(<-ended, true)
}

func exitStatus(s syscall.WaitStatus, limit bool) wire.ExitStatus {
	status := wire.ExitStatus{Code: s.ExitStatus(), Limit: limit}
	if s.Signaled() {
		status.Signal = unix.SignalName(s.Signal())
	}
	return status
}

// output passes on what a child writes into its end of a pipe.
type output struct {
	child, ours *os.File
	drained     chan struct{}
}

func newOutput(to io.Writer) (output, error) {
	ours, child, err := os.Pipe()
	if err != nil {
		return output{}, err
	}
	o := output{child, ours, make(chan struct{})}
	go func() {
		defer close(o.drained)
		_, _ = io.Copy(to, ours) // if the host is gone, the guest's limit ends this
	}()
	return o, nil
}

func (o output) finish() {
	select {
	case <-o.drained:
	case <-time.After(drainGrace):
	}
	// Closing ends the copy: nothing is written to the host's side afterwards.
	o.ours.Close()
	<-o.drained
}

// shell runs a shell on the console until it ends.
func shell(r *reaper) {
	tty, err := os.OpenFile("/dev/ttyS0", os.O_RDWR, 0)
	if err != nil {
		fmt.Fprintln(os.Stderr, "lab guest:", err)
		return
	}
	defer tty.Close()
	_, ended, err := r.start("/bin/sh", []string{"-sh"}, &os.ProcAttr{
		Dir:   "/root",
		Env:   append(os.Environ(), "PS1=lab:\\w# ", "TERM=vt100"),
		Files: []*os.File{tty, tty, tty},
		Sys:   &syscall.SysProcAttr{Setsid: true, Setctty: true},
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "lab guest:", err)
		return
	}
	<-ended
}
