package services

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/bandwidth"
	"github.com/unthrottle/unthrottle/internal/clock"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/procfs"
	"github.com/unthrottle/unthrottle/internal/load/sandbox"
)

// Stage is where one case runs: cgroups, a folder and the programs in them.
type Stage struct {
	// Target is the container of the service, and Limited the cgroup whose limit binds: the target, or its pod.
	Target, Limited *sandbox.Group
	// Containers are those of the case beside it, by name.
	Containers map[string]*sandbox.Group
	// Dir is the folder of its files.
	Dir string
	// Advised: services are started with the setting that explain advises.
	Advised bool

	host     *cgroup.Host
	box      *sandbox.Sandbox
	programs []*exec.Cmd
	groups   []*sandbox.Group
	as       string // the user that programs run as; "": root
}

// Scope is the path of the cgroup that all others of the stage are below.
func (s *Stage) Scope() string { return s.box.Top().At().Path }

// CPUs are those that the stage's cgroups may run on, in ascending order.
func (s *Stage) CPUs() []int { return s.box.CPUs().List() }

// Period is that of all limits, the kernel's default.
const Period = bandwidth.DefaultPeriod

// Open makes the cgroups of a case. A pod's limit holds for two containers in it;
// the target is the first. It must be closed.
func Open(host *cgroup.Host, c Case) (*Stage, error) {
	box, err := sandbox.Open(sandbox.Options{Host: host, Prefix: "unthrottle-service-"})
	if err != nil {
		return nil, err
	}
	s := &Stage{host: host, box: box, as: c.As}
	if s.Dir, err = os.MkdirTemp("", "unthrottle-service-"); err == nil {
		err = os.Chmod(s.Dir, 0o755) // services run as users of their own
	}
	if err == nil {
		err = s.makeGroups(c)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Stage) makeGroups(c Case) (err error) {
	if s.Limited, err = s.group(s.box.Top(), c.Name); err != nil {
		return err
	}
	s.Target = s.Limited
	if c.OneCPU {
		if err := s.Limited.SetCPUs(cpuset.New(s.box.CPUs().List()[0])); err != nil {
			return err
		}
	}
	if c.Shares > 0 {
		if err := s.Limited.SetShares(c.Shares); err != nil {
			return err
		}
	}
	if c.Pod {
		if s.Target, err = s.group(s.Limited, "main"); err != nil {
			return err
		}
	}
	s.Containers = map[string]*sandbox.Group{}
	for name, limit := range c.Containers {
		g, err := s.group(s.box.Top(), c.Name+"-"+name)
		if err == nil {
			err = g.SetLimit(limitOf(limit))
		}
		if err != nil {
			return err
		}
		s.Containers[name] = g
	}
	return s.Limited.SetLimit(limitOf(c.Limit))
}

func limitOf(cpus float64) cgroup.Limit {
	return cgroup.Limit{Quota: bandwidth.QuotaOf(cpus, Period), Period: Period}
}

// group makes a cgroup whose processes Close ends.
func (s *Stage) group(parent *sandbox.Group, name string) (*sandbox.Group, error) {
	g, err := parent.Group(name)
	if err == nil {
		s.groups = append(s.groups, g)
	}
	return g, err
}

// in makes the cgroup of a program, unless it is there; nil: the program stays where this one is.
func (s *Stage) in(name string) (*sandbox.Group, error) {
	switch name {
	case "":
		return s.Target, nil
	case "sidecar":
		return s.group(s.Limited, name)
	case "beside":
		return s.group(s.box.Top(), name)
	case "host":
		return nil, nil
	}
	if g, ok := s.Containers[name]; ok {
		return g, nil
	}
	return nil, fmt.Errorf("in: %q is no cgroup of a case", name)
}

// command prepares a shell's script that runs as the case's user in the stage's folder.
func (s *Stage) command(script string) (*exec.Cmd, error) {
	cmd := exec.Command("/bin/sh", "-c", script)
	cmd.Dir = s.Dir
	cmd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=" + s.Dir, "LANG=C"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: unix.SIGKILL}
	if s.as == "" {
		return cmd, nil
	}
	u, err := user.Lookup(s.as)
	if err != nil {
		return nil, err
	}
	uid, _ := strconv.ParseUint(u.Uid, 10, 32) // numbers on Linux
	gid, _ := strconv.ParseUint(u.Gid, 10, 32)
	cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return cmd, giveTo(s.Dir, int(uid), int(gid))
}

// giveTo makes a user the owner of a folder and of what is in it, unless the folder is that user's already.
func giveTo(dir string, uid, gid int) error {
	var stat unix.Stat_t
	if err := unix.Stat(dir, &stat); err != nil || int(stat.Uid) == uid {
		return err
	}
	return filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, uid, gid)
	})
}

// start starts a program in its cgroup: the shell waits for a line until it has been moved there.
func (s *Stage) start(p Program) error {
	group, err := s.in(p.In)
	if err != nil {
		return err
	}
	cmd, err := s.command("read -r go || exit\n" + p.Run)
	if err != nil {
		return err
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	log, err := os.OpenFile(filepath.Join(s.Dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return err
	}
	s.programs = append(s.programs, cmd)
	if group != nil {
		if err := group.Attach(cmd.Process.Pid); err != nil {
			return err
		}
	}
	_, err = io.WriteString(in, "go\n")
	return errors.Join(err, in.Close())
}

// prepare runs a script outside the cgroups to its end.
func (s *Stage) prepare(ctx context.Context, script string) error {
	cmd, err := s.command("set -e\n" + script)
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
		return errors.Join(ctx.Err(), fmt.Errorf("%s: %w: %.500s", script, err, out.String()))
	}
	return ctx.Err()
}

// ready waits until a request is answered.
func (s *Stage) ready(ctx context.Context, r Request) error {
	const patience = 5 * time.Minute // Cassandra under 0.6 CPUs takes more than one
	send, err := exchangeOf(orderOf(r))
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
	log, _ := os.ReadFile(filepath.Join(s.Dir, "log"))
	return fmt.Errorf("no answer within %v: %w; its log ends: %s", patience, last, log[max(0, len(log)-600):])
}

// Close ends the programs and removes the cgroups and the folder.
func (s *Stage) Close() error {
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
	if s.Dir != "" {
		err = errors.Join(err, os.RemoveAll(s.Dir))
	}
	return err
}

// inside returns the processes in the stage's cgroups.
func (s *Stage) inside() []int {
	var all []int
	for _, g := range s.groups {
		pids, err := s.host.Procs(cgroup.CPU, g.At().Path)
		if err == nil { // a cgroup that has gone has none
			all = append(all, pids...)
		}
	}
	return all
}

// Memory is what its processes have in memory, in bytes; what several share counts for each in part (PSS, proc_pid_smaps_rollup).
func (s *Stage) Memory() (bytes int64, err error) {
	for _, pid := range s.inside() {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) { // it ended meanwhile
			continue
		}
		if err != nil {
			return 0, fmt.Errorf("memory: %w", err)
		}
		var kB int64
		pss, _ := procfs.StatusField(string(text), "Pss")
		if _, err := fmt.Sscanf(pss, "%d kB", &kB); err != nil {
			return 0, fmt.Errorf("memory of process %d: Pss is %q: %w", pid, pss, err)
		}
		bytes += kB << 10
	}
	return bytes, nil
}

// reap takes the exit codes of programs that have ended.
func (s *Stage) reap() {
	for _, p := range s.programs {
		var status unix.WaitStatus
		_, _ = unix.Wait4(p.Process.Pid, &status, unix.WNOHANG, nil)
	}
}
