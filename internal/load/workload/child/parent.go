package child

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/utils/cpuset"
)

// Options of Start.
type Options struct {
	// Exe is the program to run; "": this very program, even if its file was
	// replaced meanwhile.
	Exe string
	// Command is the hidden first argument.
	Command string
	// Config is sent as JSON.
	Config any
	// Env is the child's whole environment.
	Env []string
	// Files are its descriptors from 3 on.
	Files []*os.File
	// CPUs it may run on; empty: those of the caller.
	CPUs cpuset.CPUSet
	// Read reads the child's standard output until its end, in a goroutine that
	// [Process.Stop] waits for; nil: the caller reads [Process.Out].
	Read func(io.Reader)
}

// Process is a running child, seen from its parent.
type Process struct {
	cmd    *exec.Cmd
	hold   *os.File // our end of the pipe that keeps it alive
	out    *os.File
	reader sync.WaitGroup // Options.Read
	last   *words
	// disturbed is why its runtime is not held.
	disturbed error
	stop      sync.Once
	err       error
}

// exitPatience is how long a child may take to exit when its pipe has closed:
// under a quota even that takes periods.
const exitPatience = 2 * time.Second

// Start starts a child and sends it its configuration.
func Start(o Options) (*Process, error) {
	config, err := json.Marshal(o.Config)
	if err == nil && len(config) >= maxConfig {
		err = fmt.Errorf("its configuration has %d bytes, %d are allowed", len(config), maxConfig)
	}
	if err != nil {
		return nil, fmt.Errorf("child %s: %w", o.Command, err)
	}
	exe := o.Exe
	if exe == "" {
		exe = "/proc/self/exe"
	}
	in, hold, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("child %s: %w", o.Command, err)
	}
	out, outEnd, err := os.Pipe()
	if err != nil {
		in.Close()
		hold.Close()
		return nil, fmt.Errorf("child %s: %w", o.Command, err)
	}
	p := &Process{hold: hold, out: out, last: &words{}}
	p.cmd = &exec.Cmd{
		Path: exe, Args: []string{"unthrottle", o.Command}, Env: append(slices.Clone(o.Env), noRaceSleep), Dir: "/",
		Stdin: in, Stdout: outEnd, Stderr: p.last, ExtraFiles: o.Files,
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true},
	}
	err = startOn(o.CPUs, p.cmd)
	// Without our copies of its ends a child that has ended closes the pipes.
	in.Close()
	outEnd.Close()
	if err != nil {
		hold.Close()
		out.Close()
		return nil, fmt.Errorf("child %s: cannot start %s: %w", o.Command, exe, err)
	}
	if o.Read != nil {
		p.reader.Go(func() { o.Read(out) })
	}
	if _, err := hold.Write(append(config, '\n')); err != nil {
		return nil, errors.Join(fmt.Errorf("child %s: ended before it read its configuration: %w", o.Command, err), p.Stop())
	}
	return p, nil
}

// noRaceSleep keeps a child that was built with the race detector from sleeping
// a second when it exits; others do not read it.
const noRaceSleep = "GORACE=atexit_sleep_ms=0"

// startOn starts cmd from a thread that may run on cpus only, which the child
// inherits (sched_setaffinity(2)).
func startOn(cpus cpuset.CPUSet, cmd *exec.Cmd) error {
	if cpus.IsEmpty() {
		return cmd.Start()
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before, want unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return err
	}
	for _, cpu := range cpus.UnsortedList() {
		want.Set(cpu)
	}
	if err := unix.SchedSetaffinity(0, &want); err != nil {
		return fmt.Errorf("CPUs %s: %w", cpus, err)
	}
	err := cmd.Start()
	return errors.Join(err, unix.SchedSetaffinity(0, &before))
}

// Pid is the child's process ID. It stays its own until Stop.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Out is the child's standard output.
func (p *Process) Out() *os.File { return p.out }

// Tell sends one byte.
func (p *Process) Tell(word byte) error {
	if _, err := p.hold.Write([]byte{word}); err != nil {
		return fmt.Errorf("child %d: ended before its time: %w", p.Pid(), errors.Join(err, p.Stop()))
	}
	return nil
}

// Stop ends the child and reaps it. It returns an error if the child failed before. A
// second call returns the same answer.
func (p *Process) Stop() error {
	p.stop.Do(func() {
		p.hold.Close()
		var killed atomic.Bool
		kill := time.AfterFunc(exitPatience, func() {
			killed.Store(true)
			_ = p.cmd.Process.Kill()
		})
		p.reader.Wait()
		// A full pipe must not hold it.
		_, _ = io.Copy(io.Discard, p.out)
		err := p.cmd.Wait()
		kill.Stop()
		if !killed.Load() {
			p.err = p.failure(err)
		}
		p.out.Close()
	})
	return p.err
}

func (p *Process) failure(err error) error {
	exit := new(exec.ExitError)
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &exit):
		return fmt.Errorf("child %d: %w", p.Pid(), err)
	case exit.Exited():
		return fmt.Errorf("child %d: %w: %s", p.Pid(), err, p.last)
	}
	// We did not send the signal, so that the cause is not in the child.
	return fmt.Errorf("child %d: ended by a signal (%w): another program, the kernel for want of memory or the timer "+
		"of its deadline killed it", p.Pid(), err)
}

// words keeps the first words of a child's standard error.
type words struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer and never fails: it drops what exceeds MaxWords.
func (t *words) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if room := MaxWords - t.text.Len(); room > 0 {
		t.text.Write(b[:min(room, len(b))])
	}
	return len(b), nil
}

func (t *words) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(t.text.String())
}
