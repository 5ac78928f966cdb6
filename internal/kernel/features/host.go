package features

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
)

// Report is the content of `unthrottle check`.
type Report struct {
	Kernel Kernel `json:"kernel"`
	// CgroupMode is "v1", "v2", "mixed" or "none".
	CgroupMode string `json:"cgroup_mode"`
	// PrivateNamespace reports that unthrottle itself runs in a cgroup namespace. It does not see the host's paths and
	// process ids there.
	PrivateNamespace bool         `json:"private_cgroup_namespace"`
	Controllers      []Controller `json:"controllers"`
	// CPUs counts the hardware threads that this process may run on.
	CPUs     int       `json:"cpus"`
	Root     bool      `json:"root"`
	Rights   Rights    `json:"rights"`
	Managers []Manager `json:"managers"`
	Can      []Ability `json:"can"`
	// Missing is what the host or this user lacks, and how to get it.
	Missing []Missing `json:"missing"`
	// Means decide what remedies can do; Can says what follows from them.
	Means Means `json:"-"`
}

// Controller is one cgroup controller as mounted here.
type Controller struct {
	Name cgroup.Controller `json:"name"`
	// Version is 1 or 2; 0 means not mounted.
	Version cgroup.Version `json:"version"`
	Dir     string         `json:"dir"`
	// Writable: the files that remedies write can be written.
	Writable bool `json:"writable"`
	// CanMakeCgroups: experiments can make cgroups of their own below Dir. Root without CAP_DAC_OVERRIDE may write the
	// files, which it owns, and make nothing in a folder without permission to write.
	CanMakeCgroups bool `json:"can_make_cgroups"`
}

// Ability is something that unthrottle can or cannot do on this host, and why.
type Ability struct {
	What string `json:"what"`
	Can  bool   `json:"can"`
	Why  string `json:"why"`
}

// Gather reads everything but what only a try can tell: Missing stays empty, and Can has no row about commands that record
// or write. root is the file system of "/", euid is the effective user.
func Gather(h *cgroup.Host, root fs.FS, euid int) Report {
	r := Report{
		CgroupMode:       h.Mode(),
		PrivateNamespace: h.PrivateNamespace(),
		CPUs:             runtime.NumCPU(),
		Root:             euid == 0,
		Managers:         readManagers(root),
		Missing:          []Missing{},
	}
	processes, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		processes = ""
	}
	r.Rights = readRights(root, euid, r.PrivateNamespace, processes)
	for _, c := range cgroup.Controllers() {
		r.Controllers = append(r.Controllers, readController(h, c))
	}
	sample := sampleGroup(h, cgroup.CPU)
	r.Kernel = ReadKernel(root, hasFile(h, sample, "cpu.cfs_burst_us", "cpu.max.burst"),
		hasFile(h, sample, "cpu.stat.local", "cpu.stat.local"))
	r.Kernel.Unusual, r.Kernel.TunablesRead = readTunables(root)
	r.Kernel.DefaultPeriodMicroseconds = defaultPeriod(h, sample)
	if name := r.Kernel.SchedExtScheduler; name != "" {
		r.Managers = append(r.Managers, Manager{
			Name:     "sched_ext",
			Evidence: "/sys/kernel/sched_ext/root/ops: " + name,
			Means:    "CPU limits and weights hold only as far as that scheduler honours them",
		})
	}
	r.Means = readMeans(h, root, sample)
	r.Can = abilities(r)
	return r
}

func readController(h *cgroup.Host, c cgroup.Controller) Controller {
	m, ok := h.Mount(c)
	if !ok {
		return Controller{Name: c}
	}
	// The kernel answers, because a write fails alike on a read-only mount and for missing rights.
	writable := func(path string) bool { return !m.ReadOnly && unix.Access(path, unix.W_OK) == nil }
	return Controller{
		Name:           c,
		Version:        m.Version,
		Dir:            m.Dir,
		Writable:       writable(written(c, m.Version, h.Dir(c, sampleGroup(h, c)), m.Dir)),
		CanMakeCgroups: writable(m.Dir),
	}
}

