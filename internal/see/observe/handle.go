package observe

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// maxFileBytes bounds one read. cpu.stat has below 1 KiB; the longest list of 8,192 CPUs that the kernel can print has
// below 48 KiB.
const maxFileBytes = 64 << 10

var (
	errGone    = errors.New("the cgroup is gone")
	errNoFile  = errors.New("the kernel has no such file here")
	errTooLong = fmt.Errorf("longer than %d bytes", maxFileBytes)
)

// handle is one control file that is read again and again: opened once, read with pread at 0. It is no *os.File: that
// would bring the runtime's poller and garbage into a loop that only ever reads a few bytes that are there.
type handle struct {
	fd int32 // 0: not open (descriptor 0 is never ours)
	// absentUntil: the cgroup is there, the file is not; not tried again before that round. A v2 controller may be
	// enabled later.
	absentUntil uint64
	// inode of the open file: kernfs gives each file of each cgroup an inode of its own and does not use it again
	// while the machine runs, so another inode under the same path is another cgroup.
	inode uint64
}

// absentRounds is for how many rounds a file that is not there is not looked for again.
const absentRounds = 10

// files opens, reads and counts handles.
type files struct {
	buf [maxFileBytes]byte
	// keepBelow: a descriptor at or above this number is closed after each read. The kernel hands out the lowest free
	// number, so a high number means that this process, all its parts together, has nearly used up its limit.
	keepBelow int
	round     uint64 // counted up with each full sample
	kept      int
	reads     uint64
	opens     uint64
}

// read gives the content of dir/name, valid until the next read. errGone: the cgroup is gone, the handle is closed.
func (f *files) read(h *handle, dir, name string) ([]byte, error) {
	if h.absentUntil > f.round {
		return nil, errNoFile
	}
	if h.fd == 0 {
		if err := f.open(h, dir, name); err != nil {
			return nil, err
		}
	}
	n, err := f.pread(int(h.fd))
	if err != nil {
		f.close(h)
		if errors.Is(err, unix.ENODEV) {
			return nil, errGone
		}
		return nil, err
	}
	if int(h.fd) >= f.keepBelow {
		f.close(h)
	}
	if n == len(f.buf) {
		return nil, errTooLong
	}
	return f.buf[:n], nil
}

func (f *files) pread(fd int) (int, error) {
	for {
		n, err := unix.Pread(fd, f.buf[:], 0)
		if err != unix.EINTR {
			f.reads++
			return n, err
		}
	}
}

func (f *files) open(h *handle, dir, name string) error {
	fd, err := openRetry(dir + "/" + name)
	switch {
	case errors.Is(err, unix.ENODEV):
		return errGone
	case errors.Is(err, unix.ENOENT):
		var st unix.Stat_t
		if unix.Stat(dir, &st) != nil {
			return errGone
		}
		h.absentUntil = f.round + absentRounds
		return errNoFile
	case err != nil:
		return err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		unix.Close(fd)
		return err
	}
	h.fd, h.inode = int32(fd), st.Ino
	f.opens++
	f.kept++
	return nil
}

func openRetry(name string) (int, error) {
	for {
		fd, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != unix.EINTR {
			return fd, err
		}
	}
}

// close forgets the descriptor; the inode stays, to be compared with after the next open.
func (f *files) close(h *handle) {
	h.absentUntil = 0
	if h.fd == 0 {
		return
	}
	unix.Close(int(h.fd))
	h.fd = 0
	f.kept--
}

// keepBelow is the first descriptor number that is not kept: share of the soft limit on open files.
func keepBelow(share float64) int {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return 0
	}
	return int(share * float64(min(limit.Cur, 1<<30)))
}
