// Package here reads what package runtimes needs: the limits of this process, and the processes of a container.
package here

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/explain/threadpool/identify"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/runtimes"
	"github.com/unthrottle/unthrottle/internal/text"
)

// Limits are those of this process, read along the path of its own cgroup. An error says that no limit could be read; the
// number of CPUs is right all the same.
func Limits() (runtimes.Limits, error) {
	l := runtimes.Limits{Host: cpus(0)}
	h, err := cgroup.Open("/proc")
	if err != nil {
		return l, err
	}
	path, ok, err := h.Of(os.Getpid(), cgroup.CPU)
	if err == nil && !ok {
		err = cgroup.ErrNoController
	}
	if err != nil {
		return l, err
	}
	levels, err := cgroup.Levels(h, path)
	if err != nil {
		return l, err
	}
	if limit, limited, _ := cgroup.Effective(levels); limited {
		l.CPUs = limit
	}
	l.Request, l.Unsure, err = request(h, path)
	return l, err
}

// request is the CPU request that Kubernetes and Docker write as a weight; unsure says why it is not known. The default weight is none.
func request(h *cgroup.Host, path string) (cpus float64, unsure string, err error) {
	v, _ := h.Version(cgroup.CPU)
	value, err := h.Read(cgroup.CPU, path, cgroup.WeightFile(v))
	if errors.Is(err, cgroup.ErrNoFile) { // the root
		return 0, "", nil
	}
	if err != nil {
		return 0, "", err
	}
	var weight uint64
	if _, err := fmt.Sscan(value, &weight); err != nil {
		return 0, "", fmt.Errorf("cgroup %s: weight %.20q: %w", path, value, err)
	}
	if value == cgroup.DefaultWeightText(cgroup.WeightFile(v)) {
		return 0, "", nil
	}
	cpus, unsure = requestOf(v, weight)
	return cpus, unsure, nil
}

// requestOf is the request of a weight, in CPUs.
func requestOf(v cgroup.Version, weight uint64) (cpus float64, unsure string) {
	if v != cgroup.V2 {
		return cgroup.RequestOfShares(weight), ""
	}
	linear, curved := cgroup.RequestsOfWeight(weight)
	if linear == 0 {
		return 0, ""
	}
	return 0, fmt.Sprintf("the cgroup's weight of %d stands for a request of %s, or of %s since runc 1.3.2 and crun "+
		"1.23: give it with --request",
		weight, text.CPUs(math.Round(100*linear)/100), text.CPUs(math.Round(100*curved)/100))
}

// cpus is how many CPUs a process may run on; 0 is this one.
func cpus(pid int) int {
	var set unix.CPUSet
	if unix.SchedGetaffinity(pid, &set) != nil {
		return 0
	}
	return set.Count()
}

// maxProcesses bounds how many processes of a container are read.
const maxProcesses = 1024

// Processes are those of a cgroup and all below it. notes say what could not be read of some.
func Processes(h *cgroup.Host, path string) (processes []runtimes.Process, notes []string, err error) {
	var pids []int
	err = h.Walk(path, func(at string) error {
		found, err := h.Members(at)
		if errors.Is(err, cgroup.ErrNoCgroup) {
			return nil // it went meanwhile
		}
		pids = append(pids, found...)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	slices.Sort(pids)
	pids = slices.CompactFunc(pids, func(a, b int) bool { return a == b && a != 0 }) // threads of one process may be in several
	if len(pids) > maxProcesses {
		notes = append(notes, fmt.Sprintf("the first %d of %d processes only", maxProcesses, len(pids)))
		pids = pids[:maxProcesses]
	}
	for _, pid := range pids {
		if pid == 0 {
			notes = append(notes, "a process of another PID namespace cannot be read from here")
			continue
		}
		p := runtimes.Process{Host: cpus(pid), Files: func(name string) ([]byte, error) { return identify.Options(pid, name) }}
		var unread error
		if p.Process, unread = identify.Look(pid); unread == nil {
			p.Env, unread = identify.Environment(pid)
		}
		if errors.Is(unread, os.ErrProcessDone) {
			continue
		}
		if unread != nil {
			notes = append(notes, unread.Error())
		}
		said, err := identify.Budget(pid)
		if err != nil {
			notes = append(notes, err.Error())
		}
		if said != nil {
			p.Budget = &said.Budget
		}
		if p.JVM, err = identify.PerfData(pid); err != nil {
			notes = append(notes, err.Error())
		}
		if p.Host == 0 {
			p.Host = cpus(0)
		}
		processes = append(processes, p)
	}
	return processes, notes, nil
}
