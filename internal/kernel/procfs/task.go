package procfs

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Fields of /proc/PID/stat by their number in proc_pid_stat(5).
const (
	fieldState     = 3
	fieldParent    = 4
	fieldFlags     = 9
	fieldStartTime = 22
)

// StartTime returns when a task started, in ticks of 1/100 s since boot: field 22 of the text of /proc/PID/stat. PID
// and start time together identify a process, because the kernel reuses PIDs.
func StartTime(stat string) (ticks uint64, err error) { return taskField(stat, fieldStartTime) }

const (
	// ticksPerSecond is USER_HZ, in which /proc counts.
	ticksPerSecond = 100
	// maxUptime is 95 years in seconds: what is above is no time.
	maxUptime = 3e9
)

// Age returns for how long a task has run: from the texts of /proc/PID/stat and /proc/uptime, which count from the same
// moment. It is exact to 10 ms, and never below 0.
func Age(stat, uptime string) (time.Duration, error) {
	ticks, err := StartTime(stat)
	if err != nil {
		return 0, err
	}
	first, _, _ := strings.Cut(uptime, " ")
	seconds, err := strconv.ParseFloat(first, 64)
	if err != nil || !(seconds >= 0 && seconds < maxUptime) || ticks > ticksPerSecond*maxUptime {
		return 0, fmt.Errorf("/proc/uptime: %.40q is no time, or a task began at tick %d", first, ticks)
	}
	since := time.Duration(seconds * float64(time.Second))
	return max(0, since-time.Duration(ticks)*(time.Second/ticksPerSecond)), nil
}

// Parent returns the PID of a process's parent, 0 for one outside our PID namespace: field 4 of the text of
// /proc/PID/stat.
func Parent(stat string) (pid uint64, err error) { return taskField(stat, fieldParent) }

// Command returns the name of a task, at most 15 bytes, raw: field 2 of the text of /proc/PID/stat. "" means that the
// text has none.
func Command(stat string) string {
	begin, end := strings.IndexByte(stat, '('), strings.LastIndexByte(stat, ')')
	if begin < 0 || end < begin {
		return ""
	}
	return stat[begin+1 : end]
}

// Flags returns the PF_ bits of a task (include/linux/sched.h): field 9 of the text of /proc/PID/stat.
func Flags(stat string) (uint64, error) { return taskField(stat, fieldFlags) }

// Ended reports whether a task has ended and only waits for its parent: a zombie or dead, by field 3 of the text of
// /proc/PID/stat.
func Ended(stat string) (bool, error) {
	state, err := taskText(stat, fieldState)
	return state == "Z" || state == "X", err
}

// taskField reads one number.
func taskField(stat string, number int) (uint64, error) {
	value, err := taskText(stat, number)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(value, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("/proc/PID/stat: field %d is %.40q, not a number", number, value)
	}
	return n, nil
}

// taskText reads one field after the name. Field 2, the name, may hold blanks and parentheses: the last ")" of the line
// ends it (do_task_stat, fs/proc/array.c).
func taskText(stat string, number int) (string, error) {
	end := strings.LastIndexByte(stat, ')')
	fields := strings.Fields(stat[end+1:])
	i := number - 3
	if end < 0 || i >= len(fields) {
		return "", errors.New("/proc/PID/stat: fewer fields than proc_pid_stat(5) has")
	}
	return fields[i], nil
}

// StatusField returns the value of a line of /proc/PID/status, without blanks around it. Name has no colon:
// "Cpus_allowed_list". False means that the line is missing.
func StatusField(status, name string) (string, bool) {
	for line := range strings.Lines(status) {
		if key, value, ok := strings.Cut(line, ":"); ok && key == name {
			return strings.TrimSpace(value), true
		}
	}
	return "", false
}

// Scheduled returns for how long a thread ran on a CPU and waited for one since it began: fields 1 and 2 of the text of
// /proc/PID/task/TID/schedstat, in ns (fs/proc/base.c, proc_pid_schedstat).
func Scheduled(schedstat string) (ran, waited time.Duration, err error) {
	s, err := ParseSchedstat([]byte(schedstat))
	return s.Ran, s.Waited, err
}

// Schedstat is a /proc/PID/task/TID/schedstat: for how long a thread ran on a CPU and waited for one since it began, and how
// often it got one.
type Schedstat struct {
	Ran, Waited time.Duration
	Runs        uint64
}

// ParseSchedstat reads the text of such a file without allocating, because a sampler reads many of them: two times in ns and a
// count.
func ParseSchedstat(text []byte) (s Schedstat, err error) {
	numbers, rest := [3]uint64{}, text
	for i := range numbers {
		var ok bool
		if numbers[i], rest, ok = leadingNumber(rest); !ok {
			return Schedstat{}, fmt.Errorf("/proc/PID/task/TID/schedstat: %.40q has no two times and a count", text)
		}
	}
	return Schedstat{Ran: time.Duration(numbers[0]), Waited: time.Duration(numbers[1]), Runs: numbers[2]}, nil
}

// leadingNumber reads a number of at most 63 bits, which a blank, a newline or the end follows.
func leadingNumber(text []byte) (n uint64, rest []byte, ok bool) {
	for i, c := range text {
		switch {
		case c == ' ' || c == '\n':
			return n, text[i+1:], i > 0
		case c < '0' || c > '9' || n > (math.MaxInt64-9)/10:
			return 0, nil, false
		}
		n = n*10 + uint64(c-'0')
	}
	return n, nil, len(text) > 0
}
