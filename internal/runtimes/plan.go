package runtimes

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/unthrottle/unthrottle/internal/explain/threadpool"
	"github.com/unthrottle/unthrottle/internal/text"
)

// Limits are what a program may use.
type Limits struct {
	// CPUs is the least limit along the path of its cgroup; 0: there is none.
	CPUs float64
	// Request is what its weight asks for; 0: not known. Unsure says why, where there is a weight.
	Request float64
	Unsure  string
	// Host is the number of CPUs that it may run on.
	Host int
	// Each is how many threads are wanted for each CPU in pools whose threads wait, by the flag that says it; none: that is
	// not known.
	Each map[string]float64
}

// Row is one setting of a program that is about to start.
type Row struct {
	Runtime string `json:"runtime"`
	// Setting is the variable, with the option in it, or the argument: of the user's value the one that it came by.
	Setting string `json:"variable_or_flag"`
	Value   string `json:"value"`
	// WouldBe is the figure that the runtime would decide by itself.
	WouldBe string `json:"would_be"`
	Why     string `json:"why"`
	// Set says that the value is ours; else the user's, or nothing is set.
	Set bool `json:"set"`
}

// Kept is why a row has the user's value.
const Kept = "it is set already: yours stays"

// Started is a program with its runtimes told.
type Started struct {
	Rows []Row
	// Env and Args are the environment and the command line.
	Env, Args []string
}

// Plan tells a program's runtimes of its limit. Without one it is times as many CPUs as the request. What the environment or
// the command line has already stays.
func Plan(t *threadpool.Table, l Limits, times float64, files threadpool.Files, env, args []string) Started {
	expandedEnv, expandedArgs := files.Expand(env, args)
	s := Started{Env: slices.Clone(env), Args: slices.Clone(args)}
	fits, note := l.CPUs, ""
	if fits <= 0 && l.Request > 0 {
		fits = times * l.Request
		note = fmt.Sprintf("; there is no limit: %g times the request of %s", times, text.CPUs(l.Request))
	}
	processors := map[string]int{} // that a runtime is told, or told itself
	for _, setting := range t.Settings() {
		each := l.Each[setting.Each]
		if !setting.CanBeTold() || setting.Argument != "" && !isProgram(setting, args) || setting.Each != "" && each <= 0 {
			continue
		}
		row := Row{Runtime: setting.Runtime, Setting: setting.Name(),
			WouldBe: fmt.Sprint(setting.Decided(l.CPUs, l.Host)), Why: setting.Why + note}
		given, has := setting.Given(expandedEnv, expandedArgs)
		switch {
		case given.Unread != "":
			row.Setting, row.Why = given.From(), "it may be set in that file: nothing is set"
		case has && !(given.Ignored && given.By.Name() == setting.Name()):
			row.Setting, row.Value, row.Why = given.By.Name(), given.Value, Kept
		case fits <= 0:
			row.Value, row.Why = row.WouldBe, "there is no limit, and no request in sight: nothing is set"
			if l.Unsure != "" {
				row.Why = "there is no limit, and " + l.Unsure
			}
		default:
			fit := 0
			if setting.Each != "" {
				fit = setting.FitsEach(min(fits, float64(l.Host)), each)
			} else {
				fit = setting.Fits(fits, l.Host)
			}
			row.Value = setting.Written(fit)
			if n := processors[setting.Of]; setting.Pool != "" && n > 0 && setting.Told(n) == fit {
				row.Why = fmt.Sprintf("it follows from the %s that the runtime is told", text.Count(n, "processor"))
				break
			}
			row.Set = true
			s.set(setting, row.Value)
		}
		if n, ok := setting.Read(row.Value, l.CPUs, l.Host); ok && setting.Decides == "processors" {
			processors[setting.Of] = n
		}
		s.Rows = append(s.Rows, row)
	}
	return s
}

func isProgram(setting threadpool.Setting, args []string) bool {
	return len(args) > 0 && slices.ContainsFunc(setting.Program, func(p string) bool {
		ok, err := path.Match(p, path.Base(args[0]))
		return ok && err == nil
	})
}

func (s *Started) set(setting threadpool.Setting, value string) {
	if setting.Argument != "" {
		s.Args = append(s.Args, setting.Argument, value)
		return
	}
	if setting.Option != "" {
		between := "="
		if strings.HasPrefix(setting.Option, "+") { // as Erlang writes it
			between = " "
		}
		value = setting.Option + between + value
		if before, _ := threadpool.Variable(s.Env, setting.Env); before != "" {
			value = before + " " + value
		}
	}
	s.Env = slices.DeleteFunc(s.Env, func(e string) bool { return strings.HasPrefix(e, setting.Env+"=") })
	s.Env = append(s.Env, setting.Env+"="+value)
}
