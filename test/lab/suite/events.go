package suite

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"

	"github.com/unthrottle/unthrottle/test/lab/results"
	"github.com/unthrottle/unthrottle/test/lab/wire"
)

// maxOutput bounds what is kept of a package's output, in bytes.
const maxOutput = 16 << 20

// Outputs collects what the steps print.
type Outputs struct {
	mu   sync.Mutex
	text map[int]*bytes.Buffer
}

// Step is where a step's output goes, stdout and stderr alike.
func (o *Outputs) Step(step int) io.Writer { return stepOutput{o, step} }

type stepOutput struct {
	o    *Outputs
	step int
}

func (s stepOutput) Write(p []byte) (int, error) {
	s.o.mu.Lock()
	defer s.o.mu.Unlock()
	if s.o.text == nil {
		s.o.text = map[int]*bytes.Buffer{}
	}
	b := s.o.text[s.step]
	if b == nil {
		b = &bytes.Buffer{}
		s.o.text[s.step] = b
	}
	if room := maxOutput - b.Len(); room > 0 {
		b.Write(p[:min(len(p), room)])
	}
	return len(p), nil
}

// Take returns what a step has printed and forgets it.
func (o *Outputs) Take(step int) []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	b := o.text[step]
	delete(o.text, step)
	if b == nil {
		return nil
	}
	return b.Bytes()
}

// Events turns a package's output and exit status into events. The last one
// says how the package ended; an exit status other than 0 is a failure
// whatever was printed.
func Events(ctx context.Context, p Package, output []byte, status wire.ExitStatus) ([]results.Event, error) {
	reason := failure(status)
	if reason != "" {
		output = fmt.Appendf(output, "\nlab: %s\n", reason)
	}
	cmd := exec.CommandContext(ctx, "go", "tool", "test2json", "-t", "-p", p.ImportPath)
	cmd.Stdin = bytes.NewReader(output)
	out, err := runGo(cmd)
	if err != nil {
		return nil, err
	}
	var events []results.Event
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var e results.Event
		err := d.Decode(&e)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("test2json: %w", err)
		}
		if e.Test == "" && (e.Action == "pass" || e.Action == "fail" || e.Action == "skip") {
			continue // ours comes below
		}
		e.Time = "" // of this conversion; -t is for what each test took
		events = append(events, e)
	}
	verdict := results.Event{Action: "pass", Package: p.ImportPath, Elapsed: float64(status.WallUsec) / 1e6}
	if reason != "" {
		verdict.Action = "fail"
	}
	return append(events, verdict), nil
}

// failure says why a step did not end well; "" if it did.
func failure(s wire.ExitStatus) string {
	switch {
	case s.NotRun != "":
		return "not run: " + s.NotRun
	case s.Limit:
		return "ended at its time limit"
	case s.Signal != "":
		return "ended by " + s.Signal
	case s.Code != 0:
		return fmt.Sprintf("exit status %d", s.Code)
	}
	return ""
}
