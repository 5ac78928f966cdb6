package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/procfs"
	"github.com/unthrottle/unthrottle/internal/sim/parallel"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/progress"
)

// liveForecast is how long the forecast of a container may take that was just recorded: a user waits for it. One of a
// file has no bound, so that its result does not depend on the host.
const liveForecast = 30 * time.Second

// replaysWithin gives a forecast of a container its time, from now on.
func replaysWithin(ctx context.Context, live bool) func(n int, do func(i int) error) error {
	if live {
		return parallel.Within(ctx, liveForecast)
	}
	return parallel.OnAllCores(ctx)
}

// slowly says every few seconds on standard error that a step goes on which is short on most hosts, and whether it waits
// for a CPU; done ends it.
func slowly(what string) (done func()) {
	return progress.NewSlow(os.Stderr, what, waitsForCPU()).Done
}

// waitsForCPU returns a function that says whether this process waited more for a CPU than it ran, from now on; "": it did
// not, or the kernel does not tell.
func waitsForCPU() func() string {
	ranBefore, waitedBefore, err := scheduled()
	return func() string {
		ran, waited, again := scheduled()
		ran, waited = ran-ranBefore, waited-waitedBefore
		if errors.Join(err, again) != nil || waited <= ran {
			return ""
		}
		return fmt.Sprintf("other work fills the CPUs, and unthrottle got %s of CPU time; started as 'chrt --rr 1 "+
			"unthrottle ...' it goes first",
			text.Duration(ran))
	}
}

// scheduled returns for how long the threads of this process ran and waited for a CPU.
func scheduled() (ran, waited time.Duration, err error) {
	all, err := filepath.Glob("/proc/self/task/*/schedstat")
	for _, name := range all {
		stat, err := os.ReadFile(name)
		if errors.Is(err, os.ErrNotExist) {
			continue // the thread has ended
		}
		if err != nil {
			return 0, 0, err
		}
		r, w, err := procfs.Scheduled(string(stat))
		if err != nil {
			return 0, 0, err
		}
		ran, waited = ran+r, waited+w
	}
	return ran, waited, err
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
