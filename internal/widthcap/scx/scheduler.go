package scx

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/rlimit"
)

// Scheduler is the scheduler while this process holds it. Several goroutines may call its methods.
type Scheduler struct {
	*Caps
	coll   *ebpf.Collection
	link   link.Link
	pinned []string

	done     chan struct{}
	stop     chan struct{}
	stopOnce sync.Once
	watching sync.WaitGroup
	err      error // written before done is closed
}

// lookEvery is how often the loader looks whether the kernel has thrown the scheduler out.
const lookEvery = 200 * time.Millisecond

// actRestart is SCX_ECODE_ACT_RESTART of the kernel (enum scx_exit_code, Linux 6.18).
const actRestart = 1 << 48

// Load loads and attaches the scheduler. If the kernel refuses, the error is an *Unavailable.
func Load(o Options) (*Scheduler, error) {
	if o.Cgroups == 0 {
		o.Cgroups = DefaultCgroups
	}
	if o.Cgroups < 1 || o.Cgroups > MaxCgroups {
		return nil, fmt.Errorf("scheduler: %d cgroups; want 1 to %d", o.Cgroups, MaxCgroups)
	}
	if o.CgroupRoot == "" {
		o.CgroupRoot = defaultCgroupRoot
	}
	if err := canLoad(os.DirFS("/sys/kernel"), os.DirFS(o.CgroupRoot)); err != nil {
		return nil, err
	}
	cache := btf.NewCache()
	types, err := cache.Kernel()
	if err != nil {
		return nil, noTypes(err)
	}
	if err := checkTypes(types); err != nil {
		return nil, err
	}
	if err := rlimit.RemoveMemlock(); err != nil {
		return nil, refused("lock memory for BPF", err)
	}
	s := &Scheduler{Caps: &Caps{}, done: make(chan struct{}), stop: make(chan struct{})}
	if err := s.load(o, cache); err != nil {
		return nil, errors.Join(err, s.release())
	}
	s.watching.Go(s.watch)
	return s, nil
}

func (s *Scheduler) load(o Options, cache *btf.Cache) error {
	spec, err := loadBpf()
	if err != nil {
		return fmt.Errorf("scheduler: %w", err)
	}
	for _, name := range []string{bpfMapRows, bpfMapRowOf, bpfMapWishes, bpfMapLimits} {
		spec.Maps[name].MaxEntries = uint32(o.Cgroups)
	}
	if err := spec.Variables[bpfVarMaxRows].Set(uint32(o.Cgroups)); err != nil {
		return fmt.Errorf("scheduler: %w", err)
	}
	s.coll, err = ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{Cache: cache})
	if err != nil {
		return refused("load the scheduler's BPF programs", err)
	}
	s.maps = map[string]*ebpf.Map{}
	for _, name := range shared {
		s.maps[name] = s.coll.Maps[name]
	}
	s.link, err = link.AttachStructOps(link.StructOpsOptions{Map: s.coll.Maps[bpfMapUnthrottle]})
	if err != nil {
		return refused("attach the scheduler", err)
	}
	return s.pin(o.PinDir)
}

// pin pins the maps that other processes use. Files of a loader that died are replaced.
func (s *Scheduler) pin(dir string) error {
	if dir == "" {
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("scheduler: %w; give a folder in a BPF file system, such as /sys/fs/bpf/%s", err, Name)
	}
	for _, name := range shared {
		file := filepath.Join(dir, name)
		if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("scheduler: %w", err)
		}
		if err := s.maps[name].Pin(file); err != nil {
			return fmt.Errorf("scheduler: pin a map as %s: %w; give a folder in a BPF file system, such as /sys/fs/bpf/%s", file, err, Name)
		}
		s.pinned = append(s.pinned, file)
	}
	return nil
}

// watch closes done when the kernel has thrown the scheduler out.
func (s *Scheduler) watch() {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		var f bpfFarewell
		if err := s.coll.Maps[bpfMapFarewells].Lookup(uint32(0), &f); err != nil {
			s.err = fmt.Errorf("scheduler: %w", err)
		} else if f.Kind != 0 {
			s.err = thrownOut(f)
		}
		if s.err != nil {
			close(s.done)
			return
		}
		select {
		case <-s.stop:
			close(s.done)
			return
		case <-tick.C:
		}
	}
}

// thrownOut is the kernel's reason as an error.
func thrownOut(f bpfFarewell) error {
	text := func(c []int8) string {
		var b strings.Builder
		for _, x := range c {
			if x == 0 {
				break
			}
			b.WriteByte(byte(x))
		}
		return b.String()
	}
	why := text(f.Reason[:])
	if more := text(f.Message[:]); more != "" {
		why += ": " + more
	}
	if f.Code&actRestart != 0 {
		return fmt.Errorf("the kernel ended the scheduler: %s: %w", why, ErrRestart)
	}
	return fmt.Errorf("the kernel ended the scheduler: %s (kind %d, code %d); every thread is under the kernel's own "+
		"scheduler", why, f.Kind, f.Code)
}

// Done is closed when the kernel has thrown the scheduler out, or Close has ended it.
func (s *Scheduler) Done() <-chan struct{} { return s.done }

// Err returns, after Done, why the kernel threw the scheduler out, ErrRestart for a change of the CPUs; nil after Close,
// and before Done.
func (s *Scheduler) Err() error {
	select {
	case <-s.done:
		return s.err
	default:
		return nil
	}
}

// Close puts every thread under the kernel's own scheduler, and removes the pinned maps.
func (s *Scheduler) Close() error {
	var err error
	s.stopOnce.Do(func() {
		close(s.stop)
		s.watching.Wait()
		err = s.release()
	})
	return err
}

// release closes what was opened.
func (s *Scheduler) release() error {
	var failed error
	for _, file := range s.pinned {
		if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
			failed = errors.Join(failed, err)
		}
	}
	if s.link != nil {
		failed = errors.Join(failed, s.link.Close())
	}
	if s.coll != nil {
		s.coll.Close()
	}
	return failed
}
