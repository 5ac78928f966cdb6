package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

// suite is one run of all checks.
type suite struct {
	ctx              context.Context
	out              io.Writer
	dir, exe, crictl string
	passed, failed   int
	stops            []func() // last first
	// units says that servers are units of this machine's systemd.
	units bool
}

// check writes the line of a check and returns its error.
func (s *suite) check(name string, err error) error {
	if err == nil {
		s.passed++
		fmt.Fprintf(s.out, "ok    %s\n", name)
		return nil
	}
	s.failed++
	fmt.Fprintf(s.out, "FAIL  %s: %s\n", name, strings.ReplaceAll(strings.TrimSpace(err.Error()), "\n", "\n      "))
	return err
}

// has checks that programs are installed.
func (s *suite) has(programs ...string) error {
	for _, name := range programs {
		if _, err := exec.LookPath(name); err != nil {
			return s.check(name+" is installed", fmt.Errorf("%s is missing: make e2e-install", name))
		}
	}
	return nil
}

func (s *suite) stopAll() {
	for i := len(s.stops) - 1; i >= 0; i-- {
		s.stops[i]()
	}
}

// said is what a program printed.
type said struct {
	code        int
	out, errors string
}

// patience is for how long a program may run; on emulated CPUs loading the probe alone can take a minute.
func (s *suite) patience() time.Duration {
	if s.units {
		return 6 * time.Minute
	}
	return 2 * time.Minute
}

// timeout is the flag by which kubectl and helm give up before we do: what is not there after some minutes does not come.
func (s *suite) timeout() string {
	return "--timeout=" + (s.patience() - 10*time.Second).String()
}

// run runs a program to its end, at most as long as patience allows. Stopping needs it after an interrupt too.
func (s *suite) run(stdin io.Reader, env []string, name string, args ...string) (said, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), s.patience())
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	var out, complaints bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.Env = stdin, &out, &complaints, append(os.Environ(), env...)
	var meanwhile string
	cmd.Cancel, cmd.WaitDelay = func() error { meanwhile = busiest(); return s.giveUp(cmd) }, 30*time.Second
	err := cmd.Run()
	got := said{cmd.ProcessState.ExitCode(), out.String(), complaints.String()}
	if ctx.Err() != nil {
		err = fmt.Errorf("%w after %v; meanwhile most CPU time went to:\n%s", err, s.patience(), meanwhile)
	}
	if err != nil {
		return got, fmt.Errorf("%s %s: %w\n%s%s", filepath.Base(name), strings.Join(args, " "), err, got.out, got.errors)
	}
	return got, nil
}

// giveUp ends a program that had its time. One of ours that it runs in a pod is asked first where it waits.
func (s *suite) giveUp(cmd *exec.Cmd) error {
	if i := slices.Index(cmd.Args, "--"); s.units && i > 0 && cmd.Args[i+1] == "unthrottle" {
		return exec.Command("pkill", "-QUIT", "-f", "^"+regexp.QuoteMeta(strings.Join(cmd.Args[i+1:], " "))).Run()
	}
	return cmd.Process.Kill()
}

// busiest are the processes that have used the most CPU time for their age, with what each waits for.
func busiest() string {
	out, err := exec.Command("ps", "-eo", "pid,ppid,stat,wchan:24,time,pcpu,args", "--sort=-pcpu", "--columns=160").CombinedOutput()
	if err != nil {
		return err.Error()
	}
	lines := strings.SplitN(string(out), "\n", 16)
	return strings.Join(lines[:len(lines)-1], "\n")
}

// ask runs a program and returns the last line that it printed.
func (s *suite) ask(env []string, name string, args ...string) (string, error) {
	got, err := s.run(nil, env, name, args...)
	lines := strings.Split(strings.TrimSpace(got.out), "\n")
	return lines[len(lines)-1], err
}

