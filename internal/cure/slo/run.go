package slo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/mattn/go-shellwords"
)

// Limit is how long a latency source may run.
const Limit = 30 * time.Second

// maxOutput bounds what a latency source may print; more is an error, since
// cutting it would bias the quantiles towards the beginning.
const maxOutput = 8 << 20

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
		return nil, fmt.Errorf("slo command %q: %q needs a shell, and none is used: put it into a script and name that",
			command, command[parser.Position:])
	}
	if len(words) == 0 {
		return nil, errors.New("slo command is empty: give a program that prints one number in ms per line")
	}
	if len(words) > maxWords {
		return nil, fmt.Errorf("slo command has %d words, more than %d: put it into a script", len(words), maxWords)
	}
	return words, nil
}

// Check tells whether the command's program is there and can be run, without running it.
func Check(command string) error {
	words, err := Split(command)
	if err != nil {
		return err
	}
	if _, err := exec.LookPath(words[0]); err != nil {
		return fmt.Errorf("slo command %q: %w: give the path of a program that can be run", words[0], errors.Unwrap(err))
	}
	return nil
}

// The command is told since when latencies are wanted: in this variable of its environment, and in place of this text in
// its words.
const (
	sinceVariable = "UNTHROTTLE_SINCE"
	sinceWord     = "{since}"
)

// Run runs command once, within Limit, and gives what it printed on standard
// output. since is from when on latencies are wanted. The error tells a program
// that could not be started from one that failed (with the end of its standard
// error) and one that took too long.
func Run(ctx context.Context, command string, since time.Time) ([]byte, error) {
	return run(ctx, command, since, Limit)
}

func run(ctx context.Context, command string, since time.Time, limit time.Duration) ([]byte, error) {
	words, err := Split(command)
	if err != nil {
		return nil, err
	}
	from := wholeSecond(since)
	for i := range words {
		words[i] = strings.ReplaceAll(words[i], sinceWord, from)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	out := &bounded{max: maxOutput, overflow: cancel}
	complaints := &bounded{max: 4096}
	cmd := exec.Command(words[0], words[1:]...)
	who := callingUser(os.Getuid(), os.Getenv, lookUp)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: who.credential}
	cmd.Env = append(append(os.Environ(), who.env...), sinceVariable+"="+from)
	held, err := runGroup(ctx, cmd, out, complaints, func(group int) { _ = syscall.Kill(-group, syscall.SIGKILL) })
	switch {
	case out.full:
		return nil, fmt.Errorf("slo command %q: printed more than %d MB: print one number in ms per line", words[0], maxOutput>>20)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return nil, fmt.Errorf("slo command %q: still running after %v and was ended: let it measure a shorter time", words[0], limit)
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, fmt.Errorf("slo command %q: %w%s", words[0], err, complaints.tail())
	case held:
		return nil, fmt.Errorf("slo command %q: it ended, but a process that it started still held its output, so "+
			"that there may be more: let it wait for its children", words[0])
	}
	return out.kept.Bytes(), nil
}

// wholeSecond is a time as RFC 3339 in UTC, rounded up to a second: no latency from before it is meant.
func wholeSecond(at time.Time) string {
	second := at.Truncate(time.Second)
	if second.Before(at) {
		second = second.Add(time.Second)
	}
	return second.UTC().Format(time.RFC3339)
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
