package observe

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// maxFileBytes bounds one read. cpu.stat has less than 1 KiB. The longest list of 8,192 CPUs that the kernel can print
// has less than 48 KiB.
const maxFileBytes = 64 << 10

var (
	errGone    = errors.New("the cgroup is gone")
	errNoFile  = errors.New("the kernel has no such file here")
	errTooLong = fmt.Errorf("longer than %d bytes", maxFileBytes)
)

// handle is one control file, opened once and read with pread at offset 0. An *os.File would bring the runtime's poller
// and garbage into a loop that reads a few bytes which never block.
type handle struct {
	fd int32 // 0 means not open; descriptor 0 is never ours
	// absentUntil is set where the cgroup exists without this file. The next try is in that round, because a v2
	// controller may be enabled later.
	absentUntil uint64
	// inode is that of the open file, or files.identity in its place. kernfs gives each file of each cgroup its own
	// inode and never reuses it until reboot. So another inode under the same path is another cgroup.
	inode uint64
}

// absentRounds is the number of rounds between two tries to open a missing file.
const absentRounds = 10

// files opens, reads and counts handles.
type files struct {
	buf [maxFileBytes]byte
	// keepBelow bounds the descriptors that stay open: one at or above this number is closed after each read. The
	// kernel hands out the lowest free number. A high number thus means that the whole process has nearly used up its
	// limit.
	keepBelow int
	identity  func(fd int, name string) (uint64, error) // of an open file; nil means its inode
	round     uint64                                    // incremented by each full sample
	kept      int
	reads     uint64
	opens     uint64
}

// read returns the content of dir/name, valid until the next read. After errGone the cgroup does not exist and the
// handle is closed.
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
	identity := f.identity
	if identity == nil {
		identity = inodeOf
	}
	inode, err := identity(fd, dir+"/"+name)
	if err != nil {
		unix.Close(fd)
		return err
	}
	h.fd, h.inode = int32(fd), inode
	f.opens++
	f.kept++
	return nil
}

func inodeOf(fd int, _ string) (uint64, error) {
	var st unix.Stat_t
	err := unix.Fstat(fd, &st)
	return st.Ino, err
}

func openRetry(name string) (int, error) {
	for {
		fd, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != unix.EINTR {
			return fd, err
		}
	}
}

// close closes the descriptor. The inode stays, for comparison after the next open.
func (f *files) close(h *handle) {
	h.absentUntil = 0
	if h.fd == 0 {
		return
	}
	unix.Close(int(h.fd))
	h.fd = 0
	f.kept--
}

// keepBelow returns the first descriptor number that does not stay open: this share of the soft limit on open files.
func keepBelow(share float64) int {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return 0
	}
	return int(share * float64(min(limit.Cur, 1<<30)))
}
