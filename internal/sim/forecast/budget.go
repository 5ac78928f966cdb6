package forecast

import (
	"fmt"
	"math"
	"path"
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/internal/explain/threadpool"
	"github.com/unthrottle/unthrottle/internal/see/recording"
	"github.com/unthrottle/unthrottle/internal/sim/simulate"
	"github.com/unthrottle/unthrottle/internal/text"
)

// appWork is the CPU time from which on a work is taken for one of class App: shorter ones are answers from memory, health
// checks and turns of event loops. It is the bound of explain for application work on threads made for I/O.
const appWork = time.Millisecond

// The languages that have the project's library.
const (
	LanguageGo  = "go"
	LanguageJVM = "jvm"
)

// languagesOf are those of processes, each once.
func languagesOf(processes []recording.Process) (languages []string) {
	for _, p := range processes {
		if p.Go != "" {
			languages = append(languages, LanguageGo)
		}
		if slices.ContainsFunc(p.Libraries, func(l string) bool { return path.Base(l) == "libjvm.so" }) {
			languages = append(languages, LanguageJVM)
		}
	}
	slices.Sort(languages)
	return slices.Compact(languages)
}

// budgetEffect is that of the project's library in the program: work of class App takes one of as many permits as the limit
// carries, and holds back while the rest of the period's quota does not cover it. The work and its threads are as recorded.
var budgetEffect = &Effect{
	Name: Budget, InCode: true,
	Text: func(_ float64, r Remedy) string {
		return "CPU budget in code, " + text.Count(r.CPUs, "permit")
	},
	Parameters: func(r Remedy) map[string]any {
		return map[string]any{"permits_app": r.CPUs, "paced": true, "app_work_seconds": appWork.Seconds()}
	},
	Price: func(r Remedy, _ Pricing) string {
		return fmt.Sprintf("a change of the program: work of %s and more in class App", text.Duration(appWork))
	},
}

// budgeted returns the remedy of the library; none: see noBudget.
func (l *Load) budgeted() []Remedy {
	if l.noBudget() != "" {
		return nil
	}
	return []Remedy{{Name: Budget, CPUs: int(math.Ceil(l.limit))}}
}

// noBudget says why the library is no remedy; "": it is.
func (l *Load) noBudget() string {
	switch {
	case len(l.languages) == 0:
		return "no process is of a language that has the library"
	case l.hasBudget:
		return "a process has the library in force"
	case l.limit >= float64(l.recordedScenario.Host.CPUs):
		return "the limit is no limit of this host"
	case !l.hasAppWork():
		return "no work is long enough to be held back"
	}
	return ""
}

// hasAppWork reports whether some work would be held back.
func (l *Load) hasAppWork() bool {
	for _, w := range l.inPrograms() {
		first, n := l.threadsOf(w)
		for _, t := range l.replay.Threads[first : first+n] {
			work := time.Duration(0)
			for _, s := range t.Steps {
				switch {
				case s.Kind == simulate.StepRun:
					work = min(simulate.Endless, work+s.For)
				case s.Kind < simulate.StepAwait:
				case work >= appWork && work < simulate.Endless:
					return true
				default:
					work = 0
				}
			}
		}
	}
	return false
}

// inPrograms are the workloads of pools whose work the program gives to its threads. Collectors and compilers do what the
// runtime says.
func (l *Load) inPrograms() (all []int) {
	for _, p := range l.Pools {
		if !p.ofRuntime {
			all = append(all, p.workloads...)
		}
	}
	return all
}

// markRuntime marks the pools of collectors and compilers.
func markRuntime(pools []*Pool) {
	known := threadpool.Known()
	for _, p := range pools {
		rows := known.Match(p.comm, nil)
		p.ofRuntime = len(rows) > 0 && rows[0].Class == threadpool.VM
	}
}

func (l *Load) gate(r Remedy) *simulate.Gate {
	return &simulate.Gate{Cgroup: l.binding, Workloads: l.inPrograms(), Permits: r.CPUs, Paced: true, Least: appWork}
}
