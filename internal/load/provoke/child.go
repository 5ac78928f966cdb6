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

	"github.com/unthrottle/unthrottle/internal/load/workload"
	"github.com/unthrottle/unthrottle/internal/load/workload/child"
	"github.com/unthrottle/unthrottle/internal/load/workload/futex"
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
	begin := spec.prepare(kernel)
	if _, err := os.Stdout.Write([]byte{1}); err != nil {
		return err
	}
	if _, ok := inside.Word(); !ok {
		return nil
	}
	begin.at = workload.Now() + 20*ms
	begin.word.Store(1)
	futex.Wake(&begin.word, futex.All)
	for {
		if _, ok := inside.Word(); !ok {
			return nil
		}
	}
}

// beginning is the one moment at which all threads start.
type beginning struct {
	word atomic.Uint32 // a futex: 1 when at is set
	at   time.Duration // CLOCK_MONOTONIC
}

// prepare makes all threads, each with its name. They wait in raw system calls: the
// thread of the runtime that looks after goroutines left waiting is held.
func (s Spec) prepare(kernel *kernelWork) *beginning {
	begin := new(beginning)
	var ready sync.WaitGroup
	for _, p := range s.Pools {
		for i := range p.Threads {
			ready.Add(1)
			go func() {
				runtime.LockOSThread()
				workload.SetName(fmt.Sprintf("%s-%d", p.Name, i+1))
				shortSlice()
				ready.Done()
				for begin.word.Load() == 0 {
					futex.Wait(&begin.word, 0)
				}
				p.run(i, begin.at, kernel)
			}()
		}
	}
	ready.Wait()
	return begin
}

// roundsPerLook is how many rounds pass between two readings of the clock, about 0.5
// us.
const roundsPerLook = 1_000

// run is the life of the pool's thread number i.
func (p Pool) run(i int, start time.Duration, kernel *kernelWork) {
	offset := time.Duration(0)
	if !p.Together && p.Every > 0 {
		offset = p.Every * time.Duration(i) / time.Duration(p.Threads)
	}
	next, x := start+offset, uint64(1)
	for {
		workload.SleepUntil(next)
		if p.Kernel {
			kernel.read(p.Work)
		} else {
			x = workload.BurnFor(p.Work, x, roundsPerLook, nil)
		}
		if p.Every == 0 {
			continue
		}
		// What became due meanwhile is left out.
		next += p.Every
		if now := workload.Now(); next < now {
			next += (now - next + p.Every - 1) / p.Every * p.Every
		}
	}
}

// nameRuntime makes the Go runtime's own threads count to a pool. They wake up a
// hundred times a second, and would otherwise be a pool of their own. Threads made
// later inherit the name.
func nameRuntime(name string) {
	tasks, _ := os.ReadDir("/proc/self/task")
	for _, t := range tasks {
		_ = os.WriteFile("/proc/self/task/"+t.Name()+"/comm", []byte(name), 0) // one that ended meanwhile needs none
	}
}

// shortSlice asks for the shortest slice (sched_setattr(2), sched_runtime of a fair
// thread, since 6.12). A thread that wakes up then preempts another program at once,
// not at the end of that program's slice. Older kernels ignore it.
func shortSlice() {
	attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_NORMAL, Runtime: 100_000}
	_, _, _ = unix.RawSyscall(unix.SYS_SCHED_SETATTR, 0, uintptr(unsafe.Pointer(&attr)), 0)
}