// written is the file that a remedy writes for a controller, in a cgroup's folder dir. Where that is not there, it is the
// file that enables the controller (v2), else the controller's folder top.
func written(c cgroup.Controller, v cgroup.Version, dir, top string) string {
	files := []string{filepath.Join(top, cgroup.FileSubtreeControl)}
	switch c {
	case cgroup.CPU:
		files = []string{filepath.Join(dir, cgroup.LimitFiles(v)[0]), files[0]}
	case cgroup.CPUSet:
		files = []string{filepath.Join(dir, cgroup.FileCPUs), files[0]}
	}
	for _, file := range files {
		if _, err := os.Stat(file); err == nil {
			return file
		}
	}
	return top
}

// sampleGroup returns a cgroup below a controller's root, since the root itself has none of the bandwidth files on v2. It
// returns the root if only that exists.
func sampleGroup(h *cgroup.Host, c cgroup.Controller) string {
	top := h.Top(c)
	children, err := h.Children(c, top)
	if err != nil || len(children) == 0 {
		return top
	}
	return children[0]
}

// hasFile reports whether the cgroup has the file that shows a feature.
func hasFile(h *cgroup.Host, group, v1, v2 string) Answer {
	version, ok := h.Version(cgroup.CPU)
	if !ok {
		return Unknown
	}
	name := v1
	if version == cgroup.V2 {
		name = v2
	}
	dir := h.Dir(cgroup.CPU, group)
	if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
		return Yes
	}
	if version == cgroup.V2 {
		// If the cpu controller is not enabled here, missing files prove nothing.
		if _, err := os.Stat(filepath.Join(dir, "cpu.max")); err != nil {
			return Unknown
		}
	}
	return No
}

func defaultPeriod(h *cgroup.Host, group string) *int64 {
	limit, err := cgroup.ReadLimit(h, group)
	if err != nil || limit.Period <= 0 {
		return nil
	}
	us := limit.Period.Microseconds()
	return &us
}

// abilities draws the conclusions that need no remedy and no try; it is a pure function of the rest of the report. Package
// remedy draws those about remedies, Commands those about commands that record or write.
func abilities(r Report) []Ability {
	demo := Ability{What: "demo", Can: true, Why: "cgroups of its own can be made"}
	for _, c := range []cgroup.Controller{cgroup.CPUSet, cgroup.CPU} {
		if w := r.canMake(c); !w.Can {
			demo.Can, demo.Why = false, w.Why
		}
	}
	return []Ability{r.seeThrottling(), demo}
}

// seeThrottling says what the counters tell here.
func (r Report) seeThrottling() Ability {
	see := Ability{What: "see throttling (ls)", Can: true, Why: "cpu.stat is readable"}
	switch {
	case r.controller(cgroup.CPU).Version == 0:
		see.Can, see.Why = false, "no cgroup hierarchy with the cpu controller is mounted"
	case r.PrivateNamespace:
		see.Why = "only of what is below this cgroup namespace"
	case r.Kernel.StatLocal == Yes:
		see.Why = "cpu.stat and cpu.stat.local: own and ancestors' quotas told apart"
	}
	return see
}

func (r Report) controller(name cgroup.Controller) Controller {
	for _, c := range r.Controllers {
		if c.Name == name {
			return c
		}
	}
	return Controller{}
}

// Writable says whether the files of a controller can be written here, and why.
func (r Report) Writable(name cgroup.Controller) Ability {
	return writable(r.controller(name), string(name)+" controller")
}

// canMake says whether cgroups can be made in a controller's hierarchy, and why.
func (r Report) canMake(name cgroup.Controller) Ability {
	c := r.controller(name)
	if c.Version != 0 && !c.CanMakeCgroups {
		return notWritable(c.Dir)
	}
	return r.Writable(name)
}

// Manages says whether another program manages CPUs here, by its name in Managers.
func (r Report) Manages(name string) bool {
	return slices.ContainsFunc(r.Managers, func(m Manager) bool { return m.Name == name })
}

func writable(c Controller, what string) Ability {
	switch {
	case c.Version == 0:
		return Ability{Why: "the " + what + " is not mounted"}
	case !c.Writable:
		return notWritable(c.Dir)
	}
	return Ability{Can: true, Why: "the " + what + " is writable"}
}

func notWritable(dir string) Ability {
	return Ability{Why: dir + " is not writable: run as root, outside a container or with the host's cgroups mounted writable"}
}
