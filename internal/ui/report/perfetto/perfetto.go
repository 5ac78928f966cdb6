package perfetto

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/see/recording"
	"github.com/unthrottle/unthrottle/internal/text"
)

// Trace is one trace under way. Its errors are kept until End.
type Trace struct {
	out   *bufio.Writer
	err   error
	any   bool
	names map[uint32]string // threads named so far
	// stops are the tracks of quotas in the container's own process, by cgroup.
	stops map[string]int
}

// The container's own process has a number that no process has (pid_max is at most 2^22), and tracks from 1 on.
const containerPID = 1 << 23

// Begin writes the header of a recording's trace.
func Begin(w io.Writer, h recording.Header) *Trace {
	t := &Trace{out: bufio.NewWriterSize(w, 1<<16), names: map[uint32]string{}, stops: map[string]int{}}
	about := map[string]string{"container": text.Sanitize(h.Target.Name, 0),
		"recorded": h.Created.UTC().Format(time.RFC3339Nano), "kernel": text.Sanitize(h.Host.Kernel, 0)}
	t.put(`{"displayTimeUnit":"ms","otherData":%s,"traceEvents":[`, quoted(about))
	t.metadata("process_name", containerPID, 0, "container "+text.Sanitize(h.Target.Name, 0))
	t.event(`{"ph":"M","pid":%d,"name":"process_sort_index","args":{"sort_index":-1}}`, containerPID)
	for _, p := range h.Processes {
		if p.Comm != "" {
			t.metadata("process_name", int(p.TGID), 0, text.Sanitize(p.Comm, 0))
		}
	}
	return t
}

// Watch is what an analysis tells the trace.
func (t *Trace) Watch() diagnose.Options {
	return diagnose.Options{Spells: t.spell, Stops: t.stop, Counts: t.count}
}

// End writes the end. The error is the first one of any write.
func (t *Trace) End() error {
	t.put("]}\n")
	if t.err == nil {
		t.err = t.out.Flush()
	}
	return t.err
}

func (t *Trace) spell(s diagnose.Spell) {
	tgid := int(s.TGID)
	if s.TGID == 0 {
		tgid = int(s.TID)
	}
	if name := text.Sanitize(s.Comm, 0); name != "" && t.names[s.TID] != name {
		t.names[s.TID] = name
		t.metadata("thread_name", tgid, int(s.TID), name)
	}
	name, args := "running", fmt.Sprintf(`{"cpu":%d}`, s.CPU)
	switch {
	case s.HeldBy != "":
		name, args = "held back by a quota", fmt.Sprintf(`{"cgroup":%s}`, quoted(text.Sanitize(s.HeldBy, 0)))
	case s.State == recording.Runnable:
		name = "waiting for a CPU"
	}
	t.slice(name, tgid, int(s.TID), s.From, s.To, args)
}

func (t *Trace) stop(s diagnose.Stop) {
	of := text.Sanitize(s.Cgroup, 0)
	track, ok := t.stops[of]
	if !ok {
		track = 1 + len(t.stops)
		t.stops[of] = track
		name := "quota of " + of
		if s.Own {
			name = "own quota"
		}
		t.metadata("thread_name", containerPID, track, name)
	}
	t.slice("stopped", containerPID, track, s.From, s.To, fmt.Sprintf(`{"cgroup":%s}`, quoted(of)))
}

func (t *Trace) count(at time.Duration, width, wanted int) {
	t.event(`{"ph":"C","pid":%d,"ts":%s,"name":"threads","args":{"run":%d,"wait":%d}}`, containerPID, microseconds(at),
		width, max(0, wanted-width))
}

func (t *Trace) slice(name string, pid, tid int, from, to time.Duration, args string) {
	t.event(`{"ph":"X","pid":%d,"tid":%d,"ts":%s,"dur":%s,"name":%s,"args":%s}`, pid, tid, microseconds(from),
		microseconds(to-from), quoted(name), args)
}

func (t *Trace) metadata(kind string, pid, tid int, name string) {
	t.event(`{"ph":"M","pid":%d,"tid":%d,"name":%s,"args":{"name":%s}}`, pid, tid, quoted(kind), quoted(name))
}

func (t *Trace) event(format string, values ...any) {
	if t.any {
		t.put(",\n")
	}
	t.any = true
	t.put(format, values...)
}

func (t *Trace) put(format string, values ...any) {
	if t.err == nil {
		_, t.err = fmt.Fprintf(t.out, format, values...)
	}
}

// microseconds is the unit of the format, to the nanosecond.
func microseconds(d time.Duration) string {
	return fmt.Sprintf("%d.%03d", d/time.Microsecond, d%time.Microsecond)
}

// quoted is a value as JSON; strings and maps of them have one.
func quoted(v any) []byte {
	b, _ := json.Marshal(v) // never fails on these
	return b
}
