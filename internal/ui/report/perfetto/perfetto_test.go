package perfetto

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/explain/live"
	"github.com/unthrottle/unthrottle/internal/see/recording"
	rt "github.com/unthrottle/unthrottle/internal/see/recording/recordingtest"
)

const ms = time.Millisecond

// event is one of the format.
type event struct {
	Ph, Name string
	PID, TID int
	TS, Dur  float64
	Args     map[string]any
}

// traced is the trace of a recording, read back, and its explanation.
func traced(t *testing.T, r recording.Recording) (events []event, about map[string]string, e diagnose.Explanation) {
	t.Helper()
	var file, out bytes.Buffer
	if err := r.Write(&file); err != nil {
		t.Fatal(err)
	}
	e, err := live.Recording(bytes.NewReader(file.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	var of *Trace
	end, err := live.Schedule(&file, func(h recording.Header) diagnose.Options {
		of = Begin(&out, h)
		return of.Watch()
	})
	if err := errors.Join(err, of.End()); err != nil || end != time.Duration(r.Footer.EndNS) {
		t.Fatal(err, end)
	}
	var trace struct {
		TraceEvents []event
		OtherData   map[string]string
	}
	if err := json.Unmarshal(out.Bytes(), &trace); err != nil {
		t.Fatalf("%v\n%s", err, out.Bytes())
	}
	return trace.TraceEvents, trace.OtherData, e
}

// Slices of running, of stops and of holds add up to what the explanation says.
func TestTrace(t *testing.T) {
	s := rt.New(2)
	s.Limit(50*ms, 100*ms)
	threads := s.Threads("worker\x1b[2J", 2)
	s.Repeat(4, 100*ms, func(at time.Duration) { s.Work(at, 40*ms, threads...) })
	events, about, e := traced(t, s.Run(400*ms))
	var ran, stopped float64
	names := map[string]bool{}
	for _, ev := range events {
		switch {
		case ev.Ph == "X" && ev.Name == "running":
			ran += ev.Dur
		case ev.Ph == "X" && ev.Name == "stopped":
			stopped += ev.Dur
		case ev.Ph == "M":
			name, _ := ev.Args["name"].(string) // a sort index has none
			names[name] = true
		}
	}
	cpu := time.Duration(0)
	for _, p := range e.Pools {
		cpu += p.CPU
	}
	if got := time.Duration(ran * 1000); got.Round(ms) != cpu.Round(ms) || cpu == 0 {
		t.Errorf("running for %v, want %v", got, cpu)
	}
	if got := time.Duration(stopped * 1000); got.Round(ms) != e.Stopped.Round(ms) || *e.Stopped == 0 {
		t.Errorf("stopped for %v, want %v", got, *e.Stopped)
	}
	if !names[`worker\x1b[2J-1`] || !names["own quota"] {
		t.Errorf("names %v", names)
	}
	if about["container"] == "" || about["recorded"] == "" {
		t.Errorf("about: %v", about)
	}
}

// full is a disk without room.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no room") }

func TestNoRoom(t *testing.T) {
	trace := Begin(full{}, recording.Header{})
	for range 10_000 {
		trace.Watch().Counts(0, 1, 2)
	}
	if err := trace.End(); err == nil || !strings.Contains(err.Error(), "no room") {
		t.Errorf("error: %v", err)
	}
}
