package identify

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// fileWait bounds the time of reading a file of a process: a file system of the process's own may never answer.
const fileWait = time.Second

// fileReaders bounds how many readers wait for file systems that do not answer.
var fileReaders = make(chan struct{}, 8)

// answered is what read says of a process, within fileWait. what names the file in errors.
func answered[T any](pid int, what string, read func(pid int) (*T, error)) (*T, error) {
	select {
	case fileReaders <- struct{}{}:
	default:
		return nil, fmt.Errorf("process %d: %s: too many others have not answered yet", pid, what)
	}
	type answer struct {
		said *T
		err  error
	}
	done := make(chan answer, 1)
	go func() {
		defer func() { <-fileReaders }()
		said, err := read(pid)
		done <- answer{said, err}
	}()
	timer := time.NewTimer(fileWait)
	defer timer.Stop()
	select {
	case a := <-done:
		if a.err != nil {
			return nil, fmt.Errorf("process %d: %s: %w", pid, what, a.err)
		}
		return a.said, nil
	case <-timer.C:
		return nil, fmt.Errorf("process %d: %s: the file system did not answer within %v", pid, what, fileWait)
	}
}

// ownFile reads a file of at most so many bytes below the process's root, if it is a plain file of the process's own user. The
// look-up stays below that root, whatever links it meets, and opens nothing but a plain file.
func (d *process) ownFile(name string, uid uint32, most int64) ([]byte, error) {
	root, err := unix.Openat(d.fd, "root", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("its root folder: %w (run as root, or as its user)", err)
	}
	defer unix.Close(root)
	at, err := below(root, strings.TrimLeft(name, "/"), unix.O_PATH|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: name, Err: err}
	}
	defer unix.Close(at)
	var st unix.Stat_t
	if err := unix.Fstat(at, &st); err != nil {
		return nil, err
	}
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFREG || st.Uid != uid:
		return nil, fmt.Errorf("%q is no plain file of user %d", name, uid)
	case st.Size > most:
		return nil, fmt.Errorf("%q has %d bytes, more than %d", name, st.Size, most)
	}
	f, err := os.Open("/proc/self/fd/" + strconv.Itoa(at)) // the very file that was looked at
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, most))
}
