package identify

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// target is a JVM that we ask.
type target struct {
	*process
	pidfd, root int
	status
}

func (t *target) file(kind string) string {
	return "tmp/." + kind + strconv.FormatUint(uint64(t.inner), 10)
}

// connect connects to the JVM, and makes it open its socket if it has none.
func (t *target) connect(ctx context.Context) (net.Conn, error) {
	conn, err := t.dial()
	if !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ECONNREFUSED) {
		return conn, err
	}
	forget, err := t.trigger()
	if err != nil {
		return nil, err
	}
	defer forget()
	// The signal goes through the pidfd, so it cannot reach another process that got the number meanwhile.
	if err := unix.PidfdSendSignal(t.pidfd, unix.SIGQUIT, nil, 0); err != nil {
		return nil, fmt.Errorf("signal it: %w", err)
	}
	for {
		conn, err := t.dial()
		if !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ECONNREFUSED) {
			return conn, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("it opened no socket: %w", ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// openRoot opens the process's root folder, for [below].
func (d *process) openRoot() (int, error) {
	root, err := unix.Openat(d.fd, "root", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("its root folder: %w (run as root, or as its user)", err)
	}
	return root, nil
}

// below opens a path below a process's root. It follows links as the process itself would.
func below(root int, path string, flags, mode uint64) (int, error) {
	return unix.Openat2(root, path, &unix.OpenHow{Flags: flags | unix.O_CLOEXEC, Mode: mode,
		Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS})
}

// dial connects to the JVM's socket.
func (t *target) dial() (net.Conn, error) {
	name := t.file("java_pid")
	var fd int
	err := asUser(t.uid, t.gid, func() error {
		at, err := below(t.root, name, unix.O_PATH|unix.O_NOFOLLOW, 0)
		if err != nil {
			return &os.PathError{Op: "open its socket", Path: "/" + name, Err: err}
		}
		defer unix.Close(at)
		var st unix.Stat_t
		if err := unix.Fstat(at, &st); err != nil {
			return err
		}
		if st.Mode&unix.S_IFMT != unix.S_IFSOCK || st.Uid != t.uid {
			return fmt.Errorf("/%s is no socket of user %d: another user made it", name, t.uid)
		}
		if fd, err = unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0); err != nil {
			return err
		}
		// By its open file, so a path of more than 107 bytes, or a file that was replaced since, does no
		// harm.
		if err := unix.Connect(fd, &unix.SockaddrUnix{Name: "/proc/self/fd/" + strconv.Itoa(at)}); err != nil {
			unix.Close(fd)
			return &os.PathError{Op: "connect to", Path: "/" + name, Err: err}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close() // FileConn makes a copy
	return net.FileConn(f)
}

// trigger makes the file that tells the JVM to open its socket at SIGQUIT; forget removes it.
func (t *target) trigger() (forget func(), err error) {
	name := t.file("attach_pid")
	made := false
	err = asUser(t.uid, t.gid, func() error {
		fd, err := below(t.root, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW, 0o600)
		if errors.Is(err, unix.EEXIST) {
			return nil // another program asks the JVM right now
		}
		if err != nil {
			return &os.PathError{Op: "make", Path: "/" + name, Err: err}
		}
		made = true
		return unix.Close(fd)
	})
	if err != nil {
		return nil, fmt.Errorf("%w (is its /tmp writable?)", err)
	}
	return func() {
		if !made {
			return
		}
		// A file that stays does no harm: the JVM looks for it at SIGQUIT only.
		_ = asUser(t.uid, t.gid, func() error {
			tmp, err := below(t.root, "tmp", unix.O_PATH|unix.O_DIRECTORY, 0)
			if err != nil {
				return err
			}
			defer unix.Close(tmp)
			return unix.Unlinkat(tmp, path.Base(name), 0)
		})
	}, nil
}
