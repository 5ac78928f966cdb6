package scx

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/kernel/lockdown"
)

const (
	defaultCgroupRoot = "/sys/fs/cgroup"
	// instead is the way out where the kernel cannot run the scheduler.
	instead = "use a cpuset instead: --via cpuset"
)

// Supported returns nil if this kernel can run the scheduler, or runs it already. Else the error is an *Unavailable.
func Supported() error {
	kernel := os.DirFS("/sys/kernel")
	if running(kernel) == Name {
		return nil
	}
	if err := canLoad(kernel, os.DirFS(defaultCgroupRoot)); err != nil {
		return err
	}
	types, err := btf.LoadKernelSpec()
	if err != nil {
		return noTypes(err)
	}
	return checkTypes(types)
}

// canLoad looks at /sys/kernel and at cgroup v2's root.
func canLoad(kernel, cgroups fs.FS) error {
	state, err := fs.ReadFile(kernel, "sched_ext/state")
	if err != nil {
		return &Unavailable{Why: "the kernel has no sched_ext",
			Way: "Linux 6.17 or later with CONFIG_SCHED_CLASS_EXT=y is needed; " + instead}
	}
	if s := strings.TrimSpace(string(state)); s != "disabled" {
		name := running(kernel)
		if name == "" {
			name = "unknown"
		}
		if name == Name {
			return &Unavailable{Why: "unthrottle's scheduler is loaded already, by another process",
				Way: "stop that agent first, or set caps in its maps"}
		}
		return &Unavailable{Why: fmt.Sprintf("another scheduler, %q, is %s", name, s), Way: "stop it first, or " + instead}
	}
	controllers, err := fs.ReadFile(cgroups, "cgroup.controllers")
	if err != nil || !slices.Contains(strings.Fields(string(controllers)), "cpu") {
		return &Unavailable{Why: "the cpu controller is not on cgroup v2",
			Way: "boot with systemd.unified_cgroup_hierarchy=1, or " + instead}
	}
	if lockdown.HidesMemory(kernel) {
		return &Unavailable{Why: "the kernel does not load the scheduler", Way: lockdown.Way + "; " + instead}
	}
	if !privileged() {
		return &Unavailable{Why: "loading a scheduler is not allowed", Way: "run as root, or with CAP_BPF, CAP_PERFMON and CAP_SYS_ADMIN"}
	}
	return nil
}

// running is the name of the scheduler that the kernel runs; "" means none.
func running(kernel fs.FS) string {
	name, err := fs.ReadFile(kernel, "sched_ext/root/ops")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(name))
}

// enabled returns ErrNotEnabled unless the kernel runs this scheduler.
func enabled(kernelDir string) error {
	kernel := os.DirFS(kernelDir)
	state, err := fs.ReadFile(kernel, "sched_ext/state")
	if err != nil {
		return fmt.Errorf("%w: the kernel has no sched_ext", ErrNotEnabled)
	}
	if s := strings.TrimSpace(string(state)); s != "enabled" {
		return fmt.Errorf("%w: sched_ext is %s", ErrNotEnabled, s)
	}
	if name := running(kernel); name != Name {
		return fmt.Errorf("%w: the kernel runs %q", ErrNotEnabled, name)
	}
	return nil
}

// needed are the kernel functions that changed between kernels, with the number of their parameters as of Linux 6.18.
var needed = map[string]int{
	"scx_bpf_create_dsq": 2, "scx_bpf_kick_cpu": 2, "scx_bpf_dsq_insert_vtime": 5, "scx_bpf_dsq_move_to_local": 1,
	"scx_bpf_select_cpu_dfl": 4, "scx_bpf_reenqueue_local": 0, "bpf_iter_scx_dsq_new": 3,
}

// checkTypes looks for what the scheduler needs in the kernel's types.
func checkTypes(types *btf.Spec) error {
	var ops *btf.Struct
	if err := types.TypeByName("sched_ext_ops", &ops); err != nil {
		return &Unavailable{Why: "the kernel has no sched_ext", Err: err,
			Way: "Linux 6.17 or later with CONFIG_SCHED_CLASS_EXT=y is needed; " + instead}
	}
	if !slices.ContainsFunc(ops.Members, func(m btf.Member) bool { return m.Name == "cgroup_set_bandwidth" }) {
		return &Unavailable{
			Why: "the kernel does not tell schedulers about cpu.max (sched_ext_ops has no cgroup_set_bandwidth), so " +
				"that other containers' limits would end",
			Way: "Linux 6.17 or later with CONFIG_EXT_GROUP_SCHED=y is needed; " + instead,
		}
	}
	for name, parameters := range needed {
		all, err := types.AnyTypesByName(name)
		if err != nil {
			return &Unavailable{Why: "the kernel lacks the function " + name, Way: "this scheduler was tried with Linux 6.18; " + instead}
		}
		for _, t := range all {
			f, ok := t.(*btf.Func)
			if !ok {
				continue
			}
			if proto, ok := f.Type.(*btf.FuncProto); len(all) > 1 || ok && len(proto.Params) != parameters {
				return &Unavailable{Why: "the kernel's function " + name + " has another form than this program knows",
					Way: "this scheduler was tried with Linux 6.18; " + instead}
			}
		}
	}
	return nil
}

func noTypes(err error) error {
	return &Unavailable{Why: "the kernel does not tell its types (BTF)", Err: err,
		Way: "a kernel with CONFIG_DEBUG_INFO_BTF=y is needed; " + instead}
}

// refused makes an *Unavailable of the kernel's error.
func refused(what string, err error) error {
	u := &Unavailable{Why: "the kernel refuses to " + what, Err: err,
		Way: "report this with the output of `unthrottle version`; until then " + instead}
	switch {
	case lockdown.Refused(err):
		u.Way = lockdown.Way + "; " + instead
	case errors.Is(err, fs.ErrPermission):
		u.Way = "run as root, outside a container; a kernel in lockdown mode refuses always"
	case errors.Is(err, unix.EBUSY):
		u.Way = "another scheduler was loaded at the same moment: stop it first"
	case errors.Is(err, ebpf.ErrNotSupported):
		u.Way = "this scheduler was tried with Linux 6.18; " + instead
	}
	return u
}

// privileged reports whether we may load a scheduler; true where that is unknown.
func privileged() bool {
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var have [2]unix.CapUserData
	if err := unix.Capget(&head, &have[0]); err != nil {
		return true
	}
	return have[unix.CAP_SYS_ADMIN/32].Effective&(1<<(unix.CAP_SYS_ADMIN%32)) != 0
}
