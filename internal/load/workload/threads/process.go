package threads

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/unthrottle/unthrottle/internal/load/workload/child"
)

// Process is a running workload, seen from its parent.
type Process struct {
	child *child.Process
	out   *bufio.Reader
	name  string
}

// Start starts a workload whose threads exist and wait: put it into its cgroups, then
// call [Process.Go]. exe is the program to run with [Command]; "": this very program.
func Start(exe string, spec Spec) (*Process, error) {
	if err := spec.Check(); err != nil {
		return nil, err
	}
	c, err := child.Start(child.Options{Exe: exe, Command: Command, Config: spec, Env: environment(spec)})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", spec.Name, err)
	}
	p := &Process{child: c, out: bufio.NewReader(c.Out()), name: spec.Name}
	if _, err := p.answer(); err != nil {
		return nil, err
	}
	c.Hold()
	return p, nil
}

// Pid is the workload's process ID. It stays its own until Stop.
func (p *Process) Pid() int { return p.child.Pid() }

// Disturbed is [child.Process.Disturbed].
func (p *Process) Disturbed() error { return p.child.Disturbed() }

// Go is the scenario's beginning.
func (p *Process) Go() error {
	if err := p.child.Tell(wordGo); err != nil {
		return fmt.Errorf("%s: %w", p.name, err)
	}
	return nil
}

// Tell returns the measurements until the scenario's end; call it after that.
func (p *Process) Tell() (Result, error) {
	if err := p.child.Tell(wordTell); err != nil {
		return Result{}, fmt.Errorf("%s: %w", p.name, err)
	}
	r, err := p.answer()
	if err == nil && r.Failed != "" {
		err = fmt.Errorf("%s: %s", p.name, r.Failed)
	}
	return r, err
}

// answerPatience bounds the wait for an answer, which a quota may delay.
const answerPatience = 60 * time.Second

func (p *Process) answer() (r Result, err error) {
	late := time.AfterFunc(answerPatience, func() { _ = p.child.Stop() })
	defer late.Stop()
	line, err := p.out.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &r)
	}
	if err != nil {
		err = fmt.Errorf("%s: process %d gave no answer: %w", p.name, p.Pid(), errors.Join(err, p.child.Stop()))
	}
	return r, err
}

// Stop ends the workload, reaps it, and says if it went wrong before.
func (p *Process) Stop() error { return p.child.Stop() }
