package lab

import (
	"fmt"
	"strings"

	"github.com/unthrottle/unthrottle/test/lab/wire"
)

// Files are QEMU's files, as paths that it can open.
type Files struct {
	Vmlinux, Initramfs string
	DataDirs           []string // QEMU's firmware
	Frames             string   // gets the guest's frames
	// Disks are images of file systems, the root first. The guest may write to that one, and QEMU forgets it.
	// Without disks the guest's root is its initramfs.
	Disks []string
	// Node: the root's own init boots, and may reboot.
	Node bool
	// Parameters are the kernel's, added to ours.
	Parameters []string
}

// kernelParameters shorten a boot without KVM. Each saving was measured with 16 CPUs on two busy ones:
func kernelParameters() []string {
	return []string{
		"console=ttyS0", "quiet", "panic=-1", // a panic ends QEMU (-no-reboot)
		"cpuhp.parallel=0",               // parallel bring-up spins on all CPUs: 34 s instead of 24
		"lpj=10000000",                   // no calibration of the delay loop: 3 s, and wrong
		"tsc=reliable", "no_timer_check", // no watchdog against a clock that really stops
		"nowatchdog", "rcupdate.rcu_cpu_stall_suppress=1", // a CPU that the host stops is no fault
		"damon_stat.enabled=0", // its thread (Linux 6.17 and later) took 42 % of an emulated CPU
		"mitigations=off", "nokaslr", "rodata=off", "init_on_alloc=0",
		"audit=0", "cryptomgr.notests", "random.trust_cpu=on",
	}
}

// nodeParameters are a node's: its own security module, and no login on the console, which would hang it up.
func nodeParameters() []string {
	return []string{"apparmor=1", "security=apparmor", "systemd.unit=multi-user.target", "systemd.show_status=0",
		"systemd.mask=serial-getty@ttyS0.service", "systemd.mask=systemd-networkd-wait-online.service"}
}

// Arguments returns the command line of qemu-system-x86_64 for a machine. console is QEMU's chardev for the serial
// console, such as "stdio,signal=off".
func Arguments(m Machine, f Files, console string) []string {
	var args []string
	add := func(a ...string) { args = append(args, a...) }
	for _, dir := range f.DataDirs {
		add("-L", dir)
	}
	machine := "q35"
	smp := fmt.Sprintf("%d,sockets=%d,cores=%d,threads=%d", m.CPUs(), m.Sockets, m.CoresPerL3, m.ThreadsPerCPU)
	if m.L3sPerSocket > 1 {
		machine += ",smp-cache.0.cache=l3,smp-cache.0.topology=module"
		smp = fmt.Sprintf("%d,sockets=%d,dies=1,modules=%d,cores=%d,threads=%d", m.CPUs(), m.Sockets, m.L3sPerSocket,
			m.CoresPerL3, m.ThreadsPerCPU)
	}
	add("-M", machine, "-accel", "tcg,thread=multi")
	// level=0x14 hides leaf 0x1f: with modules QEMU 10.0 fails an assertion (encode_topo_cpuid1f) when it fills that
	// in.
	add("-cpu", "Icelake-Server,l3-cache=on,level=0x14")
	add("-smp", smp)
	add("-m", fmt.Sprintf("%dM", m.MemoryMiB))
	if nodes := m.NUMANodes(); nodes > 1 {
		for n := range nodes {
			add("-object", fmt.Sprintf("memory-backend-ram,id=m%d,size=%dM", n, m.nodeMiB(n)))
			add("-numa", fmt.Sprintf("node,nodeid=%d,memdev=m%d", n, n))
			add("-numa", fmt.Sprintf("cpu,node-id=%d,socket-id=%d", n, n))
		}
		for a := range nodes {
			for b := a + 1; b < nodes; b++ {
				add("-numa", fmt.Sprintf("dist,src=%d,dst=%d,val=21", a, b))
			}
		}
	}
	parameters := append(kernelParameters(), "apparmor=0")
	if f.Node {
		parameters = append(kernelParameters(), nodeParameters()...)
	} else {
		add("-no-reboot")
	}
	add("-kernel", f.Vmlinux, "-initrd", f.Initramfs, "-append", strings.Join(append(parameters, f.Parameters...), " "))
	add("-nodefaults", "-no-user-config", "-display", "none")
	for i, disk := range f.Disks {
		rights := "snapshot=on"
		if i > 0 {
			rights = "readonly=on"
		}
		add("-drive", "if=virtio,format=raw,"+rights+",file="+disk)
	}
	add("-chardev", console+",id=console", "-serial", "chardev:console")
	add("-device", "virtio-serial-pci", "-chardev", "file,id=frames,path="+f.Frames,
		"-device", "virtserialport,chardev=frames,name="+wire.PortName)
	return args
}

// nodeMiB returns the memory of a node: equal parts, the rest on the last.
func (m Machine) nodeMiB(node int) int {
	nodes := m.NUMANodes()
	if node == nodes-1 {
		return m.MemoryMiB - (nodes-1)*(m.MemoryMiB/nodes)
	}
	return m.MemoryMiB / nodes
}
