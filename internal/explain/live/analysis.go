package live

import (
	"path"
	"slices"
	"strings"

	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/explain/requests"
	"github.com/unthrottle/unthrottle/internal/explain/roles"
	"github.com/unthrottle/unthrottle/internal/explain/threadpool"
	"github.com/unthrottle/unthrottle/internal/see/recording"
	"github.com/unthrottle/unthrottle/internal/see/schedule"
)

// facts are what is known of a recording's threads beyond its events.
type facts struct {
	said      said                          // threads' full names and classes
	processes map[uint32]threadpool.Process // as read from /proc
	roles     *roles.Roles                  // nil: not known yet
}

// said is what processes say of their threads, by thread id.
type said struct{ names, classes map[uint32]string }

// analysis turns a recording, live or from a file, into an explanation. A first reading finds the roles of the threads,
// and a second one explains with them.
type analysis struct {
	header    recording.Header
	diagnosis *diagnose.Analysis
	requests  *requests.Scan
	scan      *roles.Scan // nil: the roles are known
	names     *names
	known     facts
}

// newAnalysis begins with a recording's header.
func newAnalysis(h *recording.Header, known facts) *analysis {
	a := &analysis{header: *h, known: known, names: newNames(known)}
	a.header.Threads = slices.Clone(h.Threads)
	for i := range a.header.Threads {
		t := &a.header.Threads[i]
		t.Comm = a.called(t.TID, t.Comm)
	}
	a.requests = requests.NewScan(&a.header, a.names.pool)
	beside := []schedule.Watcher{a.requests}
	if known.roles == nil {
		a.scan = roles.NewScan(&a.header, a.names.fold.Of)
		beside = append(beside, a.scan)
	}
	a.diagnosis = diagnose.New(a.header, diagnose.Options{PoolOf: a.names.pool}, beside...)
	return a
}

// called returns a thread's full name if its process gave it, else its comm.
func (a *analysis) called(tid uint32, comm string) string {
	if name, ok := a.known.said.names[tid]; ok {
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

// again returns what a second reading needs, with the roles that the first one found; ok: they change the pools.
func (a *analysis) again(f recording.Footer) (with facts, ok bool) {
	with = a.known
	with.roles = a.scan.Finish(f)
	return with, with.roles.Any()
}

func (a *analysis) end(f recording.Footer) diagnose.Explanation {
	e := a.diagnosis.Finish(f)
	e.Requests = a.requests.Finish()
	processes := processesOf(&a.header, f.Processes, a.known.processes)
	advise(&e, threadpool.Known(), a.names, processes, a.header.CPUsAllowed.Size())
	e.Budgets = budgets(processes)
	for i := range e.Pools {
		e.Pools[i].Class = a.names.class[e.Pools[i].Name]
	}
	return e
}

// isJVM reports whether a process runs a JVM: it has its library mapped, or is called java.
func isJVM(p threadpool.Process) bool {
	if slices.ContainsFunc(p.Libraries, func(l string) bool { return path.Base(l) == "libjvm.so" }) {
		return true
	}
	return p.Libraries == nil && strings.HasPrefix(path.Base(p.Exe), "java")
}
