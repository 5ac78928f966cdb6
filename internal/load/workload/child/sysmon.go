package child

import (
	"fmt"
	"os"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// Hold stops the thread of the child's Go runtime that looks after its goroutines
// (sysmon of runtime/proc.go); call it when all of the child's threads exist. Some
// hundred times a second it asks threads that seem to run for too long to let others
// run. Threads that wait for a CPU or for quota seem to. This puts them to sleep for
// a moment and wakes three more threads. It costs up to 1 % of a CPU per process and
// takes quota on CPUs where the scenario runs nothing. Work also seems to end before
// it does. The threads of a workload need nothing of it.
//
// The thread stays in a ptrace stop (ptrace(2), PTRACE_INTERRUPT) until it is killed
// with its process, or this process ends. Where the kernel does not allow it, the child
// runs as it is, and [Process.Disturbed] says why.
func (p *Process) Hold() { p.disturbed = p.holdWatcher() }

// Disturbed returns why [Process.Hold] failed: the child's runtime then takes up to 1
// % of a CPU. nil: Hold succeeded or was not called.
func (p *Process) Disturbed() error { return p.disturbed }

func (p *Process) holdWatcher() error {
	pid := p.Pid()
	tid, err := watcher(pid)
	if err != nil {
		return err
	}
	held := make(chan error)
	go func() {
		// The tracer is a thread: it must stay, and alone may reap who it traces, or
		// the process would never be seen to end.
		runtime.LockOSThread()
		err := unix.PtraceSeize(tid)
		if err == nil {
			err = unix.PtraceInterrupt(tid)
		}
		if err == nil {
			_, err = wait(tid)
		}
		held <- err
		for err == nil {
			_, err = wait(tid) // ECHILD once it is reaped
		}
	}()
	if err := <-held; err != nil {
		return fmt.Errorf("hold thread %d of process %d: %w", tid, pid, err)
	}
	return nil
}

func wait(tid int) (status unix.WaitStatus, err error) {
	for {
		if _, err = unix.Wait4(tid, &status, unix.WALL, nil); err != unix.EINTR {
			return status, err
		}
	}
}

// watcher finds that thread: the first that a Go program makes.
func watcher(pid int) (int, error) {
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return 0, err
	}
	first, lowest := 0, 0
	for _, e := range entries {
		tid, err := strconv.Atoi(e.Name())
		if err != nil || tid == pid {
			continue
		}
		if tid > pid && (first == 0 || tid < first) {
			first = tid
		}
		if lowest == 0 || tid < lowest {
			lowest = tid
		}
	}
	if first == 0 {
		first = lowest // thread IDs began again after the process was made
	}
	if first == 0 {
		return 0, fmt.Errorf("process %d has one thread only", pid)
	}
	return first, nil
}
