package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/load/workload"
	"github.com/unthrottle/unthrottle/internal/see/observe"
)

// The variants, named as in the table.
const (
	variantOnce     = "unthrottle, all at 1 Hz"
	variantHot      = "unthrottle, stopped ones at 10 Hz"
	variantBareOnce = "bare loop, all at 1 Hz"
	variantBareHot  = "bare loop, stopped ones at 10 Hz"
	variantWalker   = "walker"

	variantAgent       = "unthrottle agent, the whole program"
	variantCadvisor    = "cAdvisor library, 1 Hz"
	variantCadvisorCPU = "cAdvisor library, 1 Hz, cpu group only"
)

// polledFormat is what our variants say at their end: how many cgroups they read at the finer rate.
const polledFormat = "polled %d"

// cgroupsPerWalker is the number of cgroups of one walker. The quota stops a walker for one period in each
// cgroup, so that it visits ten per second and each of its own every five seconds. That keeps them among
// those stopped within the last ten seconds.
const cgroupsPerWalker = 50

// burn is the CPU time a walker spends in each cgroup: more than its quota for a period. The kernel may
// notice 4 ms (a tick) later. All walkers together use at most 4 % of a CPU per 50 stopped cgroups.
const burn = 1500 * time.Microsecond

func runVariant(name, text string) error {
	var j job
	if err := json.Unmarshal([]byte(text), &j); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), j.Life)
	defer cancel()
	signal.Ignore(syscall.SIGTERM) // the closing of stdin is what counts
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	h, err := cgroup.Open("/proc")
	if err != nil {
		return err
	}
	switch name {
	case variantOnce, variantHot:
		watch(ctx, h, j, name == variantHot)
	case variantBareOnce, variantBareHot:
		return bareLoop(ctx, h, j, name == variantBareHot)
	case variantWalker:
		return walk(ctx, h, j)
	default:
		return fmt.Errorf("no variant %q", name)
	}
	return nil
}

// watch is what the agent does: all containers found, named, sampled, and one observation of each made every second.
func watch(ctx context.Context, h *cgroup.Host, j job, hot bool) {
	o := observe.WatchOptions{Scope: j.Top}
	if !hot {
		o.PollInterval = -1
	}
	polled := 0
	_ = observe.NewWatcher(h, o).Run(ctx, func(s observe.Snapshot) {
		if polled = 0; hot {
			polled = s.Hot
		}
	})
	fmt.Fprintf(os.Stderr, polledFormat, polled)
}

// walk goes from cgroup to cgroup and spends its quota in each, as one process that moves itself.
func walk(ctx context.Context, h *cgroup.Host, j job) error {
	runtime.LockOSThread()
	for i := j.First; ctx.Err() == nil; i += j.Step {
		if i >= j.Cgroups {
			i = j.First
		}
		if err := h.Attach(cgroup.CPU, cgroup.Join(j.Top, groupName(i)), os.Getpid()); err != nil {
			return err
		}
		for end := workload.ThreadTime() + burn; workload.ThreadTime() < end; {
		}
		// Without this sleep a cgroup whose quota is not noticed to be spent until the tick would be spun in for long.
		time.Sleep(time.Millisecond)
	}
	return nil
}

// bareLoop reads the files that the sampler reads, at the same rates, through handles that are kept open, and does
// nothing else.
func bareLoop(ctx context.Context, h *cgroup.Host, j job, hot bool) error {
	containers, err := container.List(h, container.Options{Scope: j.Top})
	if err != nil {
		return err
	}
	var slow, fast []int
	for i, c := range containers {
		files, err := filesOf(h, c.Group)
		if err != nil {
			return err
		}
		slow = append(slow, files...)
		if i < j.Stopped {
			fast = append(fast, files[0])
		}
	}
	if len(containers) != j.Cgroups {
		return fmt.Errorf("%d containers found of %d", len(containers), j.Cgroups)
	}
	// The limits of the level above, which all share.
	above, err := open(h, cgroup.CPU, j.Top, cgroup.LimitFiles(version(h, cgroup.CPU))...)
	if err != nil {
		return err
	}
	slow = append(slow, above...)
	if hot {
		defer fmt.Fprintf(os.Stderr, polledFormat, len(fast))
	} else {
		defer fmt.Fprintf(os.Stderr, polledFormat, 0)
	}
	buf := make([]byte, 64<<10)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	if !hot {
		tick.Reset(time.Second)
	}
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		fds := fast
		if !hot || n%10 == 0 {
			fds = slow
		}
		for _, fd := range fds {
			if _, err := unix.Pread(fd, buf, 0); err != nil {
				return err
			}
		}
	}
}

// filesOf opens what the sampler reads of one container, cpu.stat first.
func filesOf(h *cgroup.Host, g cgroup.Group) ([]int, error) {
	v := version(h, cgroup.CPU)
	fds, err := open(h, cgroup.CPU, g.Path, append([]string{cgroup.FileStat, cgroup.FileStatLocal}, cgroup.LimitFiles(v)...)...)
	if err != nil {
		return nil, err
	}
	if version(h, cgroup.CPUAcct) == cgroup.V1 {
		usage, err := open(h, cgroup.CPUAcct, g.CPUAcctPath, "cpuacct.usage")
		if err != nil {
			return nil, err
		}
		fds = append(fds, usage...)
	}
	cpus, err := open(h, cgroup.CPUSet, g.CPUSetPath, cgroup.EffectiveCPUsFile(version(h, cgroup.CPUSet)))
	return append(fds, cpus...), err
}

// open opens those of the files that are there.
func open(h *cgroup.Host, c cgroup.Controller, path string, names ...string) ([]int, error) {
	var fds []int
	for _, name := range names {
		fd, err := unix.Open(h.Dir(c, path)+"/"+name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err == unix.ENOENT {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%s of %s: %w", name, path, err)
		}
		fds = append(fds, fd)
	}
	return fds, nil
}

func version(h *cgroup.Host, c cgroup.Controller) cgroup.Version {
	v, _ := h.Version(c)
	return v
}
