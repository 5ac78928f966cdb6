package identify

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/kernel/procfs"
)

// maxUnnamed is how many threads without a name of their own are looked at, of the first maxTasks. Where all of them run, they
// are looked at again, at most maxLooks times with a pause between.
const (
	maxUnnamed, maxTasks = 64, 4096
	maxLooks, pause      = 4, 5 * time.Millisecond
)

// Owner returns the name of the file whose code runs most CPU time of the threads that are called comm, as the program is, by
// the function that each was started with; "": there are no such threads, or none of them sleeps, or they cannot be read. It
// reads their stacks, and waits a little where all of them run.
func Owner(pid int, comm string) (most string) {
	d, err := openProcess(pid)
	if err != nil {
		return ""
	}
	defer d.close()
	text, err := d.read("maps", maxMaps)
	if err != nil {
		return ""
	}
	mapped := segments(text)
	for look := range maxLooks {
		if look > 0 {
			time.Sleep(pause)
		}
		used, running := d.starters(comm, mapped)
		for _, file := range slices.Sorted(maps.Keys(used)) {
			if most == "" || used[file] > used[most] {
				most = file
			}
		}
		if most != "" || !running {
			break
		}
	}
	return most
}

// starters are the CPU times of these threads by the file of the function that each was started with. running: some could
// not be read because they run.
func (d *process) starters(comm string, mapped []segment) (used map[string]time.Duration, running bool) {
	var memory *os.File
	seen := 0
	used = map[string]time.Duration{}
	for _, tid := range d.tasks() {
		name, err := d.read("task/"+tid+"/comm", maxSmall)
		if tid == strconv.Itoa(d.pid) || seen == maxUnnamed || err != nil || strings.TrimSuffix(string(name), "\n") != comm {
			continue
		}
		seen++
		if memory == nil {
			if memory, err = d.open("mem", unix.O_RDONLY); err != nil {
				return used, false
			}
			defer memory.Close()
		}
		line, err := d.read("task/"+tid+"/syscall", maxSmall)
		if err != nil {
			continue
		}
		sp, ok := stackPointer(string(line))
		if !ok {
			running = true
			continue
		}
		if file := startedBy(memory, mapped, sp); file != "" {
			stat, _ := d.read("task/"+tid+"/schedstat", maxSmall)
			ran, _, _ := procfs.Scheduled(string(stat))
			used[file] += ran + 1
		}
	}
	return used, running
}

// tasks are the ids of a process's threads.
func (d *process) tasks() []string {
	dir, err := d.open("task", unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil
	}
	defer dir.Close()
	all, err := dir.Readdirnames(maxTasks)
	if err != nil && err != io.EOF {
		return nil
	}
	return all
}

// stackPointer reads /proc/PID/task/TID/syscall (proc_pid_syscall(5)); false: the thread runs.
func stackPointer(line string) (sp uint64, ok bool) {
	fields := strings.Fields(line)
	if len(fields) < 3 {
		return 0, false
	}
	_, err := fmt.Sscanf(fields[len(fields)-2], "0x%x", &sp)
	return sp, err == nil && sp > 0
}
