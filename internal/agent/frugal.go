package agent

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/agent/spent"
	"github.com/unthrottle/unthrottle/internal/clock"
)

// gcPercent is how much the heap may grow, in percent of what is in use, until it is collected (GOGC). The default of
// 100 holds twice what is in use; collecting more often costs little, because the agent makes little garbage.
const gcPercent = 40

const (
	// cpusAtOnce is how many threads run the agent's own code at once (GOMAXPROCS). With one, Go wakes no second thread
	// for each event, which is half of the cost of an agent that mostly sleeps. A recording has more to do.
	cpusAtOnce, cpusRecording = 1, 4
	// trimFirst is how long after the start its memory is given back, and trimEvery how often again.
	trimFirst = 10 * time.Second
	trimEvery = time.Minute
)

// timerSlack is by how much the kernel may delay the agent's timers (PR_SET_TIMERSLACK(2const)); the kernel's own default
// is 50 us. While other threads work, Go's monitor thread sleeps for 20 us again and again, which was a third of what the
// agent took. With a millisecond it mostly sleeps until that work is done.
const timerSlack = time.Millisecond

// frugal sets Go's runtime up for a program that mostly sleeps, and returns what restores it.
func frugal() (restore func()) {
	percent, cpus, slack := debug.SetGCPercent(gcPercent), runtime.GOMAXPROCS(cpusAtOnce), setTimerSlack(timerSlack)
	return func() {
		debug.SetGCPercent(percent)
		runtime.GOMAXPROCS(cpus)
		if slack > 0 {
			setTimerSlack(slack)
		}
	}
}

// setTimerSlack sets the timer slack of all threads of the process, and returns that of the first before; 0 where it cannot
// be read. Later threads have that of the thread that makes them. It needs CAP_SYS_NICE (proc_pid_timerslack_ns(5)): where
// the kernel refuses, the agent works as before and costs more.
func setTimerSlack(slack time.Duration) (was time.Duration) {
	const file = "timerslack_ns"
	threads, _ := os.ReadDir("/proc/self/task")
	for _, thread := range threads {
		name := filepath.Join("/proc", thread.Name(), file) // below /proc/self/task there is none
		if text, err := os.ReadFile(name); err == nil && was == 0 {
			ns, _ := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
			was = time.Duration(ns)
		}
		// A thread may have ended since.
		_ = os.WriteFile(name, strconv.AppendInt(nil, slack.Nanoseconds(), 10), 0)
	}
	return was
}

// busily runs work that is to keep up with the kernel's events on more CPUs.
func busily(work func()) {
	was := runtime.GOMAXPROCS(min(cpusRecording, runtime.NumCPU()))
	defer runtime.GOMAXPROCS(was)
	work()
}

// trimNowAndThen gives memory back until ctx ends.
func (a *agent) trimNowAndThen(ctx context.Context) error {
	for wait := trimFirst; clock.Sleep(ctx, wait) == nil; wait = trimEvery {
		var err error
		if a.spent.Do(spent.Memory, func() { err = trim() }); err != nil {
			a.Log.Debug("the program's own pages stay resident", "error", err)
		}
	}
	return nil
}

// trim gives memory back that only the start, or a recording, needed: free heap, and pages of the program's own file.
// Such pages of code and constants are clean. Those that are used again come back from the page cache. A debugger's
// breakpoints in them are lost. It returns an error only where the process cannot read its own mappings.
func trim() error {
	debug.FreeOSMemory()
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return err
	}
	f, err := os.Open("/proc/self/maps")
	if err != nil {
		return err
	}
	defer f.Close()
	for _, m := range unwritable(f, self) {
		// The kernel may refuse, for example a locked mapping: then its pages stay.
		_, _, _ = unix.Syscall(unix.SYS_MADVISE, m.from, m.to-m.from, unix.MADV_DONTNEED)
	}
	return nil
}

// mapping is a range of addresses of this process.
type mapping struct{ from, to uintptr }

// unwritable returns the mappings of a file that nothing can write, from the text of proc_pid_maps(5). A writable
// mapping would lose what was written.
func unwritable(maps io.Reader, file string) []mapping {
	var mappings []mapping
	lines := bufio.NewScanner(maps)
	for lines.Scan() {
		var from, to uintptr
		var mode string
		text := lines.Text()
		if n, _ := fmt.Sscanf(text, "%x-%x %s", &from, &to, &mode); n != 3 || !strings.HasSuffix(text, " "+file) {
			continue
		}
		if strings.Contains(mode, "w") || !strings.HasSuffix(mode, "p") || to <= from {
			continue
		}
		mappings = append(mappings, mapping{from, to})
	}
	return mappings
}
