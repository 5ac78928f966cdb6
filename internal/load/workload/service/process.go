package service

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/load/workload/child"
)

// Process is a running service, seen from its parent.
type Process struct {
	child *child.Process
	out   *bufio.Reader
	addr  string
}

// Start starts a service that does not serve yet: put it into its cgroups, then call
// [Process.Go]. exe is the program to run with [Command]; "": this very program.
// Clients can connect from now on.
func Start(exe string, spec Spec) (*Process, error) {
	if err := spec.Check(); err != nil {
		return nil, fmt.Errorf("service: %w", err)
	}
	listen, addr, err := listen()
	if err != nil {
		return nil, fmt.Errorf("service: cannot open a socket: %w", err)
	}
	defer listen.Close()
	c, err := child.Start(child.Options{
		Exe: exe, Command: Command, Config: spec, Env: environment(spec),
		Files: []*os.File{listen}, CPUs: cpuset.New(),
	})
	if err != nil {
		return nil, fmt.Errorf("service: %w", err)
	}
	return &Process{child: c, out: bufio.NewReader(c.Out()), addr: addr}, nil
}

// listen opens a socket under an abstract name of the kernel's choice (unix(7),
// autobind): nothing lies in the file system, and it ends with its last holder.
func listen() (*os.File, string, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, "", err
	}
	f := os.NewFile(uintptr(fd), "service")
	// An address of the family alone asks for a name.
	if err = autobind(fd); err == nil {
		err = unix.Listen(fd, maxConnections)
	}
	var at unix.Sockaddr
	if err == nil {
		at, err = unix.Getsockname(fd)
	}
	if err != nil {
		f.Close()
		return nil, "", err
	}
	name, ok := at.(*unix.SockaddrUnix)
	if !ok {
		f.Close()
		return nil, "", errors.New("its name is none of a local socket")
	}
	return f, name.Name, nil
}

// Pid is the service's process ID. It stays its own until Stop.
func (p *Process) Pid() int { return p.child.Pid() }

// Addr is where it is reached: an abstract local socket, "@..." as Go writes it.
func (p *Process) Addr() string { return p.addr }

// answerPatience bounds the wait for a service's own words, which its quota
// may delay.
const answerPatience = 30 * time.Second

// Go lets the service serve, and returns when all its threads run.
func (p *Process) Go() error {
	if _, err := p.ask(wordGo); err != nil {
		return err
	}
	p.child.Hold()
	return nil
}

// Disturbed is [child.Process.Disturbed].
func (p *Process) Disturbed() error { return p.child.Disturbed() }

// Begin lets the collector count the time until its first collection, where it has one
// by the clock; once, after Go.
func (p *Process) Begin() error {
	if err := p.child.Tell(wordBegin); err != nil {
		return fmt.Errorf("service: %w", err)
	}
	return nil
}

// Stats is what the service has counted so far; after Go only.
func (p *Process) Stats() (Stats, error) { return p.ask(wordStats) }

func (p *Process) ask(word byte) (Stats, error) {
	var s Stats
	if err := p.child.Tell(word); err != nil {
		return s, fmt.Errorf("service: %w", err)
	}
	late := time.AfterFunc(answerPatience, func() { _ = p.child.Stop() })
	defer late.Stop()
	line, err := p.out.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &s)
	}
	if err != nil {
		return s, fmt.Errorf("service: process %d gave no answer: %w", p.Pid(), errors.Join(err, p.child.Stop()))
	}
	return s, nil
}

// Stop ends the service, reaps it, and says if it went wrong before.
func (p *Process) Stop() error { return p.child.Stop() }
