package service

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// reader is one I/O thread: it waits for requests on its connections and hands
// them to their pools, or serves them itself.
type reader struct {
	s      *server
	epoll  int
	listen int // -1: another one accepts
	next   int // reader that gets the next connection
}

// newReader makes an I/O thread's epoll instance.
func newReader(s *server, listen int) (*reader, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	r := &reader{s: s, epoll: fd, listen: listen}
	if listen >= 0 {
		err = r.watch(listen)
	}
	return r, err
}

func (r *reader) watch(fd int) error {
	return os.NewSyscallError("epoll_ctl", unix.EpollCtl(r.epoll, unix.EPOLL_CTL_ADD, fd,
		&unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}))
}

// run reads until the process ends.
func (r *reader) run() {
	var events [64]unix.EpollEvent
	for {
		n, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(r.epoll), uintptr(unsafe.Pointer(&events[0])),
			uintptr(len(events)), ^uintptr(0), 0, 0)
		if errno != 0 {
			continue
		}
		for _, e := range events[:n] {
			if int(e.Fd) == r.listen {
				r.accept()
				continue
			}
			r.s.world.enter()
			r.read(e.Fd)
			r.s.world.leave()
		}
	}
}

// accept takes a connection of our own user and gives it to the next reader.
func (r *reader) accept() {
	fd, _, err := unix.Accept4(r.listen, unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK)
	if err != nil {
		return // it went away again
	}
	peer, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	s := r.s
	if err != nil || int(peer.Uid) != os.Getuid() || s.connections.Add(1) > maxConnections {
		unix.Close(fd)
		return
	}
	to := s.readers[r.next%len(s.readers)]
	r.next++
	if to.watch(fd) != nil {
		unix.Close(fd)
	}
}

// batch bounds how long one connection keeps a reader from the others.
const batch = 32

// read takes requests from one connection.
func (r *reader) read(fd int32) {
	var message [RequestBytes]byte
	for range batch {
		n, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(&message)),
			RequestBytes, unix.MSG_DONTWAIT, 0, 0)
		switch {
		case errno == unix.EAGAIN || errno == unix.EINTR:
			return
		case errno != 0 || n != RequestBytes: // closed, or not one of ours
			unix.Close(int(fd))
			r.s.connections.Add(-1)
			return
		}
		r.s.handle(request{conn: fd, Request: decodeRequest(&message)})
	}
}

// answer writes to a connection. One that does not take it loses it: a service
// does not wait for a client that does not read.
func (s *server) answer(r request, status Status) {
	var message [AnswerBytes]byte
	Answer{Number: r.Number, Try: r.Try, Status: status, Client: r.Client}.Encode(&message)
	_, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(r.conn), uintptr(unsafe.Pointer(&message)),
		AnswerBytes, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0)
	if errno != 0 {
		s.lost.Add(1)
	}
}
