package slo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/mattn/go-shellwords"
)

// Limit is how long a latency source may run.
const Limit = 30 * time.Second

// MaxOutput bounds what a latency source may print; more is an error, since
// cutting it would bias the quantiles towards the beginning.
const MaxOutput = 8 << 20

// maxWords bounds the split command.
const maxWords = 256

// Split splits command into words by the shell's quoting rules. It refuses an
// empty command and everything only a shell could do (pipes, redirections,
// several commands), naming it.
func Split(command string) ([]string, error) {
	parser := shellwords.NewParser()
	words, err := parser.Parse(command)
	if err != nil {
		return nil, fmt.Errorf("slo command %q: %w", command, err)
	}
	if parser.Position >= 0 {
		return nil, fmt.Errorf("slo command %q: %q needs a shell, and none is used: put it into a script and name that", command, command[parser.Position:])
	}
	if len(words) == 0 {
		return nil, errors.New("slo command is empty: give a program that prints one number in ms per line")
	}
	if len(words) > maxWords {
		return nil, fmt.Errorf("slo command has %d words, more than %d: put it into a script", len(words), maxWords)
	}
	return words, nil
}

// Run runs command once, within Limit, and gives what it printed on standard
// output. The error tells a program that could not be started from one that
// failed (with the end of its standard error) and one that took too long.
func Run(ctx context.Context, command string) ([]byte, error) {
	return run(ctx, command, Limit)
}

func run(ctx context.Context, command string, limit time.Duration) ([]byte, error) {
	words, err := Split(command)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	out := &bounded{max: MaxOutput, overflow: cancel}
	complaints := &bounded{max: 4096}
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Stdout, cmd.Stderr = out, complaints
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: callingUser(os.Getuid(), os.Getenv)}
	// The group, since a script's children would hold the pipe open.
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second

	err = cmd.Run()
	if cmd.Process != nil {
		// What it left behind in its group ends too, however it ended itself.
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	switch {
	case out.full:
		return nil, fmt.Errorf("slo command %q: printed more than %d MB: print one number in ms per line", words[0], MaxOutput>>20)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return nil, fmt.Errorf("slo command %q: still running after %v and was ended: let it measure a shorter time", words[0], limit)
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, exec.ErrWaitDelay):
		return nil, fmt.Errorf("slo command %q: it ended, but a process that it started still held its output, so that there may be more: let it wait for its children", words[0])
	case err != nil:
		return nil, fmt.Errorf("slo command %q: %w%s", words[0], err, complaints.tail())
	}
	return out.kept.Bytes(), nil
}

// callingUser is whom the command runs as: the user behind sudo when root was
// reached through it, else the same user as now (nil).
func callingUser(uid int, getenv func(string) string) *syscall.Credential {
	if uid != 0 {
		return nil
	}
	sudoUID, err := strconv.ParseUint(getenv("SUDO_UID"), 10, 32)
	if err != nil || sudoUID == 0 {
		return nil
	}
	sudoGID, err := strconv.ParseUint(getenv("SUDO_GID"), 10, 32)
	if err != nil {
		return nil
	}
	return &syscall.Credential{Uid: uint32(sudoUID), Gid: uint32(sudoGID)}
}

// bounded is a buffer that takes max bytes and drops the rest, remembering
// that it did. overflow, if set, is called once then. The buffer is not
// embedded: its ReadFrom would let io.Copy pass the bound by.
type bounded struct {
	kept     bytes.Buffer
	max      int
	full     bool
	overflow func()
}

func (b *bounded) Write(p []byte) (int, error) {
	if room := b.max - b.kept.Len(); len(p) > room {
		b.kept.Write(p[:room])
		if !b.full && b.overflow != nil {
			b.overflow()
		}
		b.full = true
		return len(p), nil
	}
	return b.kept.Write(p)
}

// tail is the last line of what was complained about, quoted: it comes from a
// program that is not ours.
func (b *bounded) tail() string {
	text := strings.TrimSpace(b.kept.String())
	if text == "" {
		return ""
	}
	if i := strings.LastIndexByte(text, '\n'); i >= 0 {
		text = text[i+1:]
	}
	return fmt.Sprintf(": %.200q", text)
}
