// Command part runs one part of a long run and says what it does: a line a minute with the tests that run now. Its time
// goes into DIR/parts.jsonl, which part -sum prints as a table.
//
//	part DIR NAME COMMAND...
//	part -sum DIR
//
// The tests that run now are read from the `go test -json` output in DIR/*.json, as far as it was written since the part
// began. The exit code is the command's.
package main

import (
	"bufio"
	"context"
	"encoding/json"
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

	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/test/lab/results"
)

// every is how often a part says what it does.
const every = time.Minute

// took is a line of parts.jsonl: what one part took, and how it ended.
type took struct {
	Part    string  `json:"part"`
	Seconds float64 `json:"seconds"`
	Failed  bool    `json:"failed,omitempty"`
}

const partsFile = "parts.jsonl"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var err error
	switch {
	case len(args) == 2 && args[0] == "-sum":
		err = sum(args[1], stdout)
	case len(args) >= 3:
		var ended *exec.ExitError
		if err = part(ctx, args[0], args[1], args[2:], stdout, stderr); errors.As(err, &ended) {
			return max(1, ended.ExitCode())
		}
	default:
		fmt.Fprintln(stderr, "usage: part DIR NAME COMMAND... | part -sum DIR")
		return 2
	}
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	return 0
}

// part runs the command, and notes in dir what it took.
func part(ctx context.Context, dir, name string, command []string, stdout, stderr io.Writer) error {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Stdout, cmd.Stderr = stdout, stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	for tick := time.NewTicker(every); ; {
		select {
		case err := <-done:
			return errors.Join(err, note(dir, took{name, time.Since(began).Seconds(), err != nil}))
		case now := <-tick.C:
			fmt.Fprintln(stdout, progress(name, now.Sub(began), doing(dir, began)))
		}
	}
}

// note adds a line to the file of what the parts took.
func note(dir string, t took) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(dir, partsFile), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	return errors.Join(json.NewEncoder(f).Encode(t), f.Close())
}

// progress is the line of a minute.
func progress(name string, since time.Duration, s state) string {
	line := fmt.Sprintf("-- %s, %s: %s ended", name, text.Count(int(since.Round(every)/every), "minute"), text.Count(s.packages, "package"))
	if len(s.running) > 0 {
		line += "; now " + strings.Join(s.running[:min(len(s.running), 4)], ", ")
	}
	return line
}

// state is how far runs are: the packages that ended, and the tests that run now.
type state struct {
	packages int
	running  []string
}

// doing reads the files of dir that were written since a time.
func doing(dir string, since time.Time) (s state) {
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return s
	}
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			continue // it was just replaced
		}
		if info, err := f.Stat(); err == nil && info.ModTime().After(since) {
			s.add(f)
		}
		_ = f.Close()
	}
	return s
}

// add takes in the events of one run. A line that is not whole yet is left out.
func (s *state) add(events io.Reader) {
	running := map[string]bool{}
	lines := bufio.NewScanner(events)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e results.Event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			continue
		}
		ended := e.Action == "pass" || e.Action == "fail" || e.Action == "skip"
		switch id := e.Package[strings.LastIndex(e.Package, "/")+1:] + "." + e.Test; {
		case e.Test == "" && ended:
			s.packages++
		case strings.Contains(e.Test, "/"):
		case e.Action == "run":
			running[id] = true
		case ended:
			delete(running, id)
		}
	}
	for id := range running {
		s.running = append(s.running, id)
	}
	slices.Sort(s.running)
}

// sum prints what the parts took, and forgets them.
func sum(dir string, stdout io.Writer) error {
	data, err := os.ReadFile(filepath.Join(dir, partsFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	fmt.Fprintln(stdout, "== what each part took")
	for line := range strings.Lines(string(data)) {
		var t took
		if err := json.Unmarshal([]byte(line), &t); err != nil {
			return fmt.Errorf("%s: %w", filepath.Join(dir, partsFile), err)
		}
		failed := ""
		if t.Failed {
			failed = "  FAILED"
		}
		fmt.Fprintf(stdout, "%4d:%02d  %s%s\n", int(t.Seconds)/60, int(t.Seconds)%60, t.Part, failed)
	}
	return os.Remove(filepath.Join(dir, partsFile))
}
