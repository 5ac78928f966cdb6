package workload

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Process is a running child, seen from its parent.
type Process struct {
	cmd     *exec.Cmd
	hold    *os.File // our end of the pipe that keeps it alive
	records chan Record
	quit    chan struct{} // closed by Stop: nobody reads records any more
	stop    sync.Once
	reader  sync.WaitGroup
	words   *tail
	readErr error // set before records closes
	waitErr error
}

// Start starts a child that waits: it burns nothing until [Process.Go]. exe is
// the program to run with [ChildCommand]; "" is this very program, even if its
// file was replaced meanwhile.
func Start(exe string, spec Spec) (*Process, error) {
	if err := spec.Check(); err != nil {
		return nil, fmt.Errorf("child: %w", err)
	}
	if exe == "" {
		exe = "/proc/self/exe"
	}
	in, hold, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("child: %w", err)
	}
	defer in.Close()
	p := &Process{hold: hold, records: make(chan Record, 256), quit: make(chan struct{}), words: &tail{}}
	p.cmd = &exec.Cmd{
		Path: exe, Args: append([]string{"unthrottle", ChildCommand}, spec.args()...),
		Env: childEnv(spec), Dir: "/", Stdin: in, Stderr: p.words,
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true},
	}
	out, err := p.cmd.StdoutPipe()
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		hold.Close()
		return nil, fmt.Errorf("child: cannot start %s: %w", exe, err)
	}
	p.reader.Go(func() { p.read(out) })
	return p, nil
}

// Pid is the child's process ID. It stays its own until Stop.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Go lets the child run.
func (p *Process) Go() error {
	if _, err := p.hold.Write([]byte{1}); err != nil {
		return fmt.Errorf("child %d: ended before it was let go: %w", p.Pid(), err)
	}
	return nil
}

// Records gives each sleep as it ends, in order. It is closed when the child
// has ended; it must be read until then or until Stop.
func (p *Process) Records() <-chan Record { return p.records }

// Stop ends the child, reaps it, and says if it went wrong before it was
// stopped. Calling it again gives the same answer.
func (p *Process) Stop() error {
	p.stop.Do(func() {
		close(p.quit)
		p.hold.Close()
		// Under a quota even an exit takes periods; beyond that, no mercy.
		kill := time.AfterFunc(2*time.Second, func() { _ = p.cmd.Process.Kill() })
		p.reader.Wait()
		p.waitErr = p.cmd.Wait()
		kill.Stop()
	})
	return p.failure()
}

// Failure says why the child ended by itself, once Records is closed.
func (p *Process) failure() error {
	words := p.words.String()
	switch exit := new(exec.ExitError); {
	case p.readErr != nil:
		return fmt.Errorf("child %d: %w", p.Pid(), p.readErr)
	case errors.As(p.waitErr, &exit) && exit.Exited():
		return fmt.Errorf("child %d: %w: %s", p.Pid(), p.waitErr, words)
	case p.waitErr != nil && !errors.As(p.waitErr, &exit):
		return fmt.Errorf("child %d: %w", p.Pid(), p.waitErr)
	}
	return nil
}

func (p *Process) read(out io.Reader) {
	defer close(p.records)
	var line [recordBytes]byte
	for {
		if _, err := io.ReadFull(out, line[:]); err != nil {
			return
		}
		r, err := decodeRecord(&line)
		if err != nil {
			p.readErr = err
			return
		}
		select {
		case p.records <- r:
		case <-p.quit:
			// The pipe must still be drained, or a full one would hold the child.
			_, _ = io.Copy(io.Discard, out)
			return
		}
	}
}

// tail keeps the first words of a child's standard error.
type tail struct {
	mu   sync.Mutex
	text bytes.Buffer
}

const maxWords = 4096

// Write implements io.Writer and never fails: what is too much is dropped.
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if room := maxWords - t.text.Len(); room > 0 {
		t.text.Write(b[:min(room, len(b))])
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(t.text.String())
}
