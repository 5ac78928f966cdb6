package realrun

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/load/sandbox"
	"github.com/unthrottle/unthrottle/internal/load/workload/threads"
	"github.com/unthrottle/unthrottle/internal/scenario"
	"github.com/unthrottle/unthrottle/internal/text"
)

// checkSupported refuses what this host cannot run, before anything is made. v2 tells
// whether the cpu controller is on cgroup v2.
func checkSupported(s *scenario.Scenario, v2 bool) error {
	total := 0
	for i := range s.Workloads {
		w := &s.Workloads[i]
		if total += w.AllThreads(); total > threads.MaxThreads {
			return fmt.Errorf("workloads.%s: more than %d threads in all: simulate it, or take fewer", w.Name, threads.MaxThreads)
		}
		if w.Server == nil {
			continue
		}
		for _, p := range w.Server.Pools {
			if p.Queue < 1 {
				return fmt.Errorf("workloads.%s: queue 0: a real service's queue has room for at least 1", w.Name)
			}
		}
	}
	for _, c := range s.Cgroups {
		if c.Width > 0 {
			return fmt.Errorf("cgroups.%s.remedy: no kernel bounds how many CPUs a cgroup uses at once: simulate it, or give cpus", c.Name)
		}
	}
	if !v2 {
		return nil
	}
	for i, c := range s.Cgroups {
		if c.Parent < 0 {
			continue
		}
		for _, w := range s.Workloads {
			if w.Cgroup == c.Parent {
				return fmt.Errorf("cgroups.%s: its parent %s has workload %s: on cgroup v2 a cgroup has processes or "+
					"cgroups, not both; give the workload a cgroup of its own",
					s.Cgroups[i].Name, s.Cgroups[c.Parent].Name, w.Name)
			}
		}
	}
	return nil
}

// checkCPUs checks that the sandbox has the CPUs that are asked for, and that no limit
// above it decides.
func checkCPUs(box *sandbox.Sandbox, need int) error {
	if err := enough(box.CPUs(), need); err != nil {
		return err
	}
	levels, err := box.Levels()
	if err != nil {
		return err
	}
	if least, limited, at := cgroup.Effective(levels); limited && least < float64(need) {
		return &sandbox.NotMeasurable{
			What:   fmt.Sprintf("the scenario needs %d CPUs, and cgroup %s has a limit of %.2f itself", need, text.EscapePath(at), least),
			WayOut: "name a cgroup without a limit with --parent",
		}
	}
	return nil
}

// enough checks that the usable CPUs are as many as the scenario needs.
func enough(have cpuset.CPUSet, need int) error {
	if have.Size() >= need {
		return nil
	}
	return &sandbox.NotMeasurable{
		What:   fmt.Sprintf("the scenario needs %d CPUs, and %d (%s) can be used here", need, have.Size(), have),
		WayOut: "simulate it ('unthrottle simulate'), or run it on a larger host",
	}
}

// Bytes that parts of a run take, about.
const (
	perProcess = 32 << 20 // a Go program at rest, its histograms included
	perThread  = 96 << 10
	perRequest = 64
)

// neededMemory is about how many bytes a run takes.
func neededMemory(s *scenario.Scenario) int {
	sum := 0
	for _, w := range s.Workloads {
		sum += perProcess + w.AllThreads()*perThread
		if w.Kind == scenario.Kernel {
			sum += w.Threads * threads.CallerBytes
		}
		if w.Server != nil {
			sum += w.Server.Shared
			if w.Shard == 0 {
				sum += perProcess // its generator
			}
			for _, p := range w.Server.Pools {
				sum += p.Queue * perRequest
			}
		}
		if w.Java != nil {
			sum += w.Java.Heap*5/4 + perProcess
		}
	}
	return sum
}

// checkMemory compares with the MemAvailable of /proc/meminfo.
func checkMemory(s *scenario.Scenario, meminfo string) error {
	have, err := availableMemory(meminfo)
	if err != nil {
		return err
	}
	if need := neededMemory(s); need > have {
		return &sandbox.NotMeasurable{
			What:   fmt.Sprintf("the scenario needs about %d MiB of memory, and %d are free here", need>>20, have>>20),
			WayOut: "take fewer threads, shorter queues or smaller heaps, or simulate it ('unthrottle simulate')",
		}
	}
	return nil
}

// availableMemory reads MemAvailable (proc_meminfo(5)), in bytes.
func availableMemory(meminfo string) (int, error) {
	lines := bufio.NewScanner(strings.NewReader(meminfo))
	for lines.Scan() {
		if text, ok := strings.CutPrefix(lines.Text(), "MemAvailable:"); ok {
			kib, err := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(text, "kB")))
			if err != nil || kib < 0 || kib > 1<<50 {
				return 0, fmt.Errorf("/proc/meminfo: MemAvailable %.40q is no size", text)
			}
			return kib << 10, nil
		}
	}
	return 0, errors.New("/proc/meminfo has no MemAvailable, so that the free memory is unknown: mount a /proc of Linux 3.14 or newer")
}

func readMeminfo() (string, error) {
	text, err := os.ReadFile("/proc/meminfo")
	return string(text), err
}

// notReproduced tells what of a scenario's host cannot be had here, and matters.
func notReproduced(s *scenario.Scenario) (notes []string) {
	if !s.Host.Topology.Equal() {
		notes = append(notes, "host.topology: not reproduced: the host's own topology is used")
	}
	for i := range s.Cgroups {
		if !s.Cgroups[i].Mems.IsEmpty() {
			notes = append(notes, "cgroups."+s.Cgroups[i].Name+".mems: not set: memory lies where the host puts it")
		}
	}
	return notes
}

// mapped are the host's CPUs for CPUs of the scenario: its n-th is the n-th of
// those that can be used.
func mapped(cpus, usable cpuset.CPUSet) cpuset.CPUSet {
	list := usable.List()
	var out []int
	for _, n := range cpus.List() {
		out = append(out, list[n])
	}
	return cpuset.New(out...)
}
