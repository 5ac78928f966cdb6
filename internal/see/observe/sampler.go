package observe

import (
	"context"
	"errors"
	"os"
	"time"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
)

// Options configure a Sampler. The zero value suits a real host.
type Options struct {
	// FileLimitShare is a share of the soft limit on open files (RLIMIT_NOFILE). Above it the Sampler closes handles
	// between samples. 0 means 0.8.
	FileLimitShare float64
	// Now is the clock; nil means time.Now. Each container's readings carry the time at which they were made.
	Now func() time.Time
	// Online are the machine's CPUs, for containers without a cpuset. Empty means that the Sampler reads them from
	// sysfs, once a round: CPUs go offline and come back.
	Online cpuset.CPUSet
	// Proc is the path of the proc file system; "" means "/proc".
	Proc string
	// HotFor is how long Poll reads a cgroup after it was last stopped; 0 means 10 s.
	HotFor time.Duration
	// Probe counts width, wanted and exact stopped time; nil means that they are not measured.
	Probe Widths
	// identity distinguishes the files of a cgroup from those of a later one under its path; nil means by inode.
	identity func(fd int, name string) (uint64, error)
	// onlineDir has the list of online CPUs; "" means sysfs's.
	onlineDir string
}

// Sampler reads the counters of many cgroups again and again at the least cost. It keeps handles open and reads each
// file once per sample, however many containers share it. It parses text (limits, cpusets) only when it changed. It is
// not safe for concurrent use. Close it after use.
type Sampler struct {
	host    *cgroup.Host
	opt     Options
	files   files
	round   uint64
	levels  map[string]*level
	cpusets map[string]*cpusetFile
	online  cpusetFile // the kernel's list of online CPUs
	usages  map[string]*usageFile
	hot     []*level
	partial bool // invisible levels may exist above the mount
	// threadsLeft is how many threads this round may still read.
	threadsLeft int
	// hidden reports that v1 does not list threads of other PID namespaces here. hiddenUnknown reports that the Sampler
	// cannot determine this.
	hidden, hiddenUnknown bool
	watched               counting
	// unwritten reports that since the last round no cgroup below scope was removed, and none had its settings written.
	// Then most settings, and most files of idle containers, are as they were: see resting. It is false where the caller
	// cannot tell.
	unwritten bool
	scope     string
	made      uint64 // levels made so far
	// look is the round in which quotas inside the containers were last to be looked for; looking is how long that took.
	look    uint64
	looking time.Duration
}

