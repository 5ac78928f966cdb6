package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/bandwidth"
	"github.com/unthrottle/unthrottle/internal/clock"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/load/loadgen"
	"github.com/unthrottle/unthrottle/internal/load/sandbox"
)

// stage is where one case runs: cgroups, a folder and the programs in them.
type stage struct {
	host *cgroup.Host
	box  *sandbox.Sandbox
	// target is the container that fix is asked about, limited the cgroup whose limit
	// binds: the target, or its pod.
	target, limited *sandbox.Group
	dir             string
	programs        []*exec.Cmd
	groups          []*sandbox.Group
	// follow: services are started as explain advises.
	follow bool
}

// period of all limits, the kernel's default.
const period = bandwidth.DefaultPeriod

// openStage makes the cgroups of a case. A pod's limit holds for two containers in it;
// the target is the first.
func openStage(host *cgroup.Host, c testCase) (*stage, error) {
	box, err := sandbox.Open(sandbox.Options{Host: host, Prefix: "unthrottle-truth-"})
	if err != nil {
		return nil, err
	}
	s := &stage{host: host, box: box}
	if s.dir, err = os.MkdirTemp("", "unthrottle-truth-"); err == nil {
		err = os.Chmod(s.dir, 0o755) // services run as users of their own
	}
	if err == nil {
		err = s.makeGroups(c)
	}
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *stage) makeGroups(c testCase) (err error) {
	if s.limited, err = s.group(s.box.Top(), c.name); err != nil {
		return err
	}
	s.target = s.limited
	if c.pod {
		if s.target, err = s.group(s.limited, "main"); err != nil {
			return err
		}
	}
	return s.limited.SetLimit(cgroup.Limit{Quota: bandwidth.QuotaOf(c.limit, period), Period: period})
}

// group makes a cgroup whose processes close ends.
func (s *stage) group(parent *sandbox.Group, name string) (*sandbox.Group, error) {
	g, err := parent.Group(name)
	if err == nil {
		s.groups = append(s.groups, g)
	}
	return g, err
}

// oneCPU confines the limited cgroup to its first CPU.
func (s *stage) oneCPU() error {
	return s.limited.SetCPUs(cpuset.New(s.box.CPUs().List()[0]))
}

// file writes a file into the stage's folder and returns its path.
func (s *stage) file(name, text string) (string, error) {
	path := filepath.Join(s.dir, name)
	return path, os.WriteFile(path, []byte(text), 0o644)
}

// page writes a page into the stage's folder; a web server with that root has it at addr.
func (s *stage) page(addr, name string, bytes int) (request, error) {
	_, err := s.file(name, pageOfText(bytes))
	return request{Protocol: protocolHTTP, Text: "http://" + addr + "/" + name}, err
}

// program is one to start.
type program struct {
	in   *sandbox.Group // nil: the target
	args []string
	env  []string // beside PATH and HOME
	as   string   // user; "": root
}

// command prepares a program as its user in the stage's folder.
func (s *stage) command(p program, args ...string) (*exec.Cmd, error) {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = s.dir
	cmd.Env = append([]string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=" + s.dir, "LANG=C"}, p.env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: unix.SIGKILL}
	if p.as == "" {
		return cmd, nil
	}
	u, err := user.Lookup(p.as)
	if err != nil {
		return nil, err
	}
	uid, _ := strconv.ParseUint(u.Uid, 10, 32) // numbers on Linux
	gid, _ := strconv.ParseUint(u.Gid, 10, 32)
	cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return cmd, nil
}

// start starts a program in its cgroup: a shell waits for a line until it has been
// moved there, and then becomes the program.
func (s *stage) start(p program) error {
	if p.in == nil {
		p.in = s.target
	}
	cmd, err := s.command(p, append([]string{"/bin/sh", "-c", `read -r go && exec "$@"`, "sh"}, p.args...)...)
	if err != nil {
		return err
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	log, err := os.OpenFile(filepath.Join(s.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return err
	}
	s.programs = append(s.programs, cmd)
	if err := p.in.Attach(cmd.Process.Pid); err != nil {
		return err
	}
	_, err = io.WriteString(in, "go\n")
	return errors.Join(err, in.Close())
}

// prepare runs a program outside the cgroups to its end, such as initdb.
func (s *stage) prepare(ctx context.Context, p program) error {
	cmd, err := s.command(p, p.args...)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err = cmd.Start(); err == nil {
		stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() }) // there is none before the start
		defer stop()
		err = cmd.Wait()
	}
	if err != nil {
		return errors.Join(ctx.Err(), fmt.Errorf("%s: %w: %.500s", strings.Join(p.args, " "), err, out.String()))
	}
	return ctx.Err()
}

// own hands the stage's folder to a user.
func (s *stage) own(name string) error {
	u, err := user.Lookup(name)
	if err != nil {
		return err
	}
	uid, _ := strconv.Atoi(u.Uid)
	gid, _ := strconv.Atoi(u.Gid)
	return os.Chown(s.dir, uid, gid)
}

// freeAddr returns a loopback address on which no one listens now.
func freeAddr() (addr, port string, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", "", err
	}
	defer l.Close()
	addr = l.Addr().String()
	_, port, err = net.SplitHostPort(addr)
	return addr, port, err
}

// ready waits until a request is answered.
func (s *stage) ready(ctx context.Context, r request) error {
	const patience = time.Minute
	send, err := exchangeOf(order{Plan: loadgen.Plan{Streams: make([]loadgen.Stream, 1), Connections: 1}, Requests: []request{r}})
	if err != nil {
		return err
	}
	var last error
	for begun := time.Now(); time.Since(begun) < patience; {
		if last = send(ctx, 0); last == nil {
			return nil
		}
		if err := clock.Sleep(ctx, 200*time.Millisecond); err != nil {
			return err
		}
	}
	log, _ := os.ReadFile(filepath.Join(s.dir, "log"))
	return fmt.Errorf("no answer within %v: %w; its log ends: %s", patience, last, log[max(0, len(log)-600):])
}

// close ends the programs and removes the cgroups and the folder.
func (s *stage) close() error {
	for _, p := range s.programs {
		_ = unix.Kill(-p.Process.Pid, unix.SIGTERM) // gone already is as well
	}
	const patience = 3 * time.Second
	for begun := time.Now(); time.Since(begun) < patience && len(s.inside()) > 0; {
		time.Sleep(50 * time.Millisecond)
		s.reap()
	}
	// Whatever is still in cgroups of our own is of our own.
	for range 20 {
		for _, pid := range s.inside() {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		s.reap()
		if len(s.inside()) == 0 {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	err := s.box.Remove()
	if s.dir != "" {
		err = errors.Join(err, os.RemoveAll(s.dir))
	}
	return err
}

// inside returns the processes in the stage's cgroups.
func (s *stage) inside() []int {
	var all []int
	for _, g := range s.groups {
		pids, err := s.host.Procs(cgroup.CPU, g.At().Path)
		if err == nil { // a cgroup that has gone has none
			all = append(all, pids...)
		}
	}
	return all
}

// reap takes the exit codes of programs that have ended.
func (s *stage) reap() {
	for _, p := range s.programs {
		var status unix.WaitStatus
		_, _ = unix.Wait4(p.Process.Pid, &status, unix.WNOHANG, nil)
	}
}
