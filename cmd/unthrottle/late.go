package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/procfs"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/progress"
)

// slowly says every few seconds on standard error that a step goes on which is short on most hosts, and whether it waits
// for a CPU; done ends it.
func slowly(what string) (done func()) {
	return progress.NewSlow(os.Stderr, what, waitsForCPU()).Done
}

// waitsForCPU returns a function that says whether this process waited more for a CPU than it ran, from now on, because of others; "": it
// did not, or the kernel does not tell.
func waitsForCPU() func() string {
	waitedBefore, err := waitedForCPU()
	ranBefore := cpuUsed()
	hostBefore, errHost := procfs.ReadStat(os.DirFS("/proc"))
	return func() string {
		waited, again := waitedForCPU()
		host, againHost := procfs.ReadStat(os.DirFS("/proc"))
		if errors.Join(err, again, errHost, againHost) != nil {
			return ""
		}
		return whyLate(cpuUsed()-ranBefore, waited-waitedBefore, host.Total.Since(hostBefore.Total).Busy())
	}
}

// whyLate says that other work fills the CPUs, where this process waited more for them than it ran, and they were busy with others for
// more time than with it: threads of this process wait for each other too, and that is nobody's fault.
func whyLate(ran, waited, busy time.Duration) string {
	if waited <= ran || busy-ran <= ran {
		return ""
	}
	return fmt.Sprintf("other work fills the CPUs, and unthrottle got %s of CPU time; started as 'chrt --rr 1 unthrottle ...' it goes first",
		text.Duration(ran))
}

// waitedForCPU returns for how long the threads of this process waited for a CPU. What those waited that have ended is lost.
func waitedForCPU() (waited time.Duration, err error) {
	all, err := filepath.Glob("/proc/self/task/*/schedstat")
	for _, name := range all {
		stat, err := os.ReadFile(name)
		if errors.Is(err, os.ErrNotExist) {
			continue // the thread has ended
		}
		if err != nil {
			return 0, err
		}
		_, w, err := procfs.Scheduled(string(stat))
		if err != nil {
			return 0, err
		}
		waited += w
	}
	return waited, err
}

// mostWaiting bounds the threads whose waiting is read.
const mostWaiting = 1 << 14

// waitedIn reads for how long the threads in cgroups have waited for a CPU; nil: this kernel does not count it. A thread that ended, or
// whose file is not there, is left out.
func waitedIn(h *cgroup.Host, paths []string) map[int]time.Duration {
	if _, err := os.Stat("/proc/self/schedstat"); err != nil {
		return nil
	}
	waited := map[int]time.Duration{}
	for _, path := range paths {
		tids, err := h.Threads(cgroup.CPU, path)
		if err != nil {
			continue
		}
		for _, tid := range tids {
			if len(waited) == mostWaiting {
				return waited
			}
			text, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", tid))
			if err != nil {
				continue
			}
			if _, waits, err := procfs.Scheduled(string(text)); err == nil {
				waited[tid] = waits
			}
		}
	}
	return waited
}
