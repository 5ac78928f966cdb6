package slo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"golang.org/x/sys/unix"
)

// outputDelay is how long a process that the command left behind may hold the
// command's output after its end.
const outputDelay = time.Second

// runGroup runs cmd, which must lead a process group of its own, until it ends
// or ctx does, and kills what is left of the group. held tells that another
// process still held its output outputDelay after its end.
//
// The leader is reaped last: while it is a zombie its id, and so the group's, is
// given to no other process (alloc_pid, Linux 6.12: an id is freed by release_task of
// the last that uses it). kill is called before that only.
func runGroup(ctx context.Context, cmd *exec.Cmd, out, complaints io.Writer, kill func(group int)) (held bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	copied, stop, err := pipes(cmd, out, complaints)
	if err != nil {
		return false, err
	}
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- waitUnreaped(cmd.Process.Pid) }()
	select {
	case err = <-ended:
	case <-ctx.Done():
		kill(cmd.Process.Pid)
		err = <-ended
	}
	if err == nil {
		select {
		case <-copied:
		case <-time.After(outputDelay):
			held = true
		}
		kill(cmd.Process.Pid)
	}
	return held, errors.Join(err, cmd.Wait())
}

// pipes starts cmd with its output copied to out and complaints. copied is
// closed at the end of both; stop gives up on who still holds them, and returns
// when nothing is written any more.
func pipes(cmd *exec.Cmd, out, complaints io.Writer) (copied chan struct{}, stop func(), err error) {
	outRead, outWrite, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	defer outWrite.Close()
	complaintsRead, complaintsWrite, err := os.Pipe()
	if err != nil {
		outRead.Close()
		return nil, nil, err
	}
	defer complaintsWrite.Close()
	copied = make(chan struct{})
	stop = func() {
		outRead.Close()
		complaintsRead.Close()
		<-copied
	}
	cmd.Stdout, cmd.Stderr = outWrite, complaintsWrite
	if err := cmd.Start(); err != nil {
		close(copied)
		stop()
		return nil, nil, err
	}
	go func() {
		defer close(copied)
		other := make(chan struct{})
		go func() {
			defer close(other)
			_, _ = io.Copy(complaints, complaintsRead)
		}()
		_, _ = io.Copy(out, outRead)
		<-other
	}()
	return copied, stop, nil
}

// waitUnreaped waits until a child has ended and leaves it a zombie.
func waitUnreaped(pid int) error {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, unix.EINTR):
			return fmt.Errorf("waiting for process %d: %w", pid, err)
		}
	}
}
