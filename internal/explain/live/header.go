package live

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/explain/threadpool"
	"github.com/unthrottle/unthrottle/internal/explain/threadpool/identify"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/features"
	"github.com/unthrottle/unthrottle/internal/kernel/schedpolicy/schedhost"
	"github.com/unthrottle/unthrottle/internal/see/observe"
	"github.com/unthrottle/unthrottle/internal/see/recording"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/topology"
)

// maxProcesses bounds how many of a container's processes we read.
const maxProcesses = 64

// maxNotes bounds the notes about missing facts.
const maxNotes = 64

// complete adds the facts of the host, the cgroups and the processes to a recording's header, which no event
// has. A missing fact stays empty, with a note. It never ends the recording.
func (o Options) complete(h *recording.Header) {
	o.completeHost(h)
	o.completeLevels(h)
	o.completeProcesses(h)
	o.completeHeld(h)
	if len(h.NotMeasured) > maxNotes {
		h.NotMeasured = append(h.NotMeasured[:maxNotes], fmt.Sprintf("and %d other things", len(h.NotMeasured)-maxNotes))
	}
}

func (o Options) completeHost(h *recording.Header) {
	k := features.ReadScheduler(o.Root)
	if h.Host.Kernel == "" {
		h.Host.Kernel = k.Release
	}
	if h.Host.HZ == nil {
		h.Host.HZ = k.HZ
	}
	if h.Host.SliceNS == nil && k.SliceMicroseconds != nil {
		h.Host.SliceNS = new(*k.SliceMicroseconds * 1000)
	}
	h.Host.SchedExt = k.SchedExtScheduler
	if h.Host.Machine == nil {
		if sys, err := fs.Sub(o.Root, "sys"); err == nil {
			if m, err := topology.Read(sys); err == nil {
				h.Host.Machine = &m
			} else {
				h.NotMeasured = append(h.NotMeasured, "topology: "+err.Error())
			}
		}
	}
	if h.Host.CPUs.IsEmpty() && h.Host.Machine != nil {
		h.Host.CPUs = h.Host.Machine.Online()
	}
}

func (o Options) completeLevels(h *recording.Header) {
	if o.Host == nil {
		return
	}
	levels, below, notes := o.readLevels()
	h.NotMeasured = append(h.NotMeasured, notes...)
	if len(h.Levels) == 0 {
		h.Levels = levels
	}
	if len(h.SubLevels) == 0 {
		h.SubLevels = below
	}
	for i := range h.Levels {
		l := &h.Levels[i]
		if l.Weight == 0 && l.Path != o.Host.Top(cgroup.CPU) {
			if shares, err := cgroup.ReadShares(o.Host, l.Path); err == nil {
				l.Weight = int(cgroup.WeightOfShares(shares))
			} else if !errors.Is(err, cgroup.ErrNoFile) {
				h.NotMeasured = append(h.NotMeasured, "weight: "+err.Error())
			}
		}
	}
	if h.CPUsAllowed.IsEmpty() && o.Target.Group.CPUSetPath != "" {
		if _, effective, err := cgroup.CPUs(o.Host, o.Target.Group.CPUSetPath); err == nil {
			h.CPUsAllowed = effective
			if !h.Host.CPUs.IsEmpty() {
				h.CPUsAllowed = effective.Intersection(h.Host.CPUs)
			}
		} else {
			h.NotMeasured = append(h.NotMeasured, "allowed CPUs: "+err.Error())
		}
	}
	if h.CPUsAllowed.IsEmpty() {
		h.CPUsAllowed = h.Host.CPUs
	}
}

// completeHeld adds what holds threads back beside quotas: the freezer, and the limit of real-time threads.
func (o Options) completeHeld(h *recording.Header) {
	if o.Host == nil {
		return
	}
	var err error
	if h.Target.Frozen, err = o.Host.Frozen(o.Target.Group.Path); err != nil {
		h.NotMeasured = append(h.NotMeasured, "frozen: "+err.Error())
	}
	policies, realtime := schedhost.New("/proc"), false
	for i := range h.Threads {
		p, err := policies.Read(int(h.Threads[i].TID))
		if err == nil && p.BeforeOthers() { // a thread that ended meanwhile has none
			h.Threads[i].Realtime, realtime = p.Class, true
		}
	}
	for i := range h.Levels {
		if l := &h.Levels[i]; realtime {
			limit, limited, err := cgroup.ReadRTLimit(o.Host, l.Path)
			if err != nil {
				h.NotMeasured = append(h.NotMeasured, "limit of real-time threads: "+err.Error())
			}
			if limited {
				l.RTRuntimeNS, l.RTPeriodNS = new(limit.Runtime.Nanoseconds()), limit.Period.Nanoseconds()
			}
		}
	}
}

// readLevels reads the target's limit and those of its ancestors, and the quotas of cgroups in it. notes say what was not readable.
func (o Options) readLevels() (levels, below []recording.Level, notes []string) {
	recorded := func(all []cgroup.Level) (found []recording.Level) {
		for _, l := range all {
			level := observe.RecordingLevel(l)
			if id, err := o.Host.ID(cgroup.CPU, l.Path); err == nil {
				level.ID = id
			}
			found = append(found, level)
		}
		return found
	}
	own, err := cgroup.Levels(o.Host, o.Target.Group.Path)
	if err != nil {
		notes = append(notes, "limits: "+err.Error())
	}
	inside, whole := cgroup.QuotasBelow(o.Host, o.Target.Group.Path, nil)
	if !whole {
		notes = append(notes, "limits: not all of the cgroups below it were read")
	}
	return recorded(own), recorded(inside), notes
}

