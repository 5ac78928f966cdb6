package identify

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/explain/threadpool"
)

// Bounds of the reads of a process.
const (
	maxMaps      = 4 << 20 // bytes of /proc/PID/maps
	maxCmdline   = 64 << 10
	maxArguments = 1024
	maxLibraries = 1024
	maxSmall     = 64 << 10 // bytes of any other file
)

// Look reads the facts of a process from /proc. The error names what it could not read, which stays empty in
// the process. A process of another user shows only its name and command line, so both results count.
func Look(pid int) (threadpool.Process, error) {
	p := threadpool.Process{TGID: pid}
	d, err := openProcess(pid)
	if err != nil {
		return p, err
	}
	defer d.close()
	var unread error
	note := func(err error) {
		switch {
		case unread == nil:
			unread = err
		case err != nil:
			unread = fmt.Errorf("%w; %w", unread, err)
		}
	}
	comm, err := d.read("comm", maxSmall)
	note(err)
	p.Comm = strings.TrimSuffix(string(comm), "\n")
	cmdline, err := d.read("cmdline", maxCmdline)
	note(err)
	p.Cmdline = arguments(cmdline)
	if p.Exe, err = d.readlink("exe"); errors.Is(err, unix.ENOENT) && err != nil {
		err = nil // a kernel thread has none, nor has a process that is just ending
	}
	note(err)
	maps, err := d.read("maps", maxMaps)
	note(err)
	if err == nil {
		p.Libraries = libraries(maps)
	}
	var env []string
	if p.Exe != "" {
		note(d.scanExecutable(&p))
		text, err := d.read("environ", maxEnvironment)
		note(err)
		env = arguments(text)
	}
	if debug, has := threadpool.Variable(env, "GODEBUG"); has && p.Go != "" {
		p.GoDebug += "," + debug
	}
	p.CPUsItSees = threadpool.Known().ToldCPUs(threadpool.Files(nil).Expand(env, p.Cmdline)) // what is in files a JVM says itself
	if unread != nil {
		return p, fmt.Errorf("process %d: some facts were not readable (root can): %w", pid, unread)
	}
	return p, nil
}

// Title reads a process's name and its command line, which is its title where it set one. It costs some 20 us. The
// error says that the process ended or cannot be read.
func Title(pid int) (comm string, cmdline []string, err error) {
	d, err := openProcess(pid)
	if err != nil {
		return "", nil, err
	}
	defer d.close()
	name, err := d.read("comm", maxSmall)
	if err != nil {
		return "", nil, err
	}
	line, err := d.read("cmdline", maxCmdline)
	return strings.TrimSuffix(string(name), "\n"), arguments(line), err
}

// process is an open folder of /proc. All its reads are of one process, even if the kernel reuses its number
// meanwhile.
type process struct {
	fd  int
	pid int
}

func openProcess(pid int) (*process, error) {
	fd, err := unix.Open("/proc/"+strconv.Itoa(pid), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		if errors.Is(err, unix.ENOENT) {
			return nil, fmt.Errorf("process %d: no such process (any more): %w", pid, os.ErrProcessDone)
		}
		return nil, fmt.Errorf("process %d: %w", pid, err)
	}
	return &process{fd, pid}, nil
}

func (d *process) close() error { return unix.Close(d.fd) }

func (d *process) open(name string, flags int) (*os.File, error) {
	full := fmt.Sprintf("/proc/%d/%s", d.pid, name)
	fd, err := unix.Openat(d.fd, name, flags|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ESRCH) || errors.Is(err, unix.ENOENT) && !d.alive() {
		err = os.ErrProcessDone
	}
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: full, Err: err}
	}
	return os.NewFile(uintptr(fd), full), nil
}

func (d *process) alive() bool {
	var st unix.Stat_t
	return unix.Fstatat(d.fd, "comm", &st, 0) == nil
}

// read returns at most max bytes of a file.
func (d *process) read(name string, max int64) ([]byte, error) {
	f, err := d.open(name, unix.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, max))
}

func (d *process) readlink(name string) (string, error) {
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(d.fd, name, buf)
	if err != nil {
		return "", &os.PathError{Op: "readlink", Path: fmt.Sprintf("/proc/%d/%s", d.pid, name), Err: err}
	}
	return strings.TrimSuffix(string(buf[:n]), " (deleted)"), nil
}

// arguments splits /proc/PID/cmdline.
func arguments(cmdline []byte) []string {
	args := []string{}
	for len(cmdline) > 0 && len(args) < maxArguments {
		arg, rest, _ := bytes.Cut(cmdline, []byte{0})
		args = append(args, string(arg))
		cmdline = rest
	}
	return args
}

// libraries returns the paths of shared objects in /proc/PID/maps (proc_pid_maps(5)), each once, at most
// maxLibraries. It drops a last line that was cut off.
func libraries(maps []byte) []string {
	seen := map[string]bool{}
	for len(maps) > 0 && len(seen) < maxLibraries {
		line, rest, whole := bytes.Cut(maps, []byte{'\n'})
		maps = rest
		// A line has five fields, blanks, and the path, which may have blanks itself; the kernel writes a
		// newline in it as \012.
		at := bytes.IndexByte(line, '/')
		if !whole || at < 0 || len(bytes.Fields(line[:at])) != 5 {
			continue
		}
		file := strings.TrimSuffix(string(line[at:]), " (deleted)")
		if isSharedObject(path.Base(file)) {
			seen[file] = true
		}
	}
	found := make([]string, 0, len(seen))
	for file := range seen {
		found = append(found, file)
	}
	slices.Sort(found)
	return found
}

func isSharedObject(name string) bool {
	return strings.HasSuffix(name, ".so") || strings.Contains(name, ".so.")
}

// maxEnvironment bounds the environment that is read.
const maxEnvironment = 256 << 10

// Environment reads the environment that a process was started with, "NAME=value" each. It may be another one by now only
// for the process itself. All of it is text that the process's starter chose, and may be secret: look names up, print none.
func Environment(pid int) ([]string, error) {
	d, err := openProcess(pid)
	if err != nil {
		return nil, err
	}
	defer d.close()
	text, err := d.read("environ", maxEnvironment)
	return arguments(text), err
}
