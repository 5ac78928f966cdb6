package rebalance

import (
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// setAffinity binds a thread of a child of the test's own.
func setAffinity(t *testing.T, tid int, mask []byte) {
	t.Helper()
	if _, _, errno := unix.RawSyscall(unix.SYS_SCHED_SETAFFINITY, uintptr(tid), uintptr(len(mask)),
		uintptr(unsafe.Pointer(&mask[0]))); errno != 0 {
		t.Fatal(errno)
	}
}
