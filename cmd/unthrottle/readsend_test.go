package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/load/cgrouptest"
	"github.com/unthrottle/unthrottle/test/wait"
)

// pipeNamed makes a pipe with a name.
func pipeNamed(t *testing.T, name string) {
	t.Helper()
	if err := unix.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
}

// hold opens a pipe for writing as soon as a reader has it open, and writes nothing until the test ends.
func hold(t *testing.T, name string) {
	t.Helper()
	var out *os.File
	wait.Until(t, "it opens "+filepath.Base(name), func() bool {
		fd, err := unix.Open(name, unix.O_WRONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if errors.Is(err, unix.ENXIO) {
			return false // no reader yet
		}
		if err != nil {
			t.Fatal(err)
		}
		out = os.NewFile(uintptr(fd), name)
		return true
	})
	t.Cleanup(func() { out.Close() })
}

// The first signal ends each command that waits for a file which a user named.
func TestTheFirstSignalEndsAReadingCommand(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"agent", "--check", "--config", "PIPE"}, {"policy", "--config", "PIPE"}, {"simulate", "PIPE"},
		{"place", "--containers", "EMPTY", "--topology", "PIPE"}, {"place", "--containers", "PIPE"},
		{"place", "--containers", "-"}, {"place", "--containers", "EMPTY", "--topology", "-"},
	} {
		for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
			t.Run(fmt.Sprint(args, signal), func(t *testing.T) {
				t.Parallel()
				name := filepath.Join(t.TempDir(), "pipe")
				pipeNamed(t, name)
				own := append([]string{}, args...)
				for i := range own {
					switch own[i] {
					case "PIPE":
						own[i] = name
					case "EMPTY":
						own[i] = "/dev/null"
					}
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				cmd := exec.CommandContext(ctx, exe, own...)
				cmd.Env = append(os.Environ(), envMain+"=1")
				in, err := os.OpenFile(name, os.O_RDWR, 0) // never ends
				if err != nil {
					t.Fatal(err)
				}
				defer in.Close()
				cmd.Stdin = in
				if _, err := in.WriteString(" "); err != nil {
					t.Fatal(err)
				}
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				wait.Until(t, "it reads", func() bool {
					left, err := unix.IoctlGetInt(int(in.Fd()), unix.TIOCINQ)
					return err == nil && left == 0
				})
				if err := cmd.Process.Signal(signal); err != nil {
					t.Fatal(err)
				}
				err = cmd.Wait()
				if ended := new(exec.ExitError); ctx.Err() != nil || err != nil && !errors.As(err, &ended) {
					t.Errorf("%v, %v", err, ctx.Err())
				}
			})
		}
	}
}

// A reload that waits for a pipe loses no later hang-up, and the first signal ends the agent all the same.
func TestAReloadThatHangs(t *testing.T) {
	t.Parallel()
	tr := cgrouptest.New(t)
	b := start(t, "scope: "+tr.Top+"\nflight: {probe: false}\n", "--state-dir", tr.StateDir)
	hangup := func(content string) {
		t.Helper()
		if err := os.Remove(b.config); err != nil {
			t.Fatal(err)
		}
		if content == "" {
			pipeNamed(t, b.config)
		} else if err := os.WriteFile(b.config, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := b.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
	}
	hangup("")
	hold(t, b.config)
	hangup("version: 1\nlisten: 127.0.0.1:0\nscope: " + tr.Top + "\nmode: apply\nflight: {probe: false}\n")
	wait.Until(t, "the next hang-up counts", func() bool { return b.hasSaid("was read again: mode apply") })
	hangup("")
	hold(t, b.config)
	if err := b.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-b.said
	if err := b.cmd.Wait(); err != nil {
		t.Errorf("asked to end: %v", err)
	}
}
