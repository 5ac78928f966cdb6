package identify

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/unthrottle/unthrottle/internal/explain/threadpool"
	"github.com/unthrottle/unthrottle/internal/kernel/procfs"
)

// Said is what a process says of itself by the project's library: in the file that its environment or the option of its agent
// names.
type Said struct {
	threadpool.Budget
	// Names and Classes are by thread id in our PID namespace. Names are raw. The class is that of the thread's last task.
	Names, Classes map[uint32]string
}

const (
	// budgetVariable and agentOption name the file: docs/howto/in-your-go-code.md, docs/howto/in-your-jvm-code.md.
	budgetVariable, agentOption = "UNTHROTTLE_BUDGET_FILE=", "threads="
	budgetFirstLine             = "unthrottle-budget 1"
	maxBudget                   = 4 << 20 // bytes of the file
	maxBudgetCPUs               = 1e6
)

// Budget reads what a process says of itself; nil: it names no file, or it may not be looked at. It takes at most a second.
func Budget(pid int) (*Said, error) {
	return answered(pid, "its budget file", readBudget)
}

func readBudget(pid int) (*Said, error) {
	d, err := openProcess(pid)
	if err != nil {
		return nil, err
	}
	defer d.close()
	env, err := d.read("environ", maxEnvironment)
	if err != nil {
		return nil, nil // Look says what may not be read
	}
	cmdline, err := d.read("cmdline", maxCmdline)
	if err != nil {
		return nil, nil
	}
	name := budgetFile(arguments(cmdline), arguments(env))
	if name == "" {
		return nil, nil
	}
	s, err := d.status()
	if err != nil {
		return nil, err
	}
	text, err := d.ownFile(name, s.uid, maxBudget)
	if err != nil {
		return nil, err
	}
	b, err := parseBudget(text)
	if err != nil {
		return nil, err
	}
	stat, err := d.read("stat", maxSmall)
	if err != nil {
		return nil, err
	}
	if started, err := procfs.StartTime(string(stat)); err != nil || b.pid != s.inner || b.started != started {
		return nil, errors.New("it is that of another process, which used the same name")
	}
	said := &Said{Budget: b.Budget}
	if len(b.threads) > 0 {
		threads, err := ownThreads(d, b.threads, s.nested)
		if err != nil {
			return nil, err
		}
		said.Names, said.Classes = map[uint32]string{}, map[uint32]string{}
		for tid, t := range threads {
			if t.name != "" {
				said.Names[tid] = t.name
			}
			if t.class != "" {
				said.Classes[tid] = t.class
			}
		}
	}
	return said, nil
}

// budgetFile returns the path that a process's command line and environment name; "": none, or no whole path.
func budgetFile(args, env []string) string {
	words := slices.Clone(args)
	for _, e := range env {
		if name, ok := strings.CutPrefix(e, budgetVariable); ok && path.IsAbs(name) {
			return name
		}
		for _, variable := range []string{"JAVA_TOOL_OPTIONS=", "JDK_JAVA_OPTIONS="} {
			if value, ok := strings.CutPrefix(e, variable); ok {
				words = append(words, strings.Fields(value)...)
			}
		}
	}
	for _, word := range words {
		agent, ok := strings.CutPrefix(word, "-javaagent:")
		_, options, _ := strings.Cut(agent, "=")
		if !ok {
			continue
		}
		for option := range strings.SplitSeq(options, ",") {
			if name, ok := strings.CutPrefix(option, agentOption); ok && path.IsAbs(name) {
				return name
			}
		}
	}
	return ""
}

// budgetText is the content of such a file.
type budgetText struct {
	threadpool.Budget
	pid     uint32 // in its own PID namespace
	started uint64
	threads map[uint32]saidThread // by number in its own PID namespace
}

type saidThread struct{ name, class string }

// parseBudget reads the lines of docs/howto/in-your-go-code.md. It leaves out lines that it does not know, and what is no
// sound value of one that it knows.
func parseBudget(text []byte) (budgetText, error) {
	b := budgetText{Budget: threadpool.Budget{Permits: map[string]int{}}, threads: map[uint32]saidThread{}}
	first, text, _ := bytes.Cut(text, []byte{'\n'})
	if string(first) != budgetFirstLine {
		return b, fmt.Errorf("its first line is %.40q, not %q", first, budgetFirstLine)
	}
	for len(text) > 0 {
		line, rest, whole := bytes.Cut(text, []byte{'\n'})
		text = rest
		if whole { // a last line that was cut off says nothing
			b.add(string(line))
		}
	}
	if b.pid == 0 {
		return b, errors.New("it does not say of which process it is")
	}
	return b, nil
}

func (b *budgetText) add(line string) {
	word, rest, _ := strings.Cut(line, " ")
	switch word {
	case "process":
		number, started, _ := strings.Cut(rest, " ")
		b.pid, b.started = 0, 0
		pid, err := strconv.ParseUint(number, 10, 32)
		ticks, err2 := strconv.ParseUint(started, 10, 64)
		if err == nil && err2 == nil {
			b.pid, b.started = uint32(pid), ticks
		}
	case "limit_cpus":
		if cpus, err := strconv.ParseFloat(rest, 64); err == nil && cpus > 0 && cpus <= maxBudgetCPUs && !math.IsNaN(cpus) {
			b.LimitCPUs = &cpus
		}
	case "paced":
		b.Paced = rest == "true"
	case "gomaxprocs":
		if n, err := strconv.Atoi(rest); err == nil && n > 0 && n <= maxBudgetCPUs {
			b.GOMAXPROCS = n
		}
	case "permits":
		class, count, _ := strings.Cut(rest, " ")
		if n, err := strconv.Atoi(count); err == nil && n >= 0 && n <= maxBudgetCPUs && slices.Contains(threadpool.Classes, class) {
			b.Permits[class] = n
		}
	case "class":
		class, tid, _ := strings.Cut(rest, " ")
		if slices.Contains(threadpool.Classes, class) {
			b.thread(tid, func(t *saidThread) { t.class = class })
		}
	default:
		b.thread(word, func(t *saidThread) { t.name = strings.Clone(rest[:min(len(rest), maxThreadName)]) })
	}
}

func (b *budgetText) thread(tid string, set func(*saidThread)) {
	var n uint32
	if !number(tid, 10, &n) || n == 0 {
		return
	}
	t, known := b.threads[n]
	if !known && len(b.threads) >= maxDumpThreads {
		return
	}
	set(&t)
	b.threads[n] = t
}
