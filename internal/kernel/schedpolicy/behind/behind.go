// Package behind lets this process run behind all other work of the host for a while: it replays recordings and loads programs next to
// a service that is being looked at, and must not take CPUs from it.
//
// Its threads get SCHED_IDLE, and Go runs on a quarter of the CPUs. A thread of SCHED_IDLE has a weight of 3 where others have 1024,
// and the kernel takes a CPU that has only such threads for an idle one when it places a thread that wakes up (sched_idle_cpu). The
// policy counts within the process's own cgroup; between cgroups their weights decide, and few CPUs are what is left for others.
package behind

import (
	"errors"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/kernel/schedpolicy"
	"github.com/unthrottle/unthrottle/internal/kernel/schedpolicy/schedhost"
)

// idle is the policy of threads that run behind others.
var idle = schedpolicy.Policy{Class: "idle"}

// CPUs is on how many of a host's CPUs work runs that gives way.
func CPUs(host int) int { return max(1, host/4) }

// Others has this process run behind others from now on, until end is called. Where others fill all CPUs it would hardly run at all: after
// patience it gets its policy back, and stays on few CPUs. Threads that have another policy than SCHED_OTHER keep it: somebody chose
// it. All do where this process may not take SCHED_IDLE back (CAP_SYS_NICE). gaveWay says that it did so until the end.
func Others(patience time.Duration) (end func() (gaveWay bool)) {
	before := runtime.GOMAXPROCS(0)
	runtime.GOMAXPROCS(min(before, CPUs(runtime.NumCPU())))
	if !mayReturn() {
		return func() bool {
			runtime.GOMAXPROCS(before)
			return false
		}
	}
	var back sync.Once
	gaveWay := true
	change(schedpolicy.Other, idle)
	timer := time.AfterFunc(patience, func() {
		back.Do(func() {
			gaveWay = false
			change(idle, schedpolicy.Other)
		})
	})
	return func() bool {
		timer.Stop()
		back.Do(func() { change(idle, schedpolicy.Other) })
		runtime.GOMAXPROCS(before)
		return gaveWay
	}
}

// mayReturn reports whether a thread of this process may become idle and return from it.
func mayReturn() bool {
	tried := make(chan error)
	go func() {
		runtime.LockOSThread() // ends with the goroutine, whatever its policy is then
		host, tid := schedhost.New("/proc"), unix.Gettid()
		p, err := host.Read(tid)
		if err == nil && !p.Same(schedpolicy.Other) {
			err = errors.New("it has a policy of its own")
		}
		if err == nil {
			err = host.Write(tid, p.As(idle))
		}
		if err == nil {
			err = host.Write(tid, p)
		}
		tried <- err
	}()
	return <-tried == nil
}

// rounds bounds how often the threads are listed: those that began meanwhile have the policy of the thread that began them.
const rounds = 5

// change gives the threads of this process that have one policy another one. A thread that ended or refuses is left out.
func change(from, to schedpolicy.Policy) {
	host := schedhost.New("/proc")
	for range rounds {
		tasks, err := filepath.Glob("/proc/self/task/*")
		if err != nil {
			return
		}
		changed := false
		for _, name := range tasks {
			tid, err := strconv.Atoi(filepath.Base(name))
			if err != nil {
				continue
			}
			p, err := host.Read(tid)
			changed = err == nil && p.Same(from) && host.Write(tid, p.As(to)) == nil || changed
		}
		if !changed {
			return
		}
	}
}
