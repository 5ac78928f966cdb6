package identify

import (
	"fmt"
	"io"
	"os"
	"path"
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
	root, err := d.openRoot()
	if err != nil {
		return nil, err
	}
	defer unix.Close(root)
	at, err := below(root, strings.TrimLeft(name, "/"), unix.O_PATH|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: name, Err: err}
	}
	defer unix.Close(at)
	return plainFile(at, name, most, &uid)
}

// maxOptions bounds a file of options.
const maxOptions = 256 << 10

// Options reads a file of options that a process's command line or environment names, as the process would find it: below its root, from
// its working folder, with its user's rights. Only a plain file is opened. It takes at most a second.
func Options(pid int, name string) ([]byte, error) {
	content, err := answered(pid, fmt.Sprintf("%.80q", name), func(pid int) (*[]byte, error) {
		d, err := openProcess(pid)
		if err != nil {
			return nil, err
		}
		defer d.close()
		content, err := d.optionsFile(name)
		return &content, err
	})
	if err != nil {
		return nil, err
	}
	return *content, nil
}

func (d *process) optionsFile(name string) (content []byte, err error) {
	if !path.IsAbs(name) {
		folder, err := d.readlink("cwd")
		if err != nil {
			return nil, err
		}
		top, err := d.readlink("root")
		if err != nil {
			return nil, err
		}
		name = path.Join(strings.TrimPrefix(folder, strings.TrimSuffix(top, "/")), name)
	}
	s, err := d.status()
	if err != nil {
		return nil, err
	}
	root, err := d.openRoot()
	if err != nil {
		return nil, err
	}
	defer unix.Close(root)
	err = asUser(s.uid, s.gid, func() error {
		at, err := below(root, strings.TrimLeft(name, "/"), unix.O_PATH, 0)
		if err != nil {
			return err
		}
		defer unix.Close(at)
		content, err = plainFile(at, name, maxOptions, nil)
		return err
	})
	return content, err
}

// plainFile reads an open place that is a plain file of at most so many bytes, and of this user; nil: of any.
func plainFile(at int, name string, most int64, uid *uint32) ([]byte, error) {
	var st unix.Stat_t
	if err := unix.Fstat(at, &st); err != nil {
		return nil, err
	}
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return nil, fmt.Errorf("%q is no plain file", name)
	case uid != nil && st.Uid != *uid:
		return nil, fmt.Errorf("%q is no plain file of user %d, who runs the process", name, *uid)
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
