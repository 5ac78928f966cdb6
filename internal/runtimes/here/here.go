// Package here reads what package runtimes needs: the limits of this process, and the processes of a container.
package here

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/explain/threadpool/identify"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/runtimes"
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
	l.Request, err = request(h, path)
	return l, err
}

// request is the CPU request that Kubernetes and Docker write as a weight. The default weight is none.
func request(h *cgroup.Host, path string) (float64, error) {
	v, _ := h.Version(cgroup.CPU)
	text, err := h.Read(cgroup.CPU, path, cgroup.WeightFile(v))
	if errors.Is(err, cgroup.ErrNoFile) { // the root
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	var weight uint64
	if _, err := fmt.Sscan(text, &weight); err != nil {
		return 0, fmt.Errorf("cgroup %s: weight %.20q: %w", path, text, err)
	}
	if text == cgroup.DefaultWeightText(cgroup.WeightFile(v)) {
		return 0, nil
	}
	return requestOf(v, weight), nil
}

// requestOf is the request, in CPUs, of a weight: 1024 shares a CPU; on v2 by the formula of runc and crun, of which this is
// the inverse (weight = 1 + (shares-2)*9999/262142).
func requestOf(v cgroup.Version, weight uint64) float64 {
	shares := float64(weight)
	if v == cgroup.V2 {
		shares = 2 + float64(weight-min(weight, 1))*262142/9999
	}
	return shares / 1024
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
func Processes(h *cgroup.Host, path string) (all []runtimes.Process, notes []string, err error) {
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
		p := runtimes.Process{Host: cpus(pid)}
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
		all = append(all, p)
	}
	return all, notes, nil
}
