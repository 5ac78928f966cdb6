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
	// Budget is what the project's library in the process says that it has in force; null: it says nothing.
	Budget *threadpool.Budget `json:"cpu_budget"`
	// Live says that the runtime follows a limit that changes while it runs.
	Live bool `json:"live"`
}

// Decide says what the runtimes of a process decided under a limit (0: none). nil: it has none that the table knows.
func Decide(t *threadpool.Table, p Process, limitCPUs float64) []Decision {
	var all []Decision
	for _, key := range t.RuntimesOf(&p.Process) {
		d := Decision{PID: p.TGID, Budget: p.Budget, Version: version(key, p.Process), Decided: map[string]int{}, Fits: map[string]int{},
			Told: map[string]string{}, Settings: map[string]string{}, Assumed: []string{}}
		processors, told := 0, false
		for _, of := range t.Settings() {
			if of.Of != key {
				continue
			}
			d.Runtime = of.Runtime
			d.Fits[of.Decides] = of.Fits(limitCPUs, p.Host)
			d.Decided[of.Decides] = of.Decided(limitCPUs, p.Host)
			if of.Follows() {
				if told {
					d.Decided[of.Decides] = of.Told(processors)
				} else {
					d.Assumed = append(d.Assumed, of.Decides)
				}
				continue
			}
			d.Settings[of.Decides] = of.Name()
			d.Live = d.Live || of.Live
			value, has := existing(of, p.Env, p.Cmdline)
			if n, ok := of.Read(value); has && ok {
				d.Decided[of.Decides], processors, told = n, n, true
				d.Told[of.Decides] = of.Name()
				d.Live = false
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

// versioned finds a version in a file's name: python3.11, libruby.so.3.3.
var versioned = regexp.MustCompile(`^(?:python|pypy|libpython|libruby)[^0-9]*([0-9]+\.[0-9]+)`)

func version(key string, p threadpool.Process) *string {
	if strings.HasPrefix(key, "go") && p.Go != "" {
		return &p.Go
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
