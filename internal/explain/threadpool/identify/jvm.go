package identify

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"path"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// timeout bounds the time of [JVM].
const timeout = 2 * time.Second

// errNotJVM says that a process is no HotSpot JVM that answers requests.
var errNotJVM = errors.New("no JVM that can be asked")

// JVM asks a running JVM for the full names of its threads, by thread id in our PID namespace. This stops the
// JVM at a safepoint for a moment: call it only if the user wants that. It needs root, or the JVM's own user.
// It takes at most [Timeout], or less if ctx ends sooner. Names are raw: fold or sanitize them before you
// print them.
func JVM(ctx context.Context, pid int) (map[uint32]string, error) {
	return within(ctx, timeout, pid)
}

func within(ctx context.Context, limit time.Duration, pid int) (map[uint32]string, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if deadline, ok := ctx.Deadline(); ok {
		limit = min(limit, time.Until(deadline)).Round(10 * time.Millisecond)
	}
	names, err := askJVM(ctx, pid)
	switch {
	case err == nil:
		return names, nil
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		err = fmt.Errorf("no answer within %v (its quota may have stopped it, or it was started with "+
			"-XX:+DisableAttachMechanism): %w", limit, err)
	}
	return nil, fmt.Errorf("ask JVM %d: %w", pid, err)
}

func askJVM(ctx context.Context, pid int) (map[uint32]string, error) {
	d, err := openProcess(pid)
	if err != nil {
		return nil, err
	}
	defer d.close()
	pidfd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil, fmt.Errorf("pidfd_open: %w", err)
	}
	defer unix.Close(pidfd)
	s, err := d.mustBeJVM()
	if err != nil {
		return nil, err
	}
	root, err := d.openRoot()
	if err != nil {
		return nil, err
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
	return ownThreads(d, parseDump(dump), s.nested)
}

// mustBeJVM makes sure that SIGQUIT would not kill the process.
func (d *process) mustBeJVM() (status, error) {
	maps, err := d.read("maps", maxMaps)
	if errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) {
		err = fmt.Errorf("%w (run as root, or as its user)", err)
	}
	if err != nil {
		return status{}, err
	}
	isHotSpot := func(file string) bool { return path.Base(file) == "libjvm.so" }
	if !slices.ContainsFunc(libraries(maps), isHotSpot) {
		return status{}, fmt.Errorf("%w: libjvm.so is not mapped", errNotJVM)
	}
	s, err := d.status()
	if err != nil {
		return s, err
	}
	if s.caught&(1<<(unix.SIGQUIT-1)) == 0 {
		return s, fmt.Errorf("%w: it does not catch SIGQUIT (-Xrs), and a request would end it", errNotJVM)
	}
	return s, nil
}

// threadDump sends HotSpot's attach request, version 1: the version, a command and three arguments, each with
// a 0 behind it.
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

// ownThreads returns what is said of threads by thread id in our PID namespace, only of the process's own threads.
func ownThreads[T any](d *process, byInner map[uint32]T, nested bool) (map[uint32]T, error) {
	said := map[uint32]T{}
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
			if of, ok := byInner[inner]; ok {
				said[tid] = of
			}
		}
		read += len(tasks)
		if err != nil || len(tasks) == 0 {
			break // the end, or the process's
		}
	}
	if len(said) == 0 {
		return nil, fmt.Errorf("none of the %d threads that it names is one of its own", len(byInner))
	}
	return said, nil
}
