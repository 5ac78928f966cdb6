package schedpolicy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Policy is how the kernel schedules a thread.
type Policy struct {
	// Class is one of the kernel's names in lower case: other, fifo, rr, batch, idle, deadline, ext.
	Class string
	// Priority is 1 to 99 of fifo and rr, else 0.
	Priority int
	// ResetOnFork reports that children do not inherit the policy.
	ResetOnFork bool
}

// The classes by their number (include/uapi/linux/sched.h); 4 was never used.
var classes = []string{"other", "fifo", "rr", "batch", "", "idle", "deadline", "ext"}

// Other is the policy of nearly every thread.
var Other = Policy{Class: "other"}

// Realtime is the policy that unthrottle sets. It runs before every ordinary thread and after every other real-time
// one; its threads take turns.
var Realtime = Policy{Class: "rr", Priority: 1}

const resetOnFork = "reset_on_fork"

// String returns the form that Parse reads: "other", "rr 1", "fifo 50 reset_on_fork".
func (p Policy) String() string {
	text := p.Class
	if p.HasPriority() {
		text += " " + strconv.Itoa(p.Priority)
	}
	if p.ResetOnFork {
		text += " " + resetOnFork
	}
	return text
}

// HasPriority reports whether the class is fifo or rr, whose threads have a priority.
func (p Policy) HasPriority() bool { return p.Class == "fifo" || p.Class == "rr" }

// BeforeOthers tells whether it runs before every ordinary thread.
func (p Policy) BeforeOthers() bool { return p.HasPriority() || p.Class == "deadline" }

// Same reports whether two policies differ at most in ResetOnFork.
func (p Policy) Same(q Policy) bool { return p.Class == q.Class && p.Priority == q.Priority }

// As returns q with the ResetOnFork of p.
func (p Policy) As(q Policy) Policy {
	q.ResetOnFork = p.ResetOnFork
	return q
}

// Parse is the inverse of String.
func Parse(text string) (Policy, error) {
	bad := fmt.Errorf("%.80q is not a scheduling policy", text)
	words := strings.Fields(text)
	var p Policy
	if n := len(words); n > 1 && words[n-1] == resetOnFork {
		p.ResetOnFork, words = true, words[:n-1]
	}
	if len(words) == 0 {
		return Policy{}, bad
	}
	if _, known := ClassNumber(words[0]); !known {
		return Policy{}, bad
	}
	p.Class = words[0]
	switch {
	case !p.HasPriority() && len(words) == 1:
		return p, nil
	case !p.HasPriority() || len(words) != 2:
		return Policy{}, bad
	}
	n, err := strconv.ParseUint(words[1], 10, 8)
	if err != nil || n < 1 || n > 99 {
		return Policy{}, bad
	}
	p.Priority = int(n)
	return p, nil
}

// Class is the name of a class by the kernel's number; false: there is none.
func Class(number int) (name string, ok bool) {
	if number < 0 || number >= len(classes) || classes[number] == "" {
		return "", false
	}
	return classes[number], true
}

// ClassNumber is the inverse of Class.
func ClassNumber(name string) (number int, ok bool) {
	number = slices.Index(classes, name)
	return number, number >= 0 && name != ""
}

// Rest names the threads of a cgroup that have no file of their own because they started later.
const Rest = "threads"

const filePrefix = "thread/"

// File names a thread in a journal.
func File(tid int) string { return filePrefix + strconv.Itoa(tid) }

// Thread is the inverse of File; false means that the file names no thread.
func Thread(file string) (tid int, ok bool) {
	text, found := strings.CutPrefix(file, filePrefix)
	n, err := strconv.ParseUint(text, 10, 31)
	return int(n), found && err == nil && n > 0 && File(int(n)) == file
}
