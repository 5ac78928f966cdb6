package procfs

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Fields of /proc/PID/stat by their number in proc_pid_stat(5).
const (
	fieldFlags     = 9
	fieldStartTime = 22
)

// StartTime returns when a task started, in ticks of 1/100 s since boot: field 22 of the text of /proc/PID/stat. PID
// and start time together identify a process, because the kernel reuses PIDs.
func StartTime(stat string) (ticks uint64, err error) { return taskField(stat, fieldStartTime) }

// Flags returns the PF_ bits of a task (include/linux/sched.h): field 9 of the text of /proc/PID/stat.
func Flags(stat string) (uint64, error) { return taskField(stat, fieldFlags) }

// taskField reads one number. Field 2, the name, may hold blanks and parentheses: the last ")" of the line ends it
// (do_task_stat, fs/proc/array.c).
func taskField(stat string, number int) (uint64, error) {
	end := strings.LastIndexByte(stat, ')')
	fields := strings.Fields(stat[end+1:])
	i := number - 3
	if end < 0 || i >= len(fields) {
		return 0, errors.New("/proc/PID/stat: fewer fields than proc_pid_stat(5) has")
	}
	n, err := strconv.ParseUint(fields[i], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("/proc/PID/stat: field %d is %.40q, not a number", number, fields[i])
	}
	return n, nil
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
