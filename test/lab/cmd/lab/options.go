package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/unthrottle/unthrottle/test/lab"
	"github.com/unthrottle/unthrottle/test/lab/boot"
	"github.com/unthrottle/unthrottle/test/lab/fetch"
	"github.com/unthrottle/unthrottle/test/lab/wire"
)

// options are the flags that several commands share.
type options struct {
	cacheDir string
	smp      string
	l3s      int
	numa     string
	kernel   string
	cgroup   string
	memory   int
	limit    time.Duration
	console  bool
	node     bool
	append   []string
	packages []string
	slow     slowed
}

func (o *options) add(cmd *cobra.Command, limit time.Duration) {
	f := cmd.Flags()
	f.StringVar(&o.smp, "smp", lab.DefaultSMP, "CPUs, and how they are arranged; cores is per socket")
	f.IntVar(&o.l3s, "l3", 1, "L3 caches per socket")
	f.StringVar(&o.numa, "numa", string(lab.NUMAPerSocket), "NUMA nodes: socket or none")
	f.StringVar(&o.kernel, "kernel", fetch.DefaultLine, "a kernel that `lab list` shows, or the path of a vmlinux or bzImage")
	f.StringVar(&o.cgroup, "cgroup", "v2", "cgroup hierarchy: v2, or v1 on kernels before 6.12")
	f.IntVar(&o.memory, "memory", lab.DefaultMemoryMiB, "memory in MiB, the initramfs comes on top")
	f.Duration("timeout", limit, "end the guest after this time; with --slow it is the guest's")
	f.BoolVar(&o.node, "node", false, "boot a Debian with systemd from a disk, as a node of Kubernetes has it (needs "+
		"root, mmdebstrap, e2fsprogs)")
	f.StringSliceVar(&o.packages, "packages", nil, "boot from a disk with these packages of Debian "+fetch.PackagesSuite+
		" and what they depend on (needs root, mmdebstrap, e2fsprogs)")
	f.StringArrayVar(&o.append, "append", nil, "a parameter of a node's kernel (repeat)")
	f.BoolVar(&o.console, "console", false, "show the guest's console on stderr")
	o.slow.add(cmd)
	// One variable for several commands would have the default of the last.
	cmd.PreRunE = func(*cobra.Command, []string) (err error) {
		o.limit, err = f.GetDuration("timeout")
		return err
	}
}

func (o *options) cache(log io.Writer) (*fetch.Cache, error) {
	dir := o.cacheDir
	if dir == "" {
		var err error
		if dir, err = fetch.DefaultDir(); err != nil {
			return nil, err
		}
	}
	return &fetch.Cache{Dir: dir, Log: log}, nil
}

// guest makes a guest, all except its plan and its outputs.
func (o *options) guest(ctx context.Context, log io.Writer) (boot.Guest, error) {
	if err := o.slow.check(); err != nil {
		return boot.Guest{}, err
	}
	g, err := o.atHostPace(ctx, log)
	if err != nil {
		return g, err
	}
	cache, err := o.cache(log)
	if err != nil {
		return g, err
	}
	return g, o.slow.prepare(ctx, &g, cache.Dir)
}

func (o *options) atHostPace(ctx context.Context, log io.Writer) (boot.Guest, error) {
	machine, err := lab.ParseMachine(o.smp, o.l3s, lab.NUMA(o.numa))
	if err != nil {
		return boot.Guest{}, err
	}
	if o.node && o.packages != nil {
		return boot.Guest{}, errors.New("--node and --packages exclude each other")
	}
	if o.memory < 256 {
		return boot.Guest{}, fmt.Errorf("--memory %d: want at least 256 MiB", o.memory)
	}
	machine.MemoryMiB = o.memory
	version := 2
	switch o.cgroup {
	case "v2":
	case "v1":
		version = 1
	default:
		return boot.Guest{}, fmt.Errorf("--cgroup %s: want v1 or v2", o.cgroup)
	}
	cache, err := o.cache(log)
	if err != nil {
		return boot.Guest{}, err
	}
	emulator, err := cache.Emulator(ctx)
	if err != nil {
		return boot.Guest{}, err
	}
	g := boot.Guest{
		Machine: machine,
		QEMU: func(ctx context.Context, args ...string) *exec.Cmd {
			return emulator.Command(ctx, "qemu-system-x86_64", args...)
		},
		DataDirs: emulator.DataDirs(),
		Busybox:  emulator.Busybox(),
		Limit:    o.limit,
		// The guest's own limit is a little later than the host's, in case the host cannot end it.
		Plan: wire.Plan{CgroupVersion: version, LimitSec: int(o.limit.Seconds()) + 30},
	}
	if o.console {
		g.Console = log
	}
	if strings.Contains(o.kernel, "/") {
		g.Vmlinux = o.kernel
		_, err := os.Stat(o.kernel)
		return g, err
	}
	line, err := fetch.FindLine(o.kernel)
	if err != nil {
		return boot.Guest{}, err
	}
	if version == 1 && !line.CpusetV1 {
		return boot.Guest{}, errors.New("--cgroup v1: kernel " + line.Name + " is built without v1 cpuset; use --kernel 6.1")
	}
	kernel, err := cache.Kernel(ctx, line)
	g.Vmlinux, g.Modules = kernel.Vmlinux, kernel.Modules
	switch {
	case err != nil:
		return g, err
	case o.packages != nil:
		disk, err := cache.Packages(ctx, line, kernel, o.packages)
		g.Node = &boot.Node{Disk: disk.Disk, Modules: disk.Modules}
		g.Plan.Packages = true
		return g, err
	case !o.node:
		return g, nil
	}
	node, err := cache.Node(ctx, line, kernel)
	g.Node = &boot.Node{Disk: node.Disk, Modules: node.Modules, Parameters: o.append}
	g.Plan.Node, g.BootLimit = true, nodeBootLimit
	return g, err
}

// nodeBootLimit is five times what systemd takes to start its services on emulated CPUs.
const nodeBootLimit = 10 * time.Minute
