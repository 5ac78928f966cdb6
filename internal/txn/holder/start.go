package holder

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/unthrottle/unthrottle/internal/text"
)

// Command is the hidden command of this program that holds the scheduler.
const Command = "hold-scheduler"

const (
	// ready is the answer of a holder that has attached the scheduler.
	ready = "ready"
	// answerFD is where a holder answers.
	answerFD = 3
	// startWithin bounds the wait for the answer. To read the kernel's types takes seconds on a slow host.
	startWithin = 2 * time.Minute
	// maxAnswer bounds the answer.
	maxAnswer = 4096
)

// startHolder starts a holder and waits until it holds the scheduler. The error is the holder's.
func (h *Host) startHolder() error {
	answer, theirs, err := os.Pipe()
	if err != nil {
		return err
	}
	defer answer.Close()
	child := exec.Command("/proc/self/exe", Command, h.StateDir)
	child.Dir = "/"
	child.ExtraFiles = []*os.File{theirs}
	child.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // it outlives the terminal
	err = child.Start()
	theirs.Close()
	if err != nil {
		return fmt.Errorf("the process that holds the scheduler did not start: %w", err)
	}
	go func() { _ = child.Wait() }()
	if err := answer.SetReadDeadline(time.Now().Add(startWithin)); err != nil {
		return err
	}
	said, err := io.ReadAll(io.LimitReader(answer, maxAnswer))
	switch words := strings.TrimSpace(string(said)); {
	case words == ready:
		return nil
	case words != "":
		return errors.New(text.Sanitize(words, maxAnswer))
	case errors.Is(err, os.ErrDeadlineExceeded):
		_ = child.Process.Kill()
		return fmt.Errorf("the scheduler was not loaded within %v", startWithin)
	}
	return errors.New("the process that holds the scheduler ended at once")
}
