package main

import (
	"bytes"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// Bounds of the comparison.
const (
	longStop    = 5 * time.Millisecond // stops from here on must be told
	leastTold   = 0.95                 // of them
	mostWaiting = 0.01                 // of the time behind others, for which a span's rest is its stops
	clocks      = time.Millisecond     // what a span's clocks, read one after the other, may differ by
)

// compare adds the stops to the spans, and looks at what was told of each.
func (s *suite) compare(m measured) {
	cmd := exec.Command(s.exe, "spans", m.recording, "--add-to", m.spans, "--service", serviceName)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, said.Bytes())
	}
	if s.check("unthrottle spans adds the stops", err) != nil {
		return
	}
	fmt.Print("      ", strings.ReplaceAll(strings.TrimSpace(said.String()), "\n", "\n      "), "\n")
	spans, err := m.spansOf(out)
	if s.check("the collector reads what it wrote", err) != nil {
		return
	}
	all, long, told, falsely := 0, 0, 0, 0
	var untold time.Duration // of spans that are in no other, beyond what is told of them
	for _, of := range spans {
		if !of.known {
			continue
		}
		all++
		if of.stopped > of.rest+clocks {
			falsely++
		}
		if of.rest >= longStop {
			long++
			if of.rest-of.stopped < longStop {
				told++
			} else if of.whole {
				untold += of.rest - of.stopped
			}
		}
	}
	name := fmt.Sprintf("of %d spans none is told a stop that it had no time for", all)
	err = nil
	if falsely > 0 || all == 0 {
		err = fmt.Errorf("%d are", falsely)
	}
	s.check(name, err)
	if m.waited > mostWaiting {
		fmt.Printf("NOT DONE  how many stops are told: its threads waited for others' CPUs for %.1f %% of the time; "+
			"do it on an idle host\n", 100*m.waited)
		return
	}
	err = nil
	// A wait behind others, or for an idle CPU to wake, is no stop, and two spans have it: one request that waits long would fail
	// the comparison.
	waited := time.Duration((m.waited + m.idled) * float64(m.until.Sub(m.from)))
	if long == 0 || float64(told) < leastTold*float64(long) && untold > waited {
		err = fmt.Errorf("at least %.0f %% asked; %v of the others are not told, and all threads waited %v behind "+
			"others or for an idle CPU to wake", 100*leastTold, untold.Round(time.Millisecond), waited.Round(time.Millisecond))
	}
	s.check(fmt.Sprintf("of %d spans with at least %v of stops %d are told them", long, longStop, told), err)
}

// span is one that was read back.
type span struct {
	// rest is for how long its thread did not run, stopped what is told.
	rest, stopped time.Duration
	known         bool // it lies within the recording as a whole
	whole         bool // it is in no other one
}

func (m *measured) spansOf(lines []byte) (spans []span, err error) {
	for line := range bytes.Lines(lines) {
		traces, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces(line)
		if err != nil {
			return nil, err
		}
		for _, r := range traces.ResourceSpans().All() {
			for _, scope := range r.ScopeSpans().All() {
				for _, of := range scope.Spans().All() {
					spans = append(spans, m.read(of))
				}
			}
		}
	}
	return spans, nil
}

func (m *measured) read(of ptrace.Span) span {
	lasted := of.EndTimestamp().AsTime().Sub(of.StartTimestamp().AsTime())
	s := span{rest: lasted - number(of.Attributes(), cpuKey), stopped: number(of.Attributes(), "unthrottle.stopped_ms")}
	s.whole = of.ParentSpanID().IsEmpty()
	s.known = of.StartTimestamp().AsTime().After(m.from) && of.EndTimestamp().AsTime().Before(m.until)
	return s
}

// number is an attribute in milliseconds; 0: it is not there.
func number(of pcommon.Map, key string) time.Duration {
	v, ok := of.Get(key)
	if !ok {
		return 0
	}
	return time.Duration(v.Double() * float64(time.Millisecond))
}
