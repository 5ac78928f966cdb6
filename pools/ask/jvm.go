package ask

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/container"
)

// Timeout is how long [JVM] takes at most.
const Timeout = 2 * time.Second

// ErrNotJVM is a process that is no HotSpot JVM that can be asked.
var ErrNotJVM = errors.New("no JVM that can be asked")

// JVM asks a running JVM for the full names of its threads, by thread id in our PID namespace. This stops the JVM at a
// safepoint for a moment: call it only if the user wants that. It needs root, or the JVM's own user. Names are raw: fold
// or sanitize them before printing.
func JVM(ctx context.Context, pid int) (map[uint32]string, error) {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	names, err := askJVM(ctx, pid)
	if err == nil {
		return names, nil
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = fmt.Errorf("no answer within %v (its quota may have stopped it, or it was started with -XX:+DisableAttachMechanism): %w", Timeout, err)
	}
	return nil, fmt.Errorf("ask JVM %d: %w", pid, err)
}

func askJVM(ctx context.Context, pid int) (map[uint32]string, error) {
	d, err := openProcess(pid)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	pidfd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil, fmt.Errorf("pidfd_open: %w", err)
	}
	defer unix.Close(pidfd)
	s, err := d.mustBeJVM()
	if err != nil {
		return nil, err
	}
	root, err := unix.Openat(d.fd, "root", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("its root folder: %w (run as root, or as its user)", err)
	}
	defer unix.Close(root)
	t := &target{d, pidfd, root, s}
	conn, err := t.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	dump, err := threadDump(ctx, conn)
	if err != nil {
		return nil, err
	}
	return d.ours(parseDump(dump), s.nested)
}

// mustBeJVM makes sure that SIGQUIT would not kill the process.
func (d *process) mustBeJVM() (status, error) {
	maps, err := d.read("maps", maxMaps)
	if err != nil {
		return status{}, err
	}
	isHotSpot := func(file string) bool { return path.Base(file) == "libjvm.so" }
	if !slices.ContainsFunc(libraries(maps), isHotSpot) {
		return status{}, fmt.Errorf("%w: libjvm.so is not mapped", ErrNotJVM)
	}
	text, err := d.read("status", maxSmall)
	if err != nil {
		return status{}, err
	}
	s, err := parseStatus(text)
	if err != nil {
		return s, err
	}
	if s.caught&(1<<(unix.SIGQUIT-1)) == 0 {
		return s, fmt.Errorf("%w: it does not catch SIGQUIT (-Xrs), and would end if it were asked", ErrNotJVM)
	}
	return s, nil
}

// threadDump sends HotSpot's attach request, version 1: the version, a command and three arguments, each with a 0 behind.
func threadDump(ctx context.Context, conn net.Conn) ([]byte, error) {
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return nil, err
		}
	}
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if _, err := io.WriteString(conn, "1\x00threaddump\x00\x00\x00\x00"); err != nil {
		return nil, fmt.Errorf("send the request: %w", err)
	}
	reply, err := io.ReadAll(io.LimitReader(conn, maxDump))
	if err != nil {
		return nil, fmt.Errorf("read the thread dump: %w", err)
	}
	return parseReply(reply)
}

// ours gives names by thread id in our PID namespace, of threads that are the process's own only.
func (d *process) ours(byInner map[uint32]string, nested bool) (map[uint32]string, error) {
	names := map[uint32]string{}
	dir, err := d.open("task", unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	for read := 0; read < maxDumpThreads; {
		tasks, err := dir.Readdirnames(1024)
		for _, task := range tasks {
			var tid uint32
			if !number(task, 10, &tid) {
				continue
			}
			inner := tid
			if nested {
				text, err := d.read("task/"+task+"/status", maxSmall)
				if err != nil {
					continue // it ended meanwhile
				}
				s, err := parseStatus(text)
				if err != nil {
					return nil, fmt.Errorf("thread %s: %w", task, err)
				}
				inner = s.inner
			}
			if name, ok := byInner[inner]; ok {
				names[tid] = name
			}
		}
		read += len(tasks)
		if err != nil || len(tasks) == 0 {
			break // the end, or the process's
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("none of the %d threads in its dump is one of its own", len(byInner))
	}
	return names, nil
}

// target is a JVM that is being asked.
type target struct {
	*process
	pidfd, root int
	status
}

func (t *target) file(kind string) string {
	return "tmp/." + kind + strconv.FormatUint(uint64(t.inner), 10)
}

// connect gives a connection to the JVM, which it makes open its socket if it has none.
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
	// Signalled through the pidfd: another process that got the number meanwhile is out of reach.
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

// below opens a path below the JVM's root; links on the way are followed as the JVM itself would.
func (t *target) below(path string, flags, mode uint64) (int, error) {
	return unix.Openat2(t.root, path, &unix.OpenHow{Flags: flags | unix.O_CLOEXEC, Mode: mode,
		Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS})
}

// dial connects to the JVM's socket.
func (t *target) dial() (net.Conn, error) {
	name := t.file("java_pid")
	var fd int
	err := as(t.uid, t.gid, func() error {
		at, err := t.below(name, unix.O_PATH|unix.O_NOFOLLOW, 0)
		if err != nil {
			return &os.PathError{Op: "open its socket", Path: "/" + name, Err: err}
		}
		defer unix.Close(at)
		var st unix.Stat_t
		if err := unix.Fstat(at, &st); err != nil {
			return err
		}
		if st.Mode&unix.S_IFMT != unix.S_IFSOCK || st.Uid != t.uid {
			return fmt.Errorf("/%s is no socket of user %d: somebody else made it", name, t.uid)
		}
		if fd, err = unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0); err != nil {
			return err
		}
		// By its open file: a path of more than 107 bytes, or one that was exchanged since, does no harm.
		if err := unix.Connect(fd, &unix.SockaddrUnix{Name: "/proc/self/fd/" + strconv.Itoa(at)}); err != nil {
			unix.Close(fd)
			return &os.PathError{Op: "connect to", Path: "/" + name, Err: err}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), container.Sanitize(name, 0))
	defer f.Close() // FileConn makes a copy
	return net.FileConn(f)
}

// trigger makes the file that tells the JVM to open its socket at SIGQUIT; forget removes it.
func (t *target) trigger() (forget func(), err error) {
	name := t.file("attach_pid")
	made := false
	err = as(t.uid, t.gid, func() error {
		fd, err := t.below(name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW, 0o600)
		if errors.Is(err, unix.EEXIST) {
			return nil // somebody else is asking it right now
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
		// What cannot be removed does no harm: the JVM looks for it at SIGQUIT only.
		_ = as(t.uid, t.gid, func() error {
			tmp, err := t.below("tmp", unix.O_PATH|unix.O_DIRECTORY, 0)
			if err != nil {
				return err
			}
			defer unix.Close(tmp)
			return unix.Unlinkat(tmp, path.Base(name), 0)
		})
	}, nil
}
