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
	// Files reads those that name options of a JVM; nil: what is in them is not known.
	Files threadpool.Files
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
	var decisions []Decision
	env, args := p.Files.Expand(p.Env, p.Cmdline)
	for _, key := range t.RuntimesOf(&p.Process) {
		v := ""
		known := version(key, p.Process)
		if known != nil {
			v = *known
		}
		d := Decision{PID: p.TGID, Budget: p.Budget, Version: known, Decided: map[string]int{}, Fits: map[string]int{},
			Told: map[string]string{}, Settings: map[string]string{}, Assumed: []string{}, Said: []string{}}
		processors, unknown := 0, false // that it was told
		for _, setting := range t.Settings() {
			if setting.Of != key || !setting.IsOf(&p.Process, v) {
				continue
			}
			if setting.Pool != "" {
				d.library(setting, p, env, args, limitCPUs)
				continue
			}
			d.Runtime = setting.Runtime
			d.Fits[setting.Decides] = setting.Fits(limitCPUs, p.Host)
			d.Decided[setting.Decides] = setting.Decided(limitCPUs, p.Host)
			g, has := given(setting, p, env, args)
			n, readable := setting.Read(g.Value, limitCPUs, p.Host)
			has = has && readable && !g.Otherwise
			unknown = unknown || g.Unread != "" && setting.Decides == "processors"
			if setting.Follows() && !has && (g.Unread != "" || unknown) {
				delete(d.Decided, setting.Decides)
				continue
			}
			if setting.Follows() {
				d.follow(setting, p.JVM, n, g.By.Name(), has, processors)
				continue
			}
			if setting.CanBeTold() {
				d.Settings[setting.Decides] = setting.Name()
			}
			d.Live = d.Live || setting.Live && p.FollowsLimit()
			if has {
				d.Decided[setting.Decides], processors = n, n
				d.Told[setting.Decides] = g.By.Name()
				d.Live = false
			} else if g.Otherwise {
				delete(d.Decided, setting.Decides)
				d.Told[setting.Decides] = g.From()
				d.Live = d.Live && g.Unread == ""
			} else if !setting.Live || !p.FollowsLimit() {
				d.Assumed = append(d.Assumed, setting.Decides)
			}
		}
		if b := p.Budget; b != nil && b.GOMAXPROCS > 0 && strings.HasPrefix(key, "go") {
			d.Decided["processors"], d.Told["processors"], d.Live = b.GOMAXPROCS, "libs/go", true
		}
		if len(d.Decided) > 0 {
			decisions = append(decisions, d)
		}
	}
	return decisions
}

// library adds the figure of a library if the process was told it: whether it has the library cannot be seen. What fits a
// pool of threads that wait is not known.
func (d *Decision) library(setting threadpool.Setting, p Process, env, args []string, limitCPUs float64) {
	g, has := given(setting, p, env, args)
	if n, ok := setting.Read(g.Value, limitCPUs, p.Host); has && ok && !g.Otherwise && setting.Each == "" {
		d.Decided[setting.Decides], d.Fits[setting.Decides] = n, setting.Fits(limitCPUs, p.Host)
		d.Told[setting.Decides], d.Settings[setting.Decides] = g.By.Name(), setting.Name()
	}
}

// follow adds a figure that has no variable of its own: the JVM says it, or an option told it (n, by), or it follows from the
// processors that the runtime was told (0: none).
func (d *Decision) follow(setting threadpool.Setting, jvm *threadpool.JVM, n int, by string, told bool, processors int) {
	if told {
		d.Told[setting.Decides], d.Settings[setting.Decides] = by, setting.Name()
	}
	switch {
	case setting.Decides == "compiler_threads" && jvm != nil && jvm.CompilerThreads > 0:
		d.Decided[setting.Decides] = jvm.CompilerThreads
		d.Said = append(d.Said, setting.Decides)
	case told:
		d.Decided[setting.Decides] = n
	case processors > 0:
		d.Decided[setting.Decides] = setting.Told(processors)
	default:
		d.Assumed = append(d.Assumed, setting.Decides)
	}
}

// given is what a running process was given of a setting. A JVM's own list of its options holds those of files too.
func given(setting threadpool.Setting, p Process, env, args []string) (g threadpool.Given, has bool) {
	g, has = setting.Given(env, args)
	ofProgram := g.By.Variable == "" && g.By.Option != setting.Option // an argument of its own, which the JVM does not tell
	if setting.Of != "jvm" || p.JVM == nil || setting.Option == "" || has && ofProgram {
		return g, has
	}
	if g.Unread != "" {
		g = threadpool.Given{}
	}
	value, has := threadpool.Spelling{Option: setting.Option}.In(nil, p.JVM.Options)
	if value != g.Value {
		g.By = threadpool.Spelling{Option: setting.Option}
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
