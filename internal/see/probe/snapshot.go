package probe

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/cilium/ebpf"
	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/procfs"
	"github.com/unthrottle/unthrottle/internal/see/recording"
	"github.com/unthrottle/unthrottle/topology"
)

// snapshot has the counters at one end of a recording.
type snapshot struct {
	counts Counts
	wall   time.Time
	// stat are the target's own counters, others' by slot number + 1; nil means not measured.
	stat   *cgroup.Stat
	others map[uint32]cgroup.Stat
	cpus   map[int]procfs.Times // nil: not known
	// troubles are the probe's own, with their counts.
	troubles map[string]uint64
}

// snapshot reads the current counters. It leaves out unreadable ones.
func (r *recorder) snapshot() (snapshot, error) {
	s := snapshot{others: map[uint32]cgroup.Stat{}}
	if h := r.o.Host; h != nil {
		for _, u := range r.used[1:] {
			if st, ok := bandwidthStat(h, u.Path); ok {
				s.others[u.number+1] = st
			}
		}
		if g, err := h.Group(r.target.Path); err == nil {
			if st, err := cgroup.ReadStat(h, g); err == nil {
				s.stat = &st
			}
		}
	}
	var err error
	if s.counts, err = r.p.read(r.target); err != nil {
		return s, err
	}
	s.wall = time.Now()
	s.troubles = r.p.troubles()
	if stat, err := procfs.ReadStat(os.DirFS(r.p.options.Proc)); err == nil {
		s.cpus = stat.CPUs
	}
	return s, nil
}

// bandwidthStat reads the periods of a cgroup's own quota. ok is false without a quota.
func bandwidthStat(h *cgroup.Host, path string) (cgroup.Stat, bool) {
	v, ok := h.Version(cgroup.CPU)
	if !ok || path == "" {
		return cgroup.Stat{}, false
	}
	text, err := h.Read(cgroup.CPU, path, cgroup.FileStat)
	if err != nil {
		return cgroup.Stat{}, false
	}
	s, err := cgroup.ParseStat(v, text)
	return s, err == nil && s.Bandwidth
}

// upTo writes the gain between two snapshots into a footer. A neighbour's Owner is its slot's number + 1.
func (s snapshot) upTo(end snapshot, f *recording.Footer, used []*slot) {
	f.WidthNS = gained(end.counts.WidthNS, s.counts.WidthNS)
	f.WantedNS = gained(end.counts.WantedNS, s.counts.WantedNS)
	for _, what := range slices.Sorted(maps.Keys(end.troubles)) {
		if n := end.troubles[what] - s.troubles[what]; n > 0 && what != tooManyCgroups {
			f.Troubles = append(f.Troubles, fmt.Sprintf("%s (%d)", what, n))
		}
	}
	f.LateNS = int64(end.counts.LateNS - s.counts.LateNS)
	if end.counts.StoppedNS != nil && s.counts.StoppedNS != nil {
		f.StoppedNS = new(*end.counts.StoppedNS - *s.counts.StoppedNS)
		f.StoppedIntervals = new(*end.counts.StoppedIntervals - *s.counts.StoppedIntervals)
	}
	f.OnCPUNS = map[int]int64{}
	for cpu, ns := range end.counts.OnCPU {
		if ns -= s.counts.OnCPU[cpu]; ns > 0 {
			f.OnCPUNS[cpu] = ns
		}
	}
	if s.cpus != nil && end.cpus != nil {
		f.StealNS = map[int]int64{}
		for cpu, now := range end.cpus {
			if was, ok := s.cpus[cpu]; ok {
				f.StealNS[cpu] = max(now.Since(was).Steal.Nanoseconds(), 0)
			}
		}
	}
	if s.stat != nil && end.stat != nil {
		if s.stat.Usage != nil && end.stat.Usage != nil && *end.stat.Usage >= *s.stat.Usage {
			f.UsageNS = new(int64(*end.stat.Usage - *s.stat.Usage))
		}
		if end.stat.Bandwidth && goesOn(*s.stat, *end.stat) {
			f.Periods = new(end.stat.Periods - s.stat.Periods)
			f.ThrottledPeriods = new(end.stat.ThrottledPeriods - s.stat.ThrottledPeriods)
			f.ThrottledNS = new(int64(end.stat.Throttled - s.stat.Throttled))
		}
	}
	for _, u := range used[1:] {
		n := recording.Neighbour{Owner: u.number + 1, Name: u.Name, Path: u.Path}
		was, before := s.others[u.number+1]
		is, after := end.others[u.number+1]
		if before && after && is.Periods > was.Periods && goesOn(was, is) {
			n.Periods = new(is.Periods - was.Periods)
			n.ThrottledPeriods = new(is.ThrottledPeriods - was.ThrottledPeriods)
		}
		f.Neighbours = append(f.Neighbours, n)
	}
}

// goesOn tells whether counters follow others. Those of a cgroup that was made anew under the same path do not, and may be lower.
func goesOn(was, is cgroup.Stat) bool {
	return is.Periods >= was.Periods && is.ThrottledPeriods >= was.ThrottledPeriods && is.Throttled >= was.Throttled
}

func gained(end, start []int64) []int64 {
	if end == nil {
		return nil
	}
	out := make([]int64, len(end))
	for i := range end {
		out[i] = end[i]
		if i < len(start) {
			out[i] -= start[i]
		}
	}
	return out
}

func onlineCPUs() (cpuset.CPUSet, error) {
	text, err := os.ReadFile("/sys/devices/system/cpu/online")
	if err != nil {
		return cpuset.CPUSet{}, err
	}
	return topology.ParseList(strings.TrimSpace(string(text)))
}

// lost returns how many events had no room since the probe was opened, on all CPUs, and how many switches had no event.
func (p *Probe) lost() (sum, unseen uint64, err error) {
	for cpu := range p.ncpu {
		var c bpfCpu
		if err := p.coll.Maps[bpfMapCpus].Lookup(uint32(cpu), &c); err != nil {
			return 0, 0, fmt.Errorf("read lost events: %w", err)
		}
		sum += c.Lost
		unseen += uint64(c.Unseen)
	}
	return sum, unseen, nil
}

// fillAncestors names the levels above the target; the recording has their periods too.
func (p *Probe) fillAncestors(o RecordOptions) error {
	m := p.coll.Maps[bpfMapAncestors]
	if err := empty[uint64, uint8](m); err != nil {
		return err
	}
	if o.Host == nil {
		return nil
	}
	top := o.Host.Top(cgroup.CPU)
	for path := o.Target.Path; path != top && path != "/" && path != ""; {
		path = cgroup.Parent(path)
		id, err := o.Host.ID(cgroup.CPU, path)
		if err != nil {
			return nil // gone: the recording will be empty, which is no failure
		}
		if err := m.Put(id, uint8(1)); err != nil {
			return fmt.Errorf("the levels above %q: %w", o.Target.Path, err)
		}
	}
	return nil
}

// empty deletes all entries of a map.
func empty[K, V any](m *ebpf.Map) error {
	var (
		keys []K
		key  K
		val  V
	)
	for it := m.Iterate(); it.Next(&key, &val); {
		keys = append(keys, key)
	}
	for _, k := range keys {
		if err := m.Delete(k); err != nil {
			return err
		}
	}
	return nil
}