// NewSampler returns a sampler for the cgroup trees of h. It opens no cgroup file yet.
func NewSampler(h *cgroup.Host, o Options) *Sampler {
	if o.FileLimitShare <= 0 {
		o.FileLimitShare = 0.8
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.HotFor <= 0 {
		o.HotFor = 10 * time.Second
	}
	if o.Proc == "" {
		o.Proc = "/proc"
	}
	if o.onlineDir == "" {
		o.onlineDir = "/sys/devices/system/cpu"
	}
	s := &Sampler{host: h, opt: o, levels: map[string]*level{}, cpusets: map[string]*cpusetFile{},
		usages: map[string]*usageFile{}, watched: counting{o.Probe, h, map[uint64]*counted{}}, online: cpusetFile{dir: o.onlineDir}}
	s.files.keepBelow, s.files.identity = keepBelow(o.FileLimitShare), o.identity
	if v, _ := h.Version(cgroup.CPU); v == cgroup.V1 {
		var err error
		s.hidden, err = cgroup.OutsideHostPIDs(os.DirFS(o.Proc))
		s.hiddenUnknown = err != nil
	}
	s.partial = h.PrivateNamespace() || h.Top(cgroup.CPU) != "/"
	return s
}

// Sample reads everything about the given containers into dst and reuses the memory of dst; dst[i] belongs to
// containers[i]. It closes handles of containers that are not given this time. It marks a container whose cgroup is
// gone. Its only error is that of ctx.
func (s *Sampler) Sample(ctx context.Context, containers []container.Container, dst []Sample) ([]Sample, error) {
	s.begin()
	s.look = s.round
	return s.sample(ctx, containers, dst)
}

// sample is Sample in a round that has begun.
func (s *Sampler) sample(ctx context.Context, containers []container.Container, dst []Sample) ([]Sample, error) {
	for len(dst) < len(containers) {
		dst = append(dst, Sample{})
	}
	dst = dst[:len(containers)]
	for i := range containers {
		s.greet(&containers[i])
	}
	for i := range containers {
		if err := ctx.Err(); err != nil {
			return dst[:0], err
		}
		s.fill(&dst[i], &containers[i])
	}
	s.sweep()
	return dst, nil
}

// Poll reads cpu.stat, and only that, of cgroups that were stopped within the last Options.HotFor. Its readings show as
// Observation.Cells after the next Sample.
func (s *Sampler) Poll() {
	now := s.opt.Now()
	for _, l := range s.hot {
		s.readStat(l, now)
	}
}

// Hot returns the number of cgroups that Poll reads.
func (s *Sampler) Hot() int { return len(s.hot) }

// Handles returns the number of open files.
func (s *Sampler) Handles() int { return s.files.kept }

// Reads returns the number of reads made so far.
func (s *Sampler) Reads() uint64 { return s.files.reads }

// Opens returns the number of files opened so far.
func (s *Sampler) Opens() uint64 { return s.files.opens }

// Close closes all handles. The sampler may be used again.
func (s *Sampler) Close() {
	s.begin()
	s.sweep()
}

// begin starts a round, which is one full sample.
func (s *Sampler) begin() {
	s.round++
	s.files.round = s.round
	s.unwritten = false
	s.threadsLeft = maxThreadsPerRound
}

// greet begins the probe's watch of a container that no round has read yet. All are greeted before the first is read,
// because the first read ends a pass over all threads of the host for all that are new, and because cgroups inside one
// may be containers of their own.
func (s *Sampler) greet(c *container.Container) {
	own := s.level(c.Group.Path)
	if own == nil {
		return
	}
	own.sampled = s.round
	if s.watched.probe == nil || own.stat.inode != 0 {
		return
	}
	if _, err := s.files.read(&own.stat, own.dir, cgroup.FileStat); err == nil {
		_, _ = s.watched.watch(own.stat.inode, c) // its round tries again, and tells the error
	}
}

func (s *Sampler) fill(dst *Sample, c *container.Container) {
	dst.reset()
	dst.Container = *c
	dst.At = s.opt.Now()
	own := s.level(c.Group.Path)
	if own == nil {
		dst.missing("levels: the path cannot lie below the mounted part of the hierarchy")
		dst.Gone = true
		return
	}
	s.watched.read(dst, own.stat.inode, s.round)
	rests := s.rests(own, dst.counts, dst.At)
	s.readLevel(own, dst.At, true, rests)
	if own.gone {
		dst.Gone = true
		return
	}
	if !rests {
		s.readLocal(own)
	}
	dst.Levels = dst.add(dst.Levels, own)
	for l := own; !l.top; {
		if l = s.level(cgroup.Parent(l.path)); l == nil {
			dst.Hidden = true
			break
		}
		l.above = s.round
		s.readLevel(l, dst.At, false, false)
		if l.statRead {
			dst.early = max(dst.early, dst.At.Sub(l.readAt))
		}
		dst.Levels = dst.add(dst.Levels, l)
	}
	dst.Hidden = dst.Hidden || s.partial
	s.fillInside(dst, own, rests)
	if own.statErr == nil && !own.counters.HasBandwidth {
		dst.missing(noBandwidth)
	}
	dst.Local, dst.HasLocal = own.localTime, own.localErr == nil
	if !dst.HasLocal {
		dst.missing(note(cgroup.FileStatLocal, own.localErr))
	}
	s.fillUsage(dst, own, c.Group, rests)
	s.fillCPUs(dst, c.Group.CPUSetPath, rests)
	dst.took = s.opt.Now().Sub(dst.At)
	s.watched.begin(dst, c, s.round)
}

// sweep closes handles that this round did not use.
func (s *Sampler) sweep() {
	s.watched.sweep(s.round)
	s.hot = s.hot[:0]
	for path, l := range s.levels {
		switch {
		case l.round != s.round:
			s.closeLevel(l)
			delete(s.levels, path)
		case l.hot:
			s.hot = append(s.hot, l)
		}
	}
	for path, f := range s.cpusets {
		if f.round != s.round {
			s.files.close(&f.handle)
			delete(s.cpusets, path)
		}
	}
	if s.online.round != s.round {
		s.files.close(&s.online.handle)
	}
	for path, f := range s.usages {
		if f.round != s.round {
			s.files.close(&f.handle)
			delete(s.usages, path)
		}
	}
}

// noLocal notes that the kernel is older than 6.6.
const noLocal = cgroup.FileStatLocal + ": the kernel has none (before 6.6): what an ancestor's quota costs is only bounded from above"

// noBandwidth notes a v2 cgroup that has only the lines of cpu.stat that every cgroup has.
const noBandwidth = "periods: the cpu controller is not enabled for this cgroup; it has no quota of its own"

// note says why a file was not measured.
func note(file string, err error) string {
	if errors.Is(err, errNoFile) && file == cgroup.FileStatLocal {
		return noLocal
	}
	return file + ": " + err.Error()
}