// server starts a program in the background, with what it says in NAME.log, and waits until ready has no error.
func (s *suite) server(name string, env []string, ready func() error, args ...string) (*exec.Cmd, error) {
	if s.units {
		return nil, s.unit(name, env, ready, args...)
	}
	log, err := os.Create(filepath.Join(s.dir, name+".log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr, cmd.Env = log, log, append(os.Environ(), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // an interrupt is for us alone: we stop it
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return cmd, s.untilReady(name, 150, ready)
}

// untilReady waits until a server answers.
func (s *suite) untilReady(name string, tries int, ready func() error) (err error) {
	for range tries {
		if err = ready(); err == nil || s.ctx.Err() != nil {
			return errors.Join(err, s.ctx.Err())
		}
		time.Sleep(200 * time.Millisecond)
	}
	return fmt.Errorf("%s does not answer: %w\n%s", name, err, s.log(name))
}

// log is the end of what a server said.
func (s *suite) log(name string) string {
	var text []byte
	if s.units {
		text, _ = exec.Command("journalctl", "--no-pager", "-o", "cat", "-n", "30", "-u", name).CombinedOutput()
	} else {
		text, _ = os.ReadFile(filepath.Join(s.dir, name+".log"))
	}
	return string(text[max(0, len(text)-3000):])
}

// end asks a server to end, and kills it where it does not within ten seconds.
func end(cmd *exec.Cmd) {
	if cmd == nil || cmd.Process == nil || cmd.ProcessState != nil {
		return
	}
	_ = cmd.Process.Signal(syscall.SIGCONT)
	_ = cmd.Process.Signal(syscall.SIGTERM)
	timer := time.AfterFunc(10*time.Second, func() { _ = cmd.Process.Kill() })
	_ = cmd.Wait()
	timer.Stop()
}

// listed is a line of ls -o json.
type listed struct {
	Path, Name                                            string
	Namespace, Pod, Container, Image, Runtime, Scope, QoS *string
	Project, Service                                      *string
	ID                                                    string   `json:"container_id"`
	Limit                                                 *float64 `json:"limit_cpus"`
	Throttled                                             *uint64  `json:"throttled_periods"`
}

// ls lists the containers by path, and returns what was told on standard error.
func (s *suite) ls(env ...string) (map[string]listed, string, error) {
	got, err := s.run(nil, env, s.exe, "ls", "-o", "json", "--for", "500ms")
	if err != nil {
		return nil, got.errors, err
	}
	var all struct{ Containers []listed }
	if err := json.Unmarshal([]byte(got.out), &all); err != nil {
		return nil, got.errors, fmt.Errorf("ls -o json: %w", err)
	}
	found := map[string]listed{}
	for _, l := range all.Containers {
		found[l.Path] = l
	}
	return found, got.errors, nil
}

// want is what a container must be called; "" must be null.
type want struct {
	name, namespace, pod, container, image, runtime, scope, project, service string
}

// is compares a line with what is wanted.
func (l listed) is(w want) error {
	var wrong []string
	for _, c := range []struct {
		key, want string
		got       *string
	}{
		{"name", w.name, &l.Name}, {"namespace", w.namespace, l.Namespace}, {"pod", w.pod, l.Pod}, {"container", w.container, l.Container},
		{"image", w.image, l.Image}, {"runtime", w.runtime, l.Runtime}, {"scope", w.scope, l.Scope},
		{"project", w.project, l.Project}, {"service", w.service, l.Service},
	} {
		switch {
		case c.got == nil && c.want != "":
			wrong = append(wrong, fmt.Sprintf("%s null, want %q", c.key, c.want))
		case c.got != nil && *c.got != c.want:
			wrong = append(wrong, fmt.Sprintf("%s %q, want %q", c.key, *c.got, c.want))
		}
	}
	if wrong != nil {
		return fmt.Errorf("%s: %s", l.Path, strings.Join(wrong, "; "))
	}
	return nil
}

// named compares lines with what is wanted, by path.
func named(all map[string]listed, wants map[string]want) error {
	var errs []error
	for path, w := range wants {
		l, ok := all[path]
		if !ok {
			errs = append(errs, fmt.Errorf("%s (%s) is not listed", path, w.name))
			continue
		}
		errs = append(errs, l.is(w))
	}
	return errors.Join(errs...)
}

// resolves checks that each target means the container at path; "" means that it is refused.
func (s *suite) resolves(env []string, targets map[string]string) error {
	var errs []error
	for target, path := range targets {
		got, err := s.run(nil, env, s.exe, "apply", target, "--remedy", "raise", "--to", "0.9", "--dry-run", "--json", "--for", "100ms")
		var plan struct{ Writes []struct{ Path string } }
		switch decoded := json.Unmarshal([]byte(got.out), &plan); {
		case path == "" && err == nil:
			errs = append(errs, fmt.Errorf("%s is not refused", target))
		case path == "":
		case err != nil || decoded != nil:
			errs = append(errs, errors.Join(fmt.Errorf("%s", target), err, decoded))
		case len(plan.Writes) == 0 || plan.Writes[0].Path != path:
			errs = append(errs, fmt.Errorf("%s: plans %v, want writes to %s", target, plan.Writes, path))
		}
	}
	return errors.Join(errs...)
}
