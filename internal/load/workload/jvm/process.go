package jvm

import (
	"archive/zip"
	"bufio"
	"bytes"
	_ "embed" // the class
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/load/workload"
	"github.com/unthrottle/unthrottle/internal/load/workload/child"
)

// Command is the hidden first argument that makes this program a JVM.
const Command = "__jvm"

// Allocate.class is Allocate.java, compiled for Java 8 without debug data.
//
//go:embed Allocate.class
var class []byte

// archiveFD is the descriptor of the class's archive in the child.
const archiveFD = 3

// Spec is a JVM.
type Spec struct {
	Java    string // path of the launcher
	Threads int    // collecting
	// Heap and Live are bytes.
	Heap, Live int
	// Run and Sleep of the allocating thread, in turn.
	Run, Sleep time.Duration
	Deadline   time.Duration // the process is killed so long after its start
}

// Find is the path of the Java launcher; an error if there is none on PATH.
func Find() (string, error) { return exec.LookPath("java") }

// arguments of the launcher. No file is written: no performance data, no error
// report, no core.
func (s Spec) arguments() []string {
	const mib = 1 << 20
	heap := strconv.Itoa(s.Heap/mib) + "m"
	return []string{
		"java", "-Xms" + heap, "-Xmx" + heap, "-Xmn" + strconv.Itoa(max(4, s.Heap/mib/4)) + "m",
		"-XX:+UseParallelGC", "-XX:ParallelGCThreads=" + strconv.Itoa(s.Threads), "-XX:-UseAdaptiveSizePolicy",
		"-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-XX:ErrorFile=/dev/null", "-XX:-CreateCoredumpOnCrash",
		"-Xlog:gc:stdout", "-cp", "/proc/self/fd/" + strconv.Itoa(archiveFD), "Allocate",
		strconv.Itoa(s.Live), strconv.FormatInt(s.Run.Nanoseconds(), 10), strconv.FormatInt(s.Sleep.Nanoseconds(), 10),
	}
}

// Main becomes the JVM; its result is the exit code of a failure to do so.
func Main() int {
	var s Spec
	if _, err := child.Enter(&s); err != nil {
		fmt.Fprintf(os.Stderr, "jvm: %v (started by 'unthrottle simulate --real', not by hand)\n", err)
		return 2
	}
	if err := alarm(s.Deadline); err != nil {
		fmt.Fprintf(os.Stderr, "jvm: cannot set an alarm for its own end: %v\n", err)
		return 2
	}
	err := syscall.Exec(s.Java, s.arguments(), []string{"LC_ALL=C"})
	fmt.Fprintf(os.Stderr, "jvm: %s: %v\n", s.Java, err)
	return 2
}

// alarm lets the kernel end this process after d, execve or not: SIGALRM, which
// neither the Go runtime nor a JVM has a use for.
func alarm(d time.Duration) error {
	timer := struct{ interval, value unix.Timeval }{value: unix.NsecToTimeval(int64(max(d, time.Second)))}
	const real = 0 // ITIMER_REAL
	if _, _, errno := unix.RawSyscall(unix.SYS_SETITIMER, real, uintptr(unsafe.Pointer(&timer)), 0); errno != 0 {
		return errno
	}
	return nil
}

// archive is the class as a file in memory.
func archive() (*os.File, error) {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	f, err := w.Create("Allocate.class")
	if err == nil {
		_, err = f.Write(class)
	}
	if err = errors.Join(err, w.Close()); err != nil {
		return nil, err
	}
	fd, err := unix.MemfdCreate("unthrottle-jvm", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	file := os.NewFile(uintptr(fd), "unthrottle-jvm")
	if _, err := file.Write(b.Bytes()); err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

// Process is a running JVM, seen from its parent.
type Process struct {
	child  *child.Process
	reader sync.WaitGroup
	ready  chan struct{}

	mu     sync.Mutex
	pauses []pause
	words  string // the first that were no pauses
}

type pause struct{ at, took time.Duration }

// Start starts a JVM that waits: put it into its cgroups, then call [Process.Go].
func Start(exe string, s Spec) (*Process, error) {
	file, err := archive()
	if err != nil {
		return nil, err
	}
	defer file.Close()
	c, err := child.Start(child.Options{Exe: exe, Command: Command, Config: s, Files: []*os.File{file}, Env: []string{"GOMAXPROCS=2"}})
	if err != nil {
		return nil, err
	}
	p := &Process{child: c, ready: make(chan struct{})}
	p.reader.Go(p.read)
	return p, nil
}

// read takes the JVM's words until they end.
func (p *Process) read() {
	lines := bufio.NewScanner(p.child.Out())
	waiting := true
	for lines.Scan() {
		line := lines.Text()
		if line == "ready" && waiting {
			waiting = false
			close(p.ready)
			continue
		}
		took, ok := parsePause(line)
		p.mu.Lock()
		switch {
		case ok && len(p.pauses) < maxPauses:
			p.pauses = append(p.pauses, pause{workload.Now(), took})
		case !ok && len(p.words) < child.MaxWords:
			p.words += line[:min(len(line), 200)] + "\n"
		}
		p.mu.Unlock()
	}
	if waiting {
		close(p.ready)
	}
}

// Pid is the JVM's process ID. It stays its own until Stop.
func (p *Process) Pid() int { return p.child.Pid() }

// readyPatience bounds a JVM's start, which a quota may draw out.
const readyPatience = 90 * time.Second

// Ready waits until the JVM is up and has its live data.
func (p *Process) Ready() error {
	select {
	case <-p.ready:
	case <-time.After(readyPatience):
		return errors.Join(fmt.Errorf("the JVM was not up after %v", readyPatience), p.Stop())
	}
	return nil
}

// Go lets it allocate.
func (p *Process) Go() error {
	if err := p.child.Tell('g'); err != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		return fmt.Errorf("the JVM: %w: %.500s", err, p.words)
	}
	return nil
}

// Pauses that ended from one moment to another, on CLOCK_MONOTONIC.
func (p *Process) Pauses(from, to time.Duration) (took []time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, one := range p.pauses {
		if one.at >= from && one.at <= to {
			took = append(took, one.took)
		}
	}
	return took
}

// Stop ends the JVM, reaps it, and says if it went wrong before.
func (p *Process) Stop() error {
	err := p.child.Stop()
	p.reader.Wait()
	return err
}