// ofOneName is how many threads of one name that the kernel may have cut make it likely that it is the beginning of several names.
const ofOneName = 4

// cutNames says which names of a JVM's threads the kernel has cut, so that pools may be mixed. The JVM knows them
// whole, and is asked only if the user wants
// it.
func (o *Options) cutNames(h *recording.Header) []string {
	if o.AskJVM {
		return nil
	}
	n, cut := map[string]int{}, []string{}
	for i := range h.Threads {
		t := &h.Threads[i]
		if len(t.Comm) != threadpool.CommBytes || !isJVM(o.processes[t.TGID]) {
			continue
		}
		if n[t.Comm]++; n[t.Comm] == ofOneName {
			cut = append(cut, t.Comm)
		}
	}
	if len(cut) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("whole names of threads: the kernel cuts %s, so that pools may be mixed; --ask-jvm "+
		"asks the JVM for them", text.Names(cut))}
}

// lookAtProcesses reads the facts of each process of the target that show the library of a pool. It runs
// before the recording, which would otherwise show its work.
func (o *Options) lookAtProcesses() {
	o.processes, o.said = map[uint32]threadpool.Process{}, said{map[uint32]string{}, map[uint32]string{}}
	if proc, err := fs.Sub(o.Root, "proc"); err == nil {
		if age, ok := container.Age(o.Host, proc, o.Target); ok {
			o.age, o.agedAt = &age, time.Now()
		}
	}
	walk := func(path string) error {
		pids, err := o.Host.Members(path)
		if err != nil {
			return nil // gone meanwhile
		}
		for _, pid := range pids {
			if len(o.processes) == maxProcesses {
				o.notes = append(o.notes, fmt.Sprintf("processes: only the first %d were read", maxProcesses))
				return fs.SkipAll
			}
			p, err := identify.Look(pid)
			if errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrProcessDone) {
				continue // it ended meanwhile
			}
			if err != nil {
				o.notes = append(o.notes, fmt.Sprintf("process %d: %v", pid, err))
			}
			p.Unnamed = identify.Owner(pid, p.Comm)
			if p.JVM, err = identify.PerfData(pid); err != nil {
				o.notes = append(o.notes, err.Error())
			}
			own, err := identify.Budget(pid)
			if err != nil {
				o.notes = append(o.notes, err.Error())
			}
			if own != nil {
				p.Budget = &own.Budget
				maps.Copy(o.said.names, own.Names)
				maps.Copy(o.said.classes, own.Classes)
			}
			o.processes[uint32(pid)] = p
		}
		return nil
	}
	if err := o.Host.Walk(o.Target.Group.Path, walk); err != nil && !errors.Is(err, cgroup.ErrNoCgroup) {
		o.notes = append(o.notes, "processes: "+err.Error())
	}
}

// completeProcesses adds the facts of the processes.
func (o Options) completeProcesses(h *recording.Header) {
	h.NotMeasured = append(append(h.NotMeasured, o.notes...), o.cutNames(h)...)
	if h.Target.AgeNS == nil && o.age != nil {
		// It was read before the recording, since when the target's processes were looked at: with many of them, or on a full host,
		// that takes as long as a start.
		h.Target.AgeNS = new((*o.age + max(0, h.Created.Sub(o.agedAt))).Nanoseconds())
	}
	if len(h.Processes) > 0 {
		return
	}
	for _, pid := range slices.Sorted(maps.Keys(o.processes)) {
		p := o.processes[pid]
		h.Processes = append(h.Processes, recording.Process{TGID: pid, Comm: p.Comm, Exe: p.Exe, Cmdline: p.Cmdline,
			Libraries: p.Libraries, Unnamed: p.Unnamed, Go: p.Go, Holds: p.Holds, Budget: (*recording.Budget)(p.Budget)})
	}
}

// processesOf returns the processes for the pool table: as read from /proc, else as the recording has them. later are
// those that began during the recording.
func processesOf(h *recording.Header, later []recording.Process, looked map[uint32]threadpool.Process) map[uint32]threadpool.Process {
	all := map[uint32]threadpool.Process{}
	for _, p := range slices.Concat(h.Processes, later) {
		all[p.TGID] = threadpool.Process{TGID: int(p.TGID), Comm: p.Comm, Exe: p.Exe, Cmdline: p.Cmdline,
			Libraries: p.Libraries, Unnamed: p.Unnamed, Go: p.Go, Holds: p.Holds, Budget: (*threadpool.Budget)(p.Budget)}
	}
	for _, t := range h.Threads {
		if p, ok := all[t.TGID]; ok && t.TID == t.TGID && p.Comm == "" {
			p.Comm = t.Comm
			all[t.TGID] = p
		}
	}
	for pid, p := range looked {
		all[pid] = p
	}
	return all
}
