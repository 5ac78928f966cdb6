package scx

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// Caps are the caps of a scheduler that runs, held by this process or by another. Several goroutines and processes may
// call its methods.
type Caps struct {
	maps map[string]*ebpf.Map // by name; all of shared
}

// shared are the maps that processes share.
var shared = []string{bpfMapWishes, bpfMapRows, bpfMapRowOf, bpfMapControls, bpfMapFaults}

// faultNames are the faults of bpf/scx.h, in their order.
var faultNames = []string{"no_thread", "no_cpu", "no_row", "unbalanced", "no_group", "lost_limit", "too_deep"}

// million is MILLION of bpf/scx.h: limits are in millionths of a CPU.
const million = 1e6

// deadAfter is how long the scheduler's timer may be silent. It runs 50 times a second at least.
const deadAfter = 10 * time.Second

// Open opens the maps that a loader has pinned in a folder. If the kernel does not run the scheduler, or these are the
// maps of a loader that died, the error is ErrNotEnabled.
func Open(pinDir string) (*Caps, error) {
	if err := enabled("/sys/kernel"); err != nil {
		return nil, err
	}
	c := &Caps{maps: map[string]*ebpf.Map{}}
	for _, name := range shared {
		m, err := ebpf.LoadPinnedMap(filepath.Join(pinDir, name), nil)
		if name == bpfMapFaults && errors.Is(err, os.ErrNotExist) {
			continue // an older program loaded it
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("scheduler: no map %s in %s: %w; its loader has given another folder, "+
				"or none", name, pinDir, err), c.Close())
		}
		c.maps[name] = m
	}
	var k bpfControl
	if err := c.maps[bpfMapControls].Lookup(uint32(0), &k); err != nil {
		return nil, errors.Join(fmt.Errorf("scheduler: %w", err), c.Close())
	}
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return nil, errors.Join(fmt.Errorf("scheduler: CLOCK_MONOTONIC: %w", err), c.Close())
	}
	if silent := time.Duration(now.Nano()) - time.Duration(k.Beat); silent > deadAfter {
		return nil, errors.Join(fmt.Errorf("%w: the maps in %s are of a loader that ended %v ago", ErrNotEnabled,
			pinDir, silent.Round(time.Second)), c.Close())
	}
	return c, nil
}

// Set gives a cgroup a cap, or changes its cap. It is in force within some milliseconds. The cgroup's cpu controller
// must be enabled. A cap replaces the cgroup's own cpu.max.
func (c *Caps) Set(cgroupID uint64, want Cap) error {
	if err := want.Check(); err != nil {
		return fmt.Errorf("cgroup %d: %w", cgroupID, err)
	}
	if cgroupID == 0 {
		return errors.New("a cap needs a cgroup; its id is 0")
	}
	wish := wishOf(want)
	var err error
	if wish.Since, err = c.since(cgroupID); err != nil {
		return err
	}
	err = c.maps[bpfMapWishes].Put(cgroupID, wish)
	if errors.Is(err, unix.E2BIG) {
		return fmt.Errorf("cgroup %d: %w: %d have one; Options.Cgroups sets how many", cgroupID, ErrFull, c.maps[bpfMapWishes].MaxEntries())
	}
	if err != nil {
		return fmt.Errorf("cgroup %d: set its cap: %w", cgroupID, err)
	}
	return c.announce()
}

// sinceBits is SINCE of bpf/scx.h.
const sinceBits = 20

// since is from when on a cgroup saves credit: since it has had a cap, by the clock of the scheduler's ticks, which come 50 times
// a second at least.
func (c *Caps) since(cgroupID uint64) (uint32, error) {
	var was bpfWish
	err := c.maps[bpfMapWishes].Lookup(cgroupID, &was)
	if err == nil && was.Since != 0 {
		return was.Since, nil
	}
	if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return 0, fmt.Errorf("cgroup %d: read its cap: %w", cgroupID, err)
	}
	var k bpfControl
	if err := c.maps[bpfMapControls].Lookup(uint32(0), &k); err != nil {
		return 0, fmt.Errorf("scheduler: %w", err)
	}
	return uint32(k.Beat >> sinceBits), nil
}

