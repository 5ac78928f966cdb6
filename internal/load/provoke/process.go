package provoke

import (
	"fmt"
	"io"
	"strconv"

	"github.com/unthrottle/unthrottle/internal/load/workload/child"
)

// ChildCommand is the hidden first argument that makes this program a child.
const ChildCommand = "__provoke"

// Process is a running child, seen from its parent.
type Process struct {
	*child.Process
}

// Start starts a child. The child calibrates its kernel work and then waits for
// [Process.Go]. exe is the program to run with [ChildCommand]; "": this very program.
func Start(exe string, spec Spec) (*Process, error) {
	if err := spec.Check(); err != nil {
		return nil, fmt.Errorf("provoke: %w", err)
	}
	threads := 8 // what the Go runtime may run beside them
	for _, p := range spec.Pools {
		threads += p.Threads
	}
	c, err := child.Start(child.Options{
		Exe: exe, Command: ChildCommand, Config: spec,
		// Nothing of the Go runtime may disturb the rhythm: as many processors as threads, no collection, no preemption.
		Env: []string{"GOMAXPROCS=" + strconv.Itoa(threads), "GOGC=off", "GODEBUG=asyncpreemptoff=1"},
	})
	if err != nil {
		return nil, err
	}
	var ready [1]byte
	if _, err := io.ReadFull(c.Out(), ready[:]); err != nil {
		if stopped := c.Stop(); stopped != nil {
			err = stopped
		}
		return nil, fmt.Errorf("provoke: the child did not get ready: %w", err)
	}
	c.Hold()
	return &Process{c}, nil
}

// wordGo lets the child run.
const wordGo = 'g'

// Go lets the child run.
func (p *Process) Go() error { return p.Tell(wordGo) }
