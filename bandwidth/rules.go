package bandwidth

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Era names a set of rules that a range of mainline kernels shares. Stable and
// distribution kernels carry backports: 4.18.0-147.2.1 of RHEL 8 has the rules
// of 5.4.
type Era uint8

// The eras, oldest first. Each has what the ones before it brought, except
// that EraC took the expiry of EraA and EraB away.
const (
	EraA  Era = iota + 1 // a, 3.16: silos expire by comparing deadlines, wrong where the CPUs' clocks differ (51f2176d74ac)
	EraB                 // b, 4.18: silos expire with their period (512ac999d275)
	EraC                 // c, 5.4: silos never expire (de53fd7aedb1)
	EraC2                // c', 5.8: before a CPU is throttled it asks once more, for 1 ns (e98fa02c4f2e)
	EraD                 // d, 5.14: burst (f4183717b370)
	EraE                 // e, 6.3: other CPUs are told to unthrottle by interrupt (8ad075c2eb1f)
	EraE2                // e', 6.4: each group's periods begin at an offset of their own (41abdba93747)
	EraG                 // g, 6.6: throttled time counts only from a queued task on (79462e8c879a)
	EraF                 // f, 6.18: threads are parked one by one as they return to user mode (e1fad12dcb66)
	EraH                 // h, 7.2: throttled inside the accounting, without waiting for the next pick
)

// String is the era's letter.
func (e Era) String() string {
	names := [...]string{"?", "a", "b", "c", "c'", "d", "e", "e'", "g", "f", "h"}
	if int(e) >= len(names) {
		e = 0
	}
	return names[e]
}

// eras by the first mainline release that has them, newest first.
var eras = []struct {
	major, minor int
	era          Era
}{
	{7, 2, EraH}, {6, 18, EraF}, {6, 6, EraG}, {6, 4, EraE2}, {6, 3, EraE}, {5, 14, EraD}, {5, 8, EraC2},
	{5, 4, EraC}, {4, 18, EraB}, {3, 16, EraA},
}

// Rules are one kernel's behaviour and its constants. Change the constants
// before a Group is made; the behaviour comes with the release.
type Rules struct {
	// Kernel is the mainline release, such as "6.12".
	Kernel string
	Era    Era

	// Slice is what a CPU takes from the pool at a time
	// (sched_cfs_bandwidth_slice_us; 5 ms). Above 0.
	Slice time.Duration
	// MinRuntime is what a CPU keeps when its last thread goes to sleep
	// (min_cfs_rq_runtime; 1 ms). From 0.
	MinRuntime time.Duration
	// SlackPeriod is the delay from returned slack to its distribution
	// (cfs_bandwidth_slack_period; 5 ms). Above 0.
	SlackPeriod time.Duration
	// MinExpiration: no slack is distributed this near to a refill
	// (min_bandwidth_expiration; 2 ms). From 0.
	MinExpiration time.Duration
	// Tick is the length of a scheduler tick (TICK_NSEC), by which eras a and b
	// extend a deadline.
	Tick time.Duration
}

// ErrKernel is an unknown or too old release.
var ErrKernel = errors.New("not a kernel release that is known here: give one from 3.16 on, such as 5.15")

// For has the rules of a mainline release, "6.12" or "6.12.3", at 250 ticks a
// second. Releases newer than the last era have its rules. Errors are
// ErrKernel.
func For(release string) (Rules, error) {
	major, minor, err := parseRelease(release)
	if err != nil {
		return Rules{}, err
	}
	for _, e := range eras {
		if major < e.major || major == e.major && minor < e.minor {
			continue
		}
		return Rules{
			Kernel: release, Era: e.era,
			Slice: 5 * time.Millisecond, MinRuntime: time.Millisecond, SlackPeriod: 5 * time.Millisecond,
			MinExpiration: 2 * time.Millisecond, Tick: 4 * time.Millisecond,
		}, nil
	}
	return Rules{}, fmt.Errorf("kernel %q: %w", release, ErrKernel)
}

func parseRelease(release string) (major, minor int, err error) {
	parts := strings.Split(release, ".")
	if len(parts) < 2 || len(parts) > 3 {
		return 0, 0, fmt.Errorf("kernel %q: %w", release, ErrKernel)
	}
	numbers := [3]int{}
	for i, p := range parts {
		n, err := strconv.ParseUint(p, 10, 10)
		if err != nil {
			return 0, 0, fmt.Errorf("kernel %q: %w", release, ErrKernel)
		}
		numbers[i] = int(n)
	}
	return numbers[0], numbers[1], nil
}

// Has says whether the rules that era brought are in force.
func (r *Rules) Has(era Era) bool { return r.Era >= era }

// RandomPhase says whether each group's periods begin at an offset of their
// own (6.4 on) or all groups' periods of one length begin together.
func (r *Rules) RandomPhase() bool { return r.Has(EraE2) }

// Async says whether a CPU other than the timer's is unthrottled by interrupt,
// a few microseconds later (6.3 on).
func (r *Rules) Async() bool { return r.Has(EraE) }

// constants by the name under which users override them.
var constants = []struct {
	name  string
	least time.Duration
	of    func(*Rules) *time.Duration
}{
	{"sched_cfs_bandwidth_slice", time.Microsecond, func(r *Rules) *time.Duration { return &r.Slice }},
	{"min_cfs_rq_runtime", 0, func(r *Rules) *time.Duration { return &r.MinRuntime }},
	{"cfs_bandwidth_slack_period", time.Microsecond, func(r *Rules) *time.Duration { return &r.SlackPeriod }},
	{"min_bandwidth_expiration", 0, func(r *Rules) *time.Duration { return &r.MinExpiration }},
}

// maxConstant bounds every constant: the longest period.
const maxConstant = time.Second

// Constants lists the names that Set knows.
func Constants() []string {
	var names []string
	for _, c := range constants {
		names = append(names, c.name)
	}
	return names
}

// Set overrides a constant by the kernel's name for it. Errors name the
// constants that exist, or the bounds.
func (r *Rules) Set(name string, v time.Duration) error {
	for _, c := range constants {
		if c.name != name {
			continue
		}
		if v < c.least || v > maxConstant {
			return fmt.Errorf("%s=%v: give a time from %v to %v", name, v, c.least, maxConstant)
		}
		*c.of(r) = v
		return nil
	}
	return fmt.Errorf("%s: no such constant of the kernel's bandwidth control: choose from %s", name, strings.Join(Constants(), ", "))
}
