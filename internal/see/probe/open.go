package probe

import (
	"errors"
	"fmt"
	"io/fs"
	"math/bits"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/rlimit"
	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/kernel/lockdown"
)

// threadSlotBits is the logarithm of the number of thread slots: 1 MiB, enough for the threads of a large host with few
// collisions.
var threadSlotBits = uint32(14)

// heldPerCPU is HELD_PER_CPU of bpf/probe.h.
const heldPerCPU = 32

// Probe is the programs in the kernel. Several goroutines may call its methods.
type Probe struct {
	options Options
	kernel  kernel
	coll    *ebpf.Collection
	cpus    *ebpf.Memory
	ncpu    int
	mark    string // Features().Mark
	measure func(Work, func())

	mu         sync.Mutex
	links      map[string]link.Link
	slots      slots
	fresh      []uint64 // watched, but counting has not begun
	beginTimer *time.Timer
	// beginErr is the error of the last attempt to begin counting in fresh; nil without an attempt.
	beginErr error
	triedAt  time.Time
	serial   uint32
	stats    interface{ Close() error }
	costs    map[string]Cost // when EnableCosts was called
	// rowsLost is the kernel's count at the last read.
	rowsLost uint64
	// inexact counts reads that found no moment at which a container's histograms were exact.
	inexact uint64
	closed  bool
	reading *reading

	recording sync.Mutex
	rowing    sync.Mutex
}

// always are the programs attached from the beginning; false means only where wanted is counted.
var always = map[string]bool{
	bpfProgSchedSwitch: true, bpfProgHrtimerExpireEntry: true, bpfProgCgroupRmdir: true,
	bpfProgSchedWakeup: false, bpfProgSchedWakeupNew: false, bpfProgHrtimerExpireExit: false,
}

// whileRecording are programs attached only then.
var whileRecording = []string{bpfProgSchedWaking, bpfProgSchedMigrateTask, bpfProgTaskRename}

// onSockets are further programs attached only then. A kernel may lack or refuse them: a recording goes on without
// them.
var onSockets = []string{bpfProgSkDataReady, bpfProgSockRecvLength, bpfProgSockSendLength, bpfProgNetDevQueue}

// Open loads and attaches what this kernel has. If the kernel refuses, the error is an *Unavailable.
func Open(o Options) (*Probe, error) {
	if o.Containers == 0 {
		o.Containers = defaultContainers
	}
	if o.Containers < 1 || o.Containers > MaxContainers {
		return nil, fmt.Errorf("probe: %d containers; want 1 to %d", o.Containers, MaxContainers)
	}
	if o.RingBytes == 0 {
		o.RingBytes = 8 << 20
	}
	if o.RingBytes < os.Getpagesize() || o.RingBytes > 1<<30 || bits.OnesCount(uint(o.RingBytes)) != 1 {
		return nil, fmt.Errorf("probe: a ring of %d bytes; want a power of two from a page to 1 GiB", o.RingBytes)
	}
	if o.Proc == "" {
		o.Proc = "/proc"
	}
	p := &Probe{options: o, links: map[string]link.Link{}}
	p.Measure(func(_ Work, work func()) { work() })
	if err := p.open(); err != nil {
		p.Close()
		return nil, err
	}
	// The kernel's types and the programs took 10 MB, which an idle process would otherwise hold for minutes.
	debug.FreeOSMemory()
	return p, nil
}

// Measure has run do the work of the probe's own goroutines from now on, so that the caller can measure it. Work on a
// recording takes as long as the recording, and mostly waits. Measure is called before PeriodRows and Record.
func (p *Probe) Measure(run func(w Work, work func())) { p.measure = run }

func (p *Probe) open() error {
	cache := btf.NewCache() // one for all programs, or the kernel's types are read twice
	types, err := cache.Kernel()
	if err != nil {
		return &Unavailable{"tell its types (BTF)", err, "a kernel with CONFIG_DEBUG_INFO_BTF=y is needed"}
	}
	if p.kernel, err = readKernel(types); err != nil {
		return &Unavailable{"tell its types (BTF)", err, "a kernel with CONFIG_DEBUG_INFO_BTF=y is needed"}
	}
	if p.ncpu, err = ebpf.PossibleCPU(); err != nil {
		return fmt.Errorf("probe: %w", err)
	}
	if err := rlimit.RemoveMemlock(); err != nil {
		return refused("lock memory for BPF", err)
	}
	spec, err := loadBpf()
	if err != nil {
		return fmt.Errorf("probe: %w", err)
	}
	if err := p.prepare(spec); err != nil {
		return fmt.Errorf("probe: %w", err)
	}
	p.coll, err = ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{Cache: cache})
	if err != nil {
		return refused("load the probe's BPF programs", err)
	}
	if p.cpus, err = p.coll.Maps[bpfMapCpus].Memory(); err != nil {
		return refused("map memory of a BPF map", err)
	}
	p.slots, p.reading, p.mark = newSlots(p.options.Containers), newReading(p.ncpu), p.Features().Mark
	for name := range p.coll.Programs {
		if _, ok := always[name]; ok || name == bpfProgTaskNewtask {
			if err := p.attach(name); err != nil {
				return err
			}
		}
	}
	return nil
}

