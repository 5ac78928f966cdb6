package apiserver

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// Process is a program that ends with the test.
type Process struct {
	cmd *exec.Cmd
	// Log is the file with what it printed.
	Log  string
	done chan error
}

// Start runs a program. What it prints is appended to the file NAME.log of dir.
func Start(t testing.TB, dir, name string, cmd *exec.Cmd) *Process {
	t.Helper()
	log, err := os.OpenFile(filepath.Join(dir, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &Process{cmd: cmd, Log: log.Name(), done: make(chan error, 1)}
	go func() { p.done <- cmd.Wait() }()
	t.Cleanup(func() { p.End(syscall.SIGTERM) })
	return p
}

// End stops it by a signal, and by force after a minute. It may be called again.
func (p *Process) End(signal syscall.Signal) error {
	if p.done == nil {
		return nil
	}
	_ = p.cmd.Process.Signal(signal) // it may have ended
	var err error
	select {
	case err = <-p.done:
	case <-time.After(time.Minute):
		_ = p.cmd.Process.Kill()
		err = errors.Join(errors.New("it did not end within a minute"), <-p.done)
	}
	p.done = nil
	return err
}

// Ended tells whether it ended by itself.
func (p *Process) Ended() bool {
	select {
	case err := <-p.done:
		p.done <- err
		return true
	default:
		return false
	}
}

// PID is the number of its process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Printed is what it printed so far; why its log cannot be read if it cannot.
func (p *Process) Printed() string {
	data, err := os.ReadFile(p.Log)
	if err != nil {
		return err.Error()
	}
	return string(data)
}
