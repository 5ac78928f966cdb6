package workload

import (
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Now is CLOCK_MONOTONIC, by which records are stamped.
func Now() time.Duration { return clock(unix.CLOCK_MONOTONIC) }

// ThreadTime is the calling thread's CPU time. Reading it has an effect: the kernel
// charges the thread and its quota up to then (task_sched_runtime).
func ThreadTime() time.Duration { return clock(unix.CLOCK_THREAD_CPUTIME_ID) }

func clock(id uintptr) time.Duration {
	var ts unix.Timespec
	// Both clocks exist on every Linux; the call cannot fail.
	_, _, _ = unix.RawSyscall(unix.SYS_CLOCK_GETTIME, id, uintptr(unsafe.Pointer(&ts)), 0)
	return time.Duration(ts.Nano())
}

// SleepUntil sleeps until a moment of [Now], in raw system calls, past the Go
// runtime.
func SleepUntil(at time.Duration) {
	ts := unix.NsecToTimespec(int64(at))
	for Now() < at {
		_, _, _ = unix.RawSyscall6(unix.SYS_CLOCK_NANOSLEEP, unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME,
			uintptr(unsafe.Pointer(&ts)), 0, 0, 0)
	}
}

// SetName names the calling thread as /proc shows it: 15 bytes of name are kept.
func SetName(name string) {
	var text [16]byte
	copy(text[:15], name)
	_, _, _ = unix.RawSyscall(unix.SYS_PRCTL, unix.PR_SET_NAME, uintptr(unsafe.Pointer(&text)), 0)
}

// sleep is one clock_nanosleep(2) and what it took. Both are raw system calls past
// the Go runtime, so that its locks and timers add nothing.
func sleep(d time.Duration) (start, took time.Duration) {
	ts := unix.NsecToTimespec(int64(d))
	start = Now()
	_, _, _ = unix.RawSyscall6(unix.SYS_CLOCK_NANOSLEEP, unix.CLOCK_MONOTONIC, 0, uintptr(unsafe.Pointer(&ts)), 0, 0, 0)
	return start, Now() - start
}
