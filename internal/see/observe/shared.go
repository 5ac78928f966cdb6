package observe

import (
	"bytes"
	"errors"
	"time"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/topology"
)

// cpusetFile is one cgroup's effective CPU list; many containers may share it.
type cpusetFile struct {
	handle
	dir   string
	round uint64
	raw   []byte
	set   cpuset.CPUSet
	err   error
}

// usageFile is one cgroup's cpuacct.usage.
type usageFile struct {
	handle
	dir   string
	round uint64
	usage time.Duration
	err   error
}

// fillCPUs reads the CPUs that a container may run on from its cpuset cgroup. If that has no file (v2 without the
// controller), it reads the nearest ancestor that has one. Without any it takes all online CPUs. Of a container that
// rests it takes the list of the last reading, up to turnRounds old.
func (s *Sampler) fillCPUs(dst *Sample, path string, rests bool) {
	online := s.onlineCPUs()
	dst.online = online.Size()
	v, ok := s.host.Version(cgroup.CPUSet)
	for ok && path != "" {
		f := s.cpusetFile(path, v, rests)
		if f == nil {
			break
		}
		if f.err == nil && !f.set.IsEmpty() {
			dst.CPUs = f.set
			return
		}
		if errors.Is(f.err, errGone) {
			dst.counterpartGone = true // its tasks were moved up, or its path changed
		} else if f.err != nil && !errors.Is(f.err, errNoFile) {
			dst.missing("cpus: cpuset " + path + ": " + f.err.Error())
			return
		}
		if path == "/" || path == s.host.Top(cgroup.CPUSet) {
			break
		}
		path = cgroup.Parent(path)
	}
	dst.CPUs = online
	if dst.CPUs.IsEmpty() {
		dst.missing("cpus: neither a cpuset nor the list of online CPUs can be read")
	}
}

func (s *Sampler) cpusetFile(path string, v cgroup.Version, rests bool) *cpusetFile {
	f, ok := s.cpusets[path]
	if !ok {
		dir := s.host.Dir(cgroup.CPUSet, path)
		if dir == "" {
			return nil
		}
		f = &cpusetFile{dir: dir}
		s.cpusets[path] = f
	}
	read := f.raw != nil && f.err == nil
	if f.round == s.round || rests && read {
		f.round = s.round
		return f
	}
	s.readCPUs(f, cgroup.EffectiveCPUsFile(v))
	return f
}

// readCPUs reads a list of CPUs for this round, and parses it only if it changed.
func (s *Sampler) readCPUs(f *cpusetFile, name string) {
	f.round = s.round
	text, err := s.files.read(&f.handle, f.dir, name)
	if err == nil && (f.raw == nil || f.err != nil || !bytes.Equal(f.raw, text)) {
		f.raw = append(f.raw[:0], text...)
		f.set, err = topology.ParseList(string(bytes.TrimSpace(text)))
	}
	f.err = err
}

// fillUsage reads the CPU time used: from cpu.stat on v2, from the cpuacct cgroup on v1. If that cgroup holds other
// tasks too, fillUsage adds up the threads.
func (s *Sampler) fillUsage(dst *Sample, own *level, g cgroup.Group, rests bool) {
	v, ok := s.host.Version(cgroup.CPUAcct)
	switch {
	case own.statErr == nil && own.counters.HasUsage:
		dst.Usage, dst.HasUsage = own.counters.Usage, true
		return
	case ok && v == cgroup.V2:
		return // cpu.stat is unreadable, which a note says already
	case !ok || g.CPUAcctPath == "" || inherits(g.Path, g.CPUAcctPath):
		s.fillUsageByThreads(dst, own, rests)
		return
	}
	f := s.usageFile(g.CPUAcctPath, rests)
	if f.err != nil {
		dst.counterpartGone = dst.counterpartGone || errors.Is(f.err, errGone)
		dst.missing(note(cgroup.FileUsage, f.err))
		return
	}
	dst.Usage, dst.HasUsage = f.usage, true
}

// noUsage starts the notes for containers whose threads are read because no file has their sum.
const noUsage = "used CPUs: it has no cpuacct cgroup of its own: "

func (s *Sampler) fillUsageByThreads(dst *Sample, own *level, rests bool) {
	used, err := s.addThreads(own, rests)
	if err != nil {
		dst.missing(noUsage + err.Error())
		return
	}
	dst.Usage, dst.HasUsage = used, true
	dst.missing(noUsage + "the sum of its threads, without threads that ended meanwhile")
	if s.hiddenUnknown {
		dst.missing(noUsage + "cannot determine whether this is the host's PID namespace; in another one the sum misses threads")
	}
}

func (s *Sampler) usageFile(path string, rests bool) *usageFile {
	f, ok := s.usages[path]
	if !ok {
		f = &usageFile{dir: s.host.Dir(cgroup.CPUAcct, path)}
		s.usages[path] = f
	}
	read := f.inode != 0 && f.err == nil
	if f.round == s.round || rests && read {
		f.round = s.round
		return f
	}
	f.round = s.round
	text, err := s.files.read(&f.handle, f.dir, cgroup.FileUsage)
	if err == nil {
		f.usage, err = cgroup.ParseUsage(text)
	}
	f.err = err
	return f
}

// onlineCPUs are the machine's in this round; empty if the kernel's list cannot be read.
func (s *Sampler) onlineCPUs() cpuset.CPUSet {
	if !s.opt.Online.IsEmpty() {
		return s.opt.Online
	}
	f := &s.online
	if f.round != s.round {
		s.readCPUs(f, "online")
	}
	if f.err != nil {
		return cpuset.New()
	}
	return f.set
}
