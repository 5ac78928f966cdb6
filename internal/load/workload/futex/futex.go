// Package futex lets threads of a workload wait for each other by the kernel's
// futex(2), in raw system calls past the Go runtime. A waiting thread sleeps and a
// woken one runs as in a C program, without Go's scheduler between. Each waiting
// thread keeps its P meanwhile: GOMAXPROCS must be larger than the number of threads
// that wait.
package futex

import (
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Operations of futex(2); x/sys has no names for them.
const (
	private = 128 // of this process alone

	opWait = 0 | private
	opWake = 1 | private
)

// All wakes every waiting thread.
const All = 1 << 30

// Wait sleeps while *word is v; it may return early.
func Wait(word *atomic.Uint32, v uint32) {
	_, _, _ = unix.RawSyscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), opWait, uintptr(v), 0, 0, 0)
}

// Wake wakes up to n that sleep on word.
func Wake(word *atomic.Uint32, n uintptr) {
	_, _, _ = unix.RawSyscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), opWake, n, 0, 0, 0)
}
