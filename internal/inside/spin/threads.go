package spin

import (
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// onCPU runs do on a thread of its own that stays on one CPU and ends with it.
func onCPU(cpu int, do func()) error {
	refused := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // without an unlock: the thread ends, and its affinity with it
		var set unix.CPUSet
		set.Set(cpu)
		err := unix.SchedSetaffinity(0, &set)
		if err == nil {
			shortSlice()
			undisturbed()
		}
		refused <- err
		if err == nil {
			do()
		}
	}()
	return <-refused
}

// slice is the shortest that the kernel gives: who asks for little at a time is chosen first (since 6.12; earlier kernels
// pass it over). A look is then late by less where others run.
const slice = 100 * time.Microsecond

func shortSlice() {
	attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Runtime: uint64(slice)}
	_ = unix.SchedSetAttr(0, &attr, 0) // it is no matter where it is refused
}

// undisturbed keeps the Go runtime's signal to a thread that runs for long away from this one: it would end every sleep.
// The runtime sends no second one while the first is pending.
func undisturbed() {
	var set unix.Sigset_t
	set.Val[0] = 1 << (unix.SIGURG - 1)
	_ = unix.PthreadSigmask(unix.SIG_BLOCK, &set, nil) // a sleep that ends early goes on
}

// sleepUntil sleeps in a raw system call until a moment of the clock.
func sleepUntil(now func() time.Duration, at time.Duration) {
	for left := at - now(); left > 0; left = at - now() {
		ts := unix.NsecToTimespec(int64(left))
		_, _, _ = unix.RawSyscall6(unix.SYS_CLOCK_NANOSLEEP, unix.CLOCK_MONOTONIC, 0, uintptr(unsafe.Pointer(&ts)), 0, 0, 0)
	}
}
