package loadgen

import (
	"errors"
	"fmt"
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/load/workload/service"
)

// sockets are connections to services of our own, used by raw system calls, so that
// nothing of the Go runtime lies between the kernel and the clock.
type sockets []unix.PollFd

func (s *sockets) connect(addr string) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("socket", err)
	}
	*s = append(*s, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
	// Room for the answers of a service that was stopped; the kernel grants less to a
	// user who is not root.
	const room = 4 << 20
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, room) != nil {
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, room)
	}
	if err := unix.Connect(fd, &unix.SockaddrUnix{Name: addr}); err != nil {
		return fmt.Errorf("no service at %.100q: %w", addr, err)
	}
	return nil
}

func (s sockets) close() {
	for _, c := range s {
		unix.Close(int(c.Fd))
	}
}

// send writes a request to one of the connections; false: it is full. Of one that the
// service has closed receive tells.
func (s sockets) send(at int, r service.Request) bool {
	var message [service.RequestBytes]byte
	r.Encode(&message)
	_, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(s[at].Fd), uintptr(unsafe.Pointer(&message)),
		service.RequestBytes, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0)
	return errno != unix.EAGAIN
}

// receive waits in ppoll(2) for answers, for at most so long, and hands them on.
func (s sockets) receive(patience time.Duration, take func(service.Answer)) error {
	ts := unix.NsecToTimespec(int64(patience))
	n, _, errno := unix.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&s[0])), uintptr(len(s)),
		uintptr(unsafe.Pointer(&ts)), 0, 0, 0)
	if errno != 0 && errno != unix.EINTR {
		return os.NewSyscallError("ppoll", errno)
	}
	if errno != 0 || n == 0 {
		return nil
	}
	for _, c := range s {
		if c.Revents == 0 {
			continue
		}
		if err := read(c.Fd, take); err != nil {
			return err
		}
	}
	return nil
}

// read takes answers from one connection, but not for so long that a sending
// would be late.
func read(fd int32, take func(service.Answer)) error {
	var message [service.AnswerBytes]byte
	for range 16 {
		n, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(&message)),
			service.AnswerBytes, unix.MSG_DONTWAIT, 0, 0)
		switch {
		case errno == unix.EAGAIN || errno == unix.EINTR:
			return nil
		case errno != 0 || n != service.AnswerBytes:
			return errors.New("the service has closed a connection: it ended before its time")
		}
		take(service.DecodeAnswer(&message))
	}
	return nil
}

// becomeRealTime asks for the least real-time priority for this thread. The thread
// works for some µs at a time and must not wait for others meanwhile. It returns
// false where the kernel refuses (no root, or a cgroup v1 without real-time share).
// The result then shows how late the sendings were.
func becomeRealTime() bool {
	priority := int32(1)
	_, _, errno := unix.RawSyscall(unix.SYS_SCHED_SETSCHEDULER, 0, unix.SCHED_FIFO, uintptr(unsafe.Pointer(&priority)))
	return errno == 0
}

// ownTime is the CPU time of this process.
func ownTime() time.Duration {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &ts) // the clock exists on every Linux
	return time.Duration(ts.Nano())
}
