package sampler

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/unthrottle/unthrottle/internal/explain/sampled"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/procfs"
	"github.com/unthrottle/unthrottle/internal/see/observe"
	"github.com/unthrottle/unthrottle/topology"
)

// group is the cgroup of the process, as far as it can be read. host is nil where its files cannot be.
type group struct {
	host   *cgroup.Host
	at     cgroup.Group
	levels []cgroup.Level
	why    string // the files cannot be read, or not all
	// alone says that only the process itself is followed: its cgroup is the host's own.
	alone bool
}

// findGroup finds the cgroup's files: in this mount namespace, else in that of the process.
func findGroup(proc string, pid int) group {
	var failed []error
	for _, open := range []func() (*cgroup.Host, error){
		func() (*cgroup.Host, error) { return cgroup.Open(proc) },
		func() (*cgroup.Host, error) { return cgroup.OpenIn(proc, pid) },
	} {
		g, err := groupIn(open, pid)
		if err == nil {
			return g
		}
		failed = append(failed, err)
	}
	return group{why: fmt.Sprintf("cpu.stat and the limit: %v; in the process's own mount namespace: %v", failed[0], failed[1])}
}

func groupIn(open func() (*cgroup.Host, error), pid int) (group, error) {
	h, err := open()
	if err != nil {
		return group{}, err
	}
	path, ok, err := h.Of(pid, cgroup.CPU)
	if err != nil {
		return group{}, err
	}
	if !ok {
		return group{}, cgroup.ErrNoController
	}
	g := group{host: h}
	if g.at, err = h.Group(path); err != nil {
		return group{}, err
	}
	if g.levels, err = cgroup.Levels(h, path); err != nil {
		return group{}, err
	}
	g.alone = path == "/" && !h.PrivateNamespace()
	if h.PrivateNamespace() || h.Top(cgroup.CPU) != "/" {
		g.why = "quotas above " + h.Top(cgroup.CPU) + ": their cgroups are not visible here"
	}
	return g, nil
}

// limit is the effective one in CPUs; 0: none is known.
func (g *group) limit() float64 {
	cpus, _, _ := cgroup.Effective(g.levels)
	return cpus
}

// members are the processes in the cgroup and below it, the target's own first.
func (g *group) members(pid int) (pids []int, notes []string) {
	pids = []int{pid}
	if g.host == nil {
		return pids, nil
	}
	if g.alone {
		return pids, []string{"processes: it is in the host's own cgroup, and of that it alone is followed"}
	}
	hidden := 0
	err := g.host.Walk(g.at.Path, func(at string) error {
		found, err := g.host.Members(at)
		if err != nil {
			return nil // it went meanwhile, or is not for us
		}
		for _, p := range found {
			switch {
			case p <= 0:
				hidden++
			case p != pid && !slices.Contains(pids, p):
				pids = append(pids, p)
			}
		}
		return nil
	})
	if err != nil && !errors.Is(err, cgroup.ErrNoCgroup) {
		notes = append(notes, "processes: "+err.Error())
	}
	if hidden > 0 {
		notes = append(notes, fmt.Sprintf("processes: %d of the cgroup are of another PID namespace", hidden))
	}
	if more := len(pids) - maxProcesses; more > 0 {
		notes = append(notes, fmt.Sprintf("processes: %d of %d are not followed", more, len(pids)))
		pids = pids[:maxProcesses]
	}
	return pids, notes
}

// describe is what is known before the first sample.
func (g *group) describe(proc string, pid int) (t sampled.Target, notes []string) {
	t.Name, t.Path = "pid:"+strconv.Itoa(pid), g.at.Path
	t.Levels = observe.RecordingLevels(g.levels)
	t.Hidden = g.why != ""
	if g.why != "" {
		notes = append(notes, g.why)
	}
	if release, err := os.ReadFile(filepath.Join(proc, "sys/kernel/osrelease")); err == nil {
		t.Kernel = strings.TrimSpace(string(release))
	}
	if stat, err := procfs.ReadStat(os.DirFS(proc)); err == nil {
		t.CPUsOnline = len(stat.CPUs)
	}
	t.CPUsAllowed = t.CPUsOnline
	if status, err := os.ReadFile(filepath.Join(proc, strconv.Itoa(pid), "status")); err == nil {
		list, _ := procfs.StatusField(string(status), "Cpus_allowed_list")
		if set, err := topology.ParseList(list); err == nil && set.Size() > 0 {
			t.CPUsAllowed = set.Size()
		}
	}
	t.CPUsAllowed = min(t.CPUsAllowed, cmp.Or(t.CPUsOnline, t.CPUsAllowed))
	return t, notes
}

// maxSiblings bounds the cgroups beside the target that are read.
const maxSiblings = 64

// siblings are the CPU times of the cgroups beside the target, below each ancestor with a quota, by their paths.
func (g *group) siblings() map[string]time.Duration {
	all := map[string]time.Duration{}
	for _, l := range g.levels[min(1, len(g.levels)):] {
		if !l.Limit.Limited() {
			continue
		}
		children, err := g.host.Children(cgroup.CPU, l.Path)
		if err != nil {
			continue
		}
		for _, path := range children {
			if len(all) == maxSiblings || cgroup.Below(g.at.Path, path) || strings.HasPrefix(path, g.at.Path+"/") {
				continue
			}
			beside, err := g.host.Group(path)
			if err != nil {
				continue
			}
			if stat, err := cgroup.ReadStat(g.host, beside); err == nil && stat.Usage != nil {
				all[path] = *stat.Usage
			}
		}
	}
	return all
}