// Remove takes a cgroup's cap away. The error is ErrNoCap if it has none: its cap ends with the cgroup.
func (c *Caps) Remove(cgroupID uint64) error {
	err := c.maps[bpfMapWishes].Delete(cgroupID)
	if errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("cgroup %d: %w", cgroupID, ErrNoCap)
	}
	if err != nil {
		return fmt.Errorf("cgroup %d: remove its cap: %w", cgroupID, err)
	}
	return c.announce()
}

// announce has every thread look its cgroup up again. Two processes that do so at once may write the same number: both
// have written their caps before they read it.
func (c *Caps) announce() error {
	m := c.maps[bpfMapControls]
	var k bpfControl
	if err := m.Lookup(uint32(0), &k); err != nil {
		return fmt.Errorf("scheduler: %w", err)
	}
	k.Generation++
	if err := m.Put(uint32(0), k); err != nil {
		return fmt.Errorf("scheduler: %w", err)
	}
	return nil
}

// All returns the caps that were set, by cgroup id.
func (c *Caps) All() (map[uint64]Cap, error) {
	all := map[uint64]Cap{}
	var id uint64
	var w bpfWish
	each := c.maps[bpfMapWishes].Iterate()
	for each.Next(&id, &w) {
		all[id] = w.cap()
	}
	if err := each.Err(); err != nil {
		return nil, fmt.Errorf("scheduler: read the caps: %w", err)
	}
	return all, nil
}

// Stats returns what was counted for a cgroup, at most some milliseconds ago. The error is ErrNoCap if it has no cap.
// Until a thread of the cgroup has run all figures are 0.
func (c *Caps) Stats(cgroupID uint64) (Stats, error) {
	if err := c.maps[bpfMapWishes].Lookup(cgroupID, new(bpfWish)); errors.Is(err, ebpf.ErrKeyNotExist) {
		return Stats{}, fmt.Errorf("cgroup %d: %w", cgroupID, ErrNoCap)
	} else if err != nil {
		return Stats{}, fmt.Errorf("cgroup %d: %w", cgroupID, err)
	}
	row, err := c.row(cgroupID)
	if row == nil {
		return Stats{}, err
	}
	faults, err := c.faults()
	if err != nil {
		return Stats{}, err
	}
	return Stats{
		Faults: faults,
		Now:    int(row.Running), Widest: int(row.Most), Credit: max(0, time.Duration(row.Level)),
		AtCap: time.Duration(row.AtCap), Waited: time.Duration(row.Waited), Cut: row.Cut, Joined: row.Joined,
	}, nil
}

// faults are the scheduler's; nil: it does not count them.
func (c *Caps) faults() (map[string]uint64, error) {
	m := c.maps[bpfMapFaults]
	if m == nil {
		return nil, nil
	}
	all := map[string]uint64{}
	for i, name := range faultNames {
		var n uint64
		if err := m.Lookup(uint32(i), &n); err != nil {
			return nil, fmt.Errorf("scheduler: its faults: %w", err)
		}
		all[name] = n
	}
	return all, nil
}

// row returns the scheduler's row of a cgroup, nil while there is none.
func (c *Caps) row(cgroupID uint64) (*bpfRow, error) {
	var n uint32
	if err := c.maps[bpfMapRowOf].Lookup(cgroupID, &n); errors.Is(err, ebpf.ErrKeyNotExist) || n == 0 && err == nil {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("cgroup %d: %w", cgroupID, err)
	}
	var row bpfRow
	if err := c.maps[bpfMapRows].Lookup(n-1, &row); err != nil {
		return nil, fmt.Errorf("cgroup %d: %w", cgroupID, err)
	}
	if row.Cgid != cgroupID {
		return nil, nil
	}
	return &row, nil
}

// Close closes this process's handles. The caps stay.
func (c *Caps) Close() error {
	var failed error
	for _, m := range c.maps {
		failed = errors.Join(failed, m.Close())
	}
	return failed
}

func wishOf(c Cap) bpfWish {
	return bpfWish{Limit: uint64(math.Round(c.CPUs * million)), Credit: uint64(c.Credit), Widest: uint32(c.Widest)}
}

func (w bpfWish) cap() Cap {
	return Cap{CPUs: float64(w.Limit) / million, Credit: time.Duration(w.Credit), Widest: int(w.Widest)}
}
