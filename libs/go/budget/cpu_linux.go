package budget

import (
	"syscall"
	"time"
	"unsafe"
)

// processCPU is CLOCK_PROCESS_CPUTIME_ID of linux/time.h.
const processCPU = 2

// processCPUTime is the CPU time of this process, of all its threads.
func processCPUTime() (time.Duration, error) {
	var ts syscall.Timespec
	if _, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, processCPU, uintptr(unsafe.Pointer(&ts)), 0); errno != 0 {
		return 0, errno
	}
	return time.Duration(ts.Nano()), nil
}
