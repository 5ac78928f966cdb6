package live

import (
	"path"
	"slices"
	"strings"

	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/explain/threadpool"
	"github.com/unthrottle/unthrottle/internal/see/recording"
)

// analysis turns a recording, live or from a file, into an explanation.
type analysis struct {
	header    recording.Header
	diagnosis *diagnose.Analysis
	names     *names
	processes map[uint32]threadpool.Process
	jvm       map[uint32]string // threads' full names from a JVM
}

func newAnalysis() *analysis { return &analysis{} }

// begin takes the header. jvm and looked have facts beyond it; nil: none.
func (a *analysis) begin(h *recording.Header, jvm map[uint32]string, looked map[uint32]threadpool.Process) {
	a.header = *h
	a.header.Threads = slices.Clone(h.Threads)
	a.jvm, a.names, a.processes = jvm, newNames(), processesOf(h, looked)
	for i := range a.header.Threads {
		t := &a.header.Threads[i]
		t.Comm = a.called(t.TID, t.Comm)
	}
	a.diagnosis = diagnose.New(a.header, diagnose.Options{PoolOf: a.names.pool})
}

// called returns a thread's full name if a JVM gave it, else its comm.
func (a *analysis) called(tid uint32, comm string) string {
	if name, ok := a.jvm[tid]; ok {
		return name
	}
	return comm
}

func (a *analysis) add(e *recording.Event) {
	if e.Kind == recording.Name || e.Kind == recording.Enter {
		named := *e
		named.Text = a.called(e.Thread, e.Text)
		e = &named
	}
	a.diagnosis.Add(e)
}

func (a *analysis) end(f recording.Footer) diagnose.Explanation {
	e := a.diagnosis.Finish(f)
	advise(&e, threadpool.Known(), a.names, a.processes, &a.header)
	return e
}

// isJVM reports whether a process runs a JVM: it has its library mapped, or is called java.
func isJVM(p threadpool.Process) bool {
	if slices.ContainsFunc(p.Libraries, func(l string) bool { return path.Base(l) == "libjvm.so" }) {
		return true
	}
	return p.Libraries == nil && strings.HasPrefix(path.Base(p.Exe), "java")
}
