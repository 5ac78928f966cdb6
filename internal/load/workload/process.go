package workload

import (
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/unthrottle/unthrottle/internal/load/workload/child"
)

// Process is a running child, seen from its parent.
type Process struct {
	*child.Process
	records chan Record
	quit    chan struct{} // closed by Stop: no reader of records is left
	readErr error         // set before records closes
}

// Start starts a child that waits for [Process.Go]. exe is the program to run with
// [ChildCommand]; "": this very program, even if its file was replaced meanwhile.
func Start(exe string, spec Spec) (*Process, error) {
	if err := spec.Check(); err != nil {
		return nil, fmt.Errorf("child: %w", err)
	}
	p := &Process{records: make(chan Record, 256), quit: make(chan struct{})}
	var err error
	p.Process, err = child.Start(child.Options{Exe: exe, Command: ChildCommand, Config: spec, Env: childEnv(spec), Read: p.read})
	if err != nil {
		return nil, err
	}
	return p, nil
}

// spareProcs is what the Go runtime may run beside the burners and sleeper.
const spareProcs = 4

// childEnv is a child's whole environment. Nothing of the Go runtime may
// disturb the measurement: as many threads as burners, no collection, no
// preemption signals (which would also cut sleeps short).
func childEnv(s Spec) []string {
	return []string{
		"GOMAXPROCS=" + strconv.Itoa(s.Burners+1+spareProcs),
		"GOGC=off",
		"GODEBUG=asyncpreemptoff=1",
	}
}

// wordGo lets the child run.
const wordGo = 'g'

// Go lets the child run.
func (p *Process) Go() error { return p.Tell(wordGo) }

// Records gives each sleep as it ends, in order. It is closed when the child
// has ended; it must be read until then or until Stop.
func (p *Process) Records() <-chan Record { return p.records }

// Stop ends the child and reaps it. It returns an error if the child failed before. A
// second call returns the same answer.
func (p *Process) Stop() error {
	select {
	case <-p.quit:
	default:
		close(p.quit)
	}
	err := p.Process.Stop()
	if p.readErr != nil {
		return errors.Join(fmt.Errorf("child %d: %w", p.Pid(), p.readErr), err)
	}
	return err
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
