package threads

import (
	"fmt"
	"os"
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/load/workload"
)

const (
	// bufferBytes is what each part of a call writes to, again and again: it stays
	// in a CPU's cache, and memory does not grow with the call.
	bufferBytes = 1 << 20
	// maxParts is UIO_MAXIOV of the kernel: what one readv(2) may have.
	maxParts = 1024
	// CallerBytes is the memory that each thread of kind Kernel touches for its calls.
	CallerBytes = bufferBytes + maxParts*int(unsafe.Sizeof(unix.Iovec{}))
)

// caller makes system calls of a given CPU time: reads of /dev/zero, which the
// kernel does without a break, into one buffer.
type caller struct {
	fd    int
	parts []unix.Iovec
	// perSecond is how many bytes a second of CPU time reads.
	perSecond float64
}

// newCaller opens /dev/zero and measures how fast it is read.
func newCaller() (*caller, error) {
	fd, err := unix.Open("/dev/zero", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("/dev/zero: %w", err)
	}
	buffer := make([]byte, bufferBytes)
	c := &caller{fd: fd, parts: make([]unix.Iovec, maxParts), perSecond: 1}
	for i := range c.parts {
		c.parts[i].Base = &buffer[0]
	}
	const trial = 16 * bufferBytes
	runtime.LockOSThread() // one thread's clock
	defer runtime.UnlockOSThread()
	// The first reads are slower: the buffer has no memory yet.
	for range 4 {
		from := workload.ThreadTime()
		if err := c.read(trial); err != nil {
			return nil, err
		}
		if took := (workload.ThreadTime() - from).Seconds(); took > 0 {
			c.perSecond = max(c.perSecond, trial/took)
		}
	}
	return c, nil
}

// read makes one call.
func (c *caller) read(bytes int) error {
	n := 0
	for left := bytes; left > 0 && n < maxParts; n++ {
		c.parts[n].SetLen(min(left, bufferBytes))
		left -= bufferBytes
	}
	got, _, errno := unix.RawSyscall(unix.SYS_READV, uintptr(c.fd), uintptr(unsafe.Pointer(&c.parts[0])), uintptr(n))
	if errno != 0 {
		return os.NewSyscallError("readv", errno)
	}
	if got == 0 {
		return fmt.Errorf("/dev/zero has ended: it is not the device of that name")
	}
	return nil
}

// use is about d of CPU time in one call, or several where one cannot be that
// long (1 GiB, some 50 ms or more).
func (c *caller) use(d time.Duration) error {
	for left := int(d.Seconds() * c.perSecond); left > 0; left -= maxParts * bufferBytes {
		if err := c.read(min(left, maxParts*bufferBytes)); err != nil {
			return err
		}
	}
	return nil
}
