package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "smoke:", err)
		os.Exit(1)
	}
}

// tree is where the clone is made, below the folder of the Makefile.
const tree = ".cache/smoke/tree"

// most is how long a target may take in its shortest form: minutes on a busy machine.
const most = 10 * time.Minute

// run runs the forms one after the other; only are the targets wanted, none: all.
func run(ctx context.Context, only []string, out io.Writer) error {
	if os.Geteuid() != 0 {
		return errors.New("some targets make cgroups: run it as root")
	}
	for _, name := range only {
		if !slices.ContainsFunc(forms, func(f form) bool { return f.target == name }) {
			return fmt.Errorf("%s is no target with a row in test/smoke/targets.go", name)
		}
	}
	if err := os.RemoveAll(tree); err != nil {
		return err
	}
	defer os.RemoveAll(tree)
	if text, err := exec.CommandContext(ctx, "git", "clone", "-q", ".", tree).CombinedOutput(); err != nil {
		return fmt.Errorf("git clone: %w: %s", err, text)
	}
	var failed []string
	for _, f := range forms {
		if len(only) > 0 && !slices.Contains(only, f.target) {
			continue
		}
		if f.elsewhere != "" {
			fmt.Fprintf(out, "not here  make %s: %s\n", f.target, f.elsewhere)
			continue
		}
		begun := time.Now()
		text, err := f.run(ctx)
		word := "ok"
		if err != nil {
			word, failed = "FAIL", append(failed, f.target)
		}
		fmt.Fprintf(out, "%-4s %5.1f s  make %s\n", word, time.Since(begun).Seconds(),
			strings.Join(append([]string{f.target}, f.args...), " "))
		if err != nil {
			fmt.Fprintf(out, "%s%v\n", text, err)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	if len(failed) > 0 {
		return fmt.Errorf("these targets fail in a fresh clone: %s", strings.Join(failed, ", "))
	}
	return nil
}

// run runs make in the clone and returns what it printed.
func (f form) run(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	cmd := exec.CommandContext(ctx, "make", append([]string{"--no-print-directory", f.target}, f.args...)...)
	dir, err := filepath.Abs(tree)
	if err != nil {
		return "", err
	}
	cmd.Dir = dir
	// A make above hands its flags and variables on by these.
	cmd.Env = slices.DeleteFunc(os.Environ(),
		func(v string) bool { return strings.HasPrefix(v, "MAKE") || strings.HasPrefix(v, "MFLAGS=") })
	// An interrupt reaches what make started, which then cleans up.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	cmd.WaitDelay = 20 * time.Second
	var text bytes.Buffer
	cmd.Stdout, cmd.Stderr = &text, &text
	err = cmd.Run()
	return text.String(), err
}
