package runtimes

import (
	"path"
	"regexp"
	"strings"

	"github.com/unthrottle/unthrottle/internal/explain/threadpool"
)

// Process is a running process: its facts, its environment, and the CPUs that it may run on.
type Process struct {
	threadpool.Process
	Env  []string
	Host int
}

// Decision is what one runtime of a process decided.
type Decision struct {
	PID     int    `json:"pid"`
	Runtime string `json:"runtime"`
	// Version is null where the process does not show it.
	Version *string `json:"version"`
	// Decided and Fits are figures by name. Decided is what the process was told, else what the runtime's rule makes of
	// the limit of now.
	Decided map[string]int `json:"decided"`
	Fits    map[string]int `json:"fits"`
	// Told are the figures that the environment or the command line gave.
	Told map[string]string `json:"told"`
	// Settings are what sets each figure.
	Settings map[string]string `json:"settings"`
	// Assumed are the figures that the runtime decided once, at its start, and that no one told it: they are right only if the
	// limit has not changed since.
	Assumed []string `json:"assumed"`
	// Said are the figures that the process itself says: a JVM, in its performance data.
	Said []string `json:"said"`
	// Budget is what the project's library in the process says that it has in force; null: it says nothing.
	Budget *threadpool.Budget `json:"cpu_budget"`
	// Live says that the runtime follows a limit that changes while it runs.
	Live bool `json:"live"`
}

// Decide says what the runtimes of a process decided under a limit (0: none). nil: it has none that the table knows.
func Decide(t *threadpool.Table, p Process, limitCPUs float64) []Decision {
	var all []Decision
	for _, key := range t.RuntimesOf(&p.Process) {
		v := ""
		known := version(key, p.Process)
		if known != nil {
			v = *known
		}
		d := Decision{PID: p.TGID, Budget: p.Budget, Version: known, Decided: map[string]int{}, Fits: map[string]int{},
			Told: map[string]string{}, Settings: map[string]string{}, Assumed: []string{}, Said: []string{}}
		processors := 0 // that it was told
		for _, of := range t.Settings() {
			if of.Of != key || !of.IsOf(&p.Process, v) {
				continue
			}
			d.Runtime = of.Runtime
			d.Fits[of.Decides] = of.Fits(limitCPUs, p.Host)
			d.Decided[of.Decides] = of.Decided(limitCPUs, p.Host)
			g, has := given(of, p)
			n, readable := of.Read(g.Value, limitCPUs, p.Host)
			has = has && readable && !g.Otherwise
			if of.Follows() {
				d.follow(of, p.JVM, n, g.By.Name(), has, processors)
				continue
			}
			if of.CanBeTold() {
				d.Settings[of.Decides] = of.Name()
			}
			d.Live = d.Live || of.Live
			if has {
				d.Decided[of.Decides], processors = n, n
				d.Told[of.Decides] = g.By.Name()
				d.Live = false
			} else if g.Otherwise {
				delete(d.Decided, of.Decides)
				d.Told[of.Decides] = g.By.Name()
			} else if !of.Live {
				d.Assumed = append(d.Assumed, of.Decides)
			}
		}
		if b := p.Budget; b != nil && b.GOMAXPROCS > 0 && strings.HasPrefix(key, "go") {
			d.Decided["processors"], d.Told["processors"], d.Live = b.GOMAXPROCS, "libs/go", true
		}
		if len(d.Decided) > 0 {
			all = append(all, d)
		}
	}
	return all
}

// follow adds a figure that has no variable of its own: the JVM says it, or an option told it (n, by), or it follows from the
// processors that the runtime was told (0: none).
func (d *Decision) follow(of threadpool.Setting, jvm *threadpool.JVM, n int, by string, told bool, processors int) {
	if told {
		d.Told[of.Decides], d.Settings[of.Decides] = by, of.Name()
	}
	switch {
	case of.Decides == "compiler_threads" && jvm != nil && jvm.CompilerThreads > 0:
		d.Decided[of.Decides] = jvm.CompilerThreads
		d.Said = append(d.Said, of.Decides)
	case told:
		d.Decided[of.Decides] = n
	case processors > 0:
		d.Decided[of.Decides] = of.Told(processors)
	default:
		d.Assumed = append(d.Assumed, of.Decides)
	}
}

// given is what a running process was given of a setting. A JVM's own list of its options holds those of files too.
func given(of threadpool.Setting, p Process) (g threadpool.Given, has bool) {
	g, has = of.Given(p.Env, p.Cmdline)
	if of.Of != "jvm" || p.JVM == nil || of.Option == "" {
		return g, has
	}
	value, has := threadpool.Spelling{Option: of.Option}.In(nil, p.JVM.Options)
	if value != g.Value {
		g.By = threadpool.Spelling{Option: of.Option}
	}
	g.Value = value
	return g, has
}

// versioned finds a version in a file's name: python3.11, libruby.so.3.3.
var versioned = regexp.MustCompile(`^(?:python|pypy|libpython|ruby|libruby)[^0-9]*([0-9]+\.[0-9]+)`)

func version(key string, p threadpool.Process) *string {
	if strings.HasPrefix(key, "go") && p.Go != "" {
		return &p.Go
	}
	if key == "jvm" && p.JVM != nil && p.JVM.Version != "" {
		return &p.JVM.Version
	}
	if key == "python" || key == "ruby" {
		for _, file := range append([]string{p.Exe}, p.Libraries...) {
			if found := versioned.FindStringSubmatch(path.Base(file)); found != nil {
				return &found[1]
			}
		}
	}
	return nil
}
