package provoke

import (
	"fmt"
	"os"
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/load/workload"
)

// kernelWork is work within one system call: one readv(2) of /dev/urandom. All its
// parts go to the same small buffer, so that it needs no memory. The device /dev/zero
// is too fast for that: one call gives at most 2 GiB, which takes 20 ms into a cached
// buffer. Fresh pages would take longer, but would need 2 GiB of memory.
type kernelWork struct {
	file    *os.File
	parts   []unix.Iovec  // all of the same buffer
	perPart time.Duration // CPU time of one part
}

const (
	kernelPart  = 256 << 10
	kernelParts = 1024 // UIO_MAXIOV
)

// openKernelWork calibrates: the parts' cost is the kernel's and this CPU's.
func openKernelWork() (*kernelWork, error) {
	f, err := os.Open("/dev/urandom")
	if err != nil {
		return nil, fmt.Errorf("kernel work: %w", err)
	}
	buffer := make([]byte, kernelPart)
	z := &kernelWork{file: f, parts: make([]unix.Iovec, kernelParts)}
	for i := range z.parts {
		z.parts[i].Base = &buffer[0]
		z.parts[i].SetLen(kernelPart)
	}
	runtime.LockOSThread() // the clock is this thread's
	defer runtime.UnlockOSThread()
	const parts = 32
	z.readParts(parts) // touches the buffer's pages
	before := workload.ThreadTime()
	z.readParts(parts)
	z.perPart = max(time.Microsecond, (workload.ThreadTime()-before)/parts)
	return z, nil
}

// read works for about that much CPU time, in one system call; one call goes no
// further than kernelParts allows.
func (z *kernelWork) read(work time.Duration) {
	z.readParts(int(min(kernelParts, max(1, work/z.perPart))))
}

func (z *kernelWork) readParts(n int) {
	// A read that is cut short by the end of the process needs no answer.
	_, _, _ = unix.RawSyscall(unix.SYS_READV, z.file.Fd(), uintptr(unsafe.Pointer(&z.parts[0])), uintptr(n))
}