// prepare sizes the maps and leaves out programs that this kernel or these options cannot use.
func (p *Probe) prepare(spec *ebpf.CollectionSpec) error {
	n, threadSlots := uint32(p.options.Containers), threadSlotBits
	if p.options.WidthOnly {
		threadSlots = 1 // no thread uses one
	}
	for name, size := range map[string]uint32{
		bpfMapContainers: n, bpfMapUsages: n, bpfMapWatched: n,
		bpfMapThreadSlots: 1 << threadSlots, bpfMapCpus: uint32(p.ncpu), bpfMapHeld: uint32(p.ncpu * heldPerCPU),
	} {
		spec.Maps[name].MaxEntries = size
	}
	if err := spec.Variables[bpfVarThreadSlotShift].Set(64 - threadSlots); err != nil {
		return err
	}
	wanted := !p.options.WidthOnly
	for name, value := range map[string]bool{
		bpfVarWantedOn: wanted, bpfVarCreateOn: p.kernel.create,
		bpfVarMarkTask: p.kernel.markTask, bpfVarMarkQueue: !p.kernel.markTask && p.kernel.markQueue,
	} {
		var v uint32
		if value {
			v = 1
		}
		if err := spec.Variables[name].Set(v); err != nil {
			return err
		}
	}
	for name := range spec.Programs {
		drop := false
		switch name {
		case bpfProgHrtimerExpireEntry, bpfProgHrtimerExpireExit:
			drop = !p.kernel.timers || !wanted && name == bpfProgHrtimerExpireExit
		case bpfProgSkDataReady, bpfProgSockRecvLength, bpfProgSockSendLength, bpfProgNetDevQueue:
			drop = !wanted || !p.kernel.sockets
		case bpfProgTaskNewtask:
			drop = p.kernel.create || !wanted
		case bpfProgSchedSwitch, bpfProgCgroupRmdir, bpfProgSyncCpu:
		default:
			drop = !wanted
		}
		if drop {
			delete(spec.Programs, name)
		}
	}
	if spec.Programs[bpfProgSkDataReady] == nil {
		for _, name := range []string{bpfMapConnections, bpfMapDatagramSockets} {
			delete(spec.Maps, name)
		}
	}
	return nil
}

// attach attaches a program once.
func (p *Probe) attach(name string) error {
	if p.links[name] != nil {
		return nil
	}
	l, err := link.AttachTracing(link.TracingOptions{Program: p.coll.Programs[name], AttachType: ebpf.AttachTraceRawTp})
	if err != nil {
		return refused("attach the BPF program "+name, err)
	}
	p.links[name] = l
	return nil
}

// detach detaches programs that are attached.
func (p *Probe) detach(names ...string) error {
	var failed error
	for _, name := range names {
		if l := p.links[name]; l != nil {
			failed = errors.Join(failed, l.Close())
			delete(p.links, name)
		}
	}
	return failed
}

// privileged reports whether we have CAP_SYS_ADMIN, or CAP_BPF with CAP_PERFMON.
func privileged() bool {
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var have [2]unix.CapUserData
	if err := unix.Capget(&head, &have[0]); err != nil {
		return true // unknown, so not the named cause
	}
	has := func(capability uint) bool { return have[capability/32].Effective&(1<<(capability%32)) != 0 }
	return has(unix.CAP_SYS_ADMIN) || has(unix.CAP_BPF) && has(unix.CAP_PERFMON)
}

// refused makes an *Unavailable of the kernel's error.
func refused(what string, err error) error {
	way := "see whether another tool's BPF programs load on this kernel (bpftool feature), and report this"
	switch {
	case errors.Is(err, fs.ErrPermission) || !privileged():
		way = "run as root, or with CAP_BPF and CAP_PERFMON, and with CAP_SYSLOG where kernel.perf_event_paranoid is " +
			"above 1; in a container, outside it or privileged; a kernel in lockdown mode refuses always"
	case lockdown.Refused(err):
		way = lockdown.Way
	case strings.Contains(err.Error(), "kptr_restrict"): // cilium/ebpf has no error of its own for it
		way = "let it see the kernel's symbols: run with CAP_SYSLOG, and sysctl kernel.kptr_restrict=1"
	case errors.Is(err, ebpf.ErrNotSupported):
		way = "a kernel of 5.15 or later with BPF tracing is needed"
	}
	return &Unavailable{what, err, way}
}

// Close detaches and unloads everything. A running recording must have ended before.
func (p *Probe) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil
	}
	p.closed = true
	if p.beginTimer != nil {
		p.beginTimer.Stop()
	}
	var failed error
	for _, l := range p.links {
		failed = errors.Join(failed, l.Close())
	}
	if p.stats != nil {
		failed = errors.Join(failed, p.stats.Close())
	}
	if p.coll != nil {
		p.coll.Close()
	}
	return failed
}
