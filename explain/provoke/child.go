package provoke

import (
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/workload/child"
)

// ChildMain is the whole life of a child; its result is the exit code. It is of
// use only to a process started by [Start].
func ChildMain() int {
	if err := live(); err != nil {
		fmt.Fprintf(os.Stderr, "provoke: %v\n", err)
		return 2
	}
	return 0
}

func live() error {
	var spec Spec
	inside, err := child.Begin(&spec, &spec.Deadline)
	if err != nil {
		return err
	}
	if len(spec.Pools) > 0 {
		nameRuntime(spec.Pools[0].Name + "-0")
	}
	var kernel *kernelWork
	for _, p := range spec.Pools {
		if p.Kernel && kernel == nil {
			if kernel, err = openKernelWork(); err != nil {
				return err
			}
		}
	}
	if _, err := os.Stdout.Write([]byte{1}); err != nil {
		return err
	}
	if _, ok := inside.Word(); !ok {
		return nil
	}
	start := newStart()
	for _, p := range spec.Pools {
		for i := range p.Threads {
			start.ready.Add(1)
			go func() {
				runtime.LockOSThread()
				setName(fmt.Sprintf("%s-%d", p.Name, i+1))
				shortSlice()
				start.wait()
				p.run(i, start.at, kernel)
			}()
		}
	}
	start.release()
	for {
		if _, ok := inside.Word(); !ok {
			return nil
		}
	}
}

// starting lets all threads begin at one moment, when each has its name.
type starting struct {
	ready sync.WaitGroup
	begin chan struct{}
	at    time.Duration // CLOCK_MONOTONIC
}

func newStart() *starting { return &starting{begin: make(chan struct{})} }

func (s *starting) wait() {
	s.ready.Done()
	<-s.begin
}

func (s *starting) release() {
	s.ready.Wait()
	s.at = clock(unix.CLOCK_MONOTONIC) + 20*time.Millisecond
	close(s.begin)
}

// run is the life of the pool's thread number i.
func (p Pool) run(i int, start time.Duration, kernel *kernelWork) {
	offset := time.Duration(0)
	if !p.Together && p.Every > 0 {
		offset = p.Every * time.Duration(i) / time.Duration(p.Threads)
	}
	next := start + offset
	for {
		sleepUntil(next)
		if p.Kernel {
			kernel.read(p.Work)
		} else {
			burn(p.Work)
		}
		if p.Every == 0 {
			continue
		}
		// What became due meanwhile is left out.
		next += p.Every
		if now := clock(unix.CLOCK_MONOTONIC); next < now {
			next += (now - next + p.Every - 1) / p.Every * p.Every
		}
	}
}

// rounds between two looks at the clock: about 2 us.
const rounds = 4_000

// sink takes what is computed, so that no compiler drops it.
var sink atomic.Uint64

// burn takes that much CPU time of this thread, in user mode but for the looks at its clock.
func burn(work time.Duration) {
	end := clock(unix.CLOCK_THREAD_CPUTIME_ID) + work
	x := uint64(1)
	for clock(unix.CLOCK_THREAD_CPUTIME_ID) < end {
		for range rounds {
			x = x*6364136223846793005 + 1442695040888963407
		}
	}
	if x == 0 {
		sink.Store(x)
	}
}

// clock must not be split: a look at the stack's end is where the Go runtime's monitor would take the thread off its CPU
// after 10 ms, and a long run would be several.
//
//go:nosplit
func clock(id int) time.Duration {
	var ts unix.Timespec
	// Both clocks exist on every Linux; the call cannot fail.
	_, _, _ = unix.RawSyscall(unix.SYS_CLOCK_GETTIME, uintptr(id), uintptr(unsafe.Pointer(&ts)), 0)
	return time.Duration(ts.Nano())
}

// sleepUntil is one system call that the Go runtime is not told of.
func sleepUntil(t time.Duration) {
	ts := unix.NsecToTimespec(int64(t))
	const absolute = 1 // TIMER_ABSTIME
	_, _, _ = unix.RawSyscall6(unix.SYS_CLOCK_NANOSLEEP, unix.CLOCK_MONOTONIC, absolute, uintptr(unsafe.Pointer(&ts)), 0, 0, 0)
}

func setName(name string) {
	b := append([]byte(name), 0)
	_, _, _ = unix.RawSyscall(unix.SYS_PRCTL, unix.PR_SET_NAME, uintptr(unsafe.Pointer(&b[0])), 0)
}

// nameRuntime lets the Go runtime's own threads count to a pool: they wake up a hundred times a second, and would be a
// pool of their own that the others stop. Threads made later inherit the name.
func nameRuntime(name string) {
	tasks, _ := os.ReadDir("/proc/self/task")
	for _, t := range tasks {
		_ = os.WriteFile("/proc/self/task/"+t.Name()+"/comm", []byte(name), 0) // one that ended meanwhile needs none
	}
}

// shortSlice asks for the shortest slice (sched_setattr(2), sched_runtime of a fair thread, since 6.12): a thread that
// wakes up then takes the CPU from a stranger at once instead of when the stranger's slice ends. Older kernels take no
// notice.
func shortSlice() {
	attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_NORMAL, Runtime: 100_000}
	_, _, _ = unix.RawSyscall(unix.SYS_SCHED_SETATTR, 0, uintptr(unsafe.Pointer(&attr)), 0)
}
