package bandwidth

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Release is a mainline release that changed the rules of bandwidth control. Stable and distribution kernels
// carry backports: 4.18.0-147.2.1 of RHEL 8 has the rules of 5.4.
type Release uint8

// The releases that changed the rules, oldest first. Each one keeps the rules of the releases before it, except
// that Since5_4 removed the expiry of Since3_16 and Since4_18.
const (
	// Since3_16: silos expire by comparing deadlines, which fails where the CPUs' clocks differ (51f2176d74ac).
	Since3_16 Release = iota + 1
	// Since4_18: silos expire with their period (512ac999d275).
	Since4_18
	// Since5_4: silos never expire (de53fd7aedb1).
	Since5_4
	// Since5_8: before the kernel throttles a CPU, the CPU asks the pool once more, for 1 ns (e98fa02c4f2e).
	Since5_8
	// Since5_14: a group may save unused quota as burst (f4183717b370).
	Since5_14
	// Since6_3: the timer's CPU unthrottles other CPUs by interrupt (8ad075c2eb1f).
	Since6_3
	// Since6_4: each group's periods begin at their own offset (41abdba93747).
	Since6_4
	// Since6_6: throttled time counts only while a task is queued (79462e8c879a).
	Since6_6
	// Since6_18: the kernel parks throttled threads one by one as they return to user mode (e1fad12dcb66).
	Since6_18
	// Since7_2: the accounting itself throttles, without waiting for the next pick.
	Since7_2
)

// releases describes each Release, newest first: its version, and the letter that older outputs use.
var releases = []struct {
	release      Release
	major, minor int
	letter       string
}{
	{Since7_2, 7, 2, "h"},
	{Since6_18, 6, 18, "f"},
	{Since6_6, 6, 6, "g"},
	{Since6_4, 6, 4, "e'"},
	{Since6_3, 6, 3, "e"},
	{Since5_14, 5, 14, "d"},
	{Since5_8, 5, 8, "c'"},
	{Since5_4, 5, 4, "c"},
	{Since4_18, 4, 18, "b"},
	{Since3_16, 3, 16, "a"},
}

// String is the version, such as "6.18", or "?" for a value that is none of the constants.
func (r Release) String() string {
	for _, known := range releases {
		if known.release == r {
			return fmt.Sprintf("%d.%d", known.major, known.minor)
		}
	}
	return "?"
}

// Letter is the name of the rules in older outputs, from "a" (3.16) to "h" (7.2), or "?" like String.
func (r Release) Letter() string {
	for _, known := range releases {
		if known.release == r {
			return known.letter
		}
	}
	return "?"
}

// Rules are the behaviour and the constants of one kernel. Change the constants before you make a Group; For
// chooses the behaviour.
type Rules struct {
	// Kernel is the mainline release, such as "6.12".
	Kernel string
	// Since is the newest Release whose rules the kernel has.
	Since Release

	// Slice is the CPU time that a CPU takes from the pool at a time (sched_cfs_bandwidth_slice_us; 5 ms).
	// Above 0.
	Slice time.Duration
	// MinRuntime is the CPU time that a CPU keeps when its last thread goes to sleep (min_cfs_rq_runtime; 1
	// ms). From 0.
	MinRuntime time.Duration
	// SlackPeriod is the delay from a return of slack to its distribution (cfs_bandwidth_slack_period; 5 ms).
	// Above 0.
	SlackPeriod time.Duration
	// MinExpiration is the time before a refill within which the kernel distributes no slack
	// (min_bandwidth_expiration; 2 ms). From 0.
	MinExpiration time.Duration
	// Tick is the length of a scheduler tick (TICK_NSEC). Before 5.4 the kernel extends a deadline by it.
	Tick time.Duration
}

// ErrKernel says that a release is malformed or older than 3.16.
var ErrKernel = errors.New("not a known kernel release: give one from 3.16 on, such as 5.15")

// For returns the rules of a mainline release, "6.12" or "6.12.3", at 250 ticks a second. A release newer
// than the last Release has the last rules. The error is ErrKernel.
func For(release string) (Rules, error) {
	major, minor, err := parseRelease(release)
	if err != nil {
		return Rules{}, err
	}
	for _, known := range releases {
		if older(major, minor, known.major, known.minor) {
			continue
		}
		return Rules{
			Kernel: release, Since: known.release,
			Slice: 5 * time.Millisecond, MinRuntime: time.Millisecond, SlackPeriod: 5 * time.Millisecond,
			MinExpiration: 2 * time.Millisecond, Tick: 4 * time.Millisecond,
		}, nil
	}
	return Rules{}, fmt.Errorf("kernel %q: %w", release, ErrKernel)
}

// older reports whether a release came before another one.
func older(major, minor, otherMajor, otherMinor int) bool {
	return major < otherMajor || major == otherMajor && minor < otherMinor
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

// Has reports whether the rules that came with a release are in force.
func (r *Rules) Has(release Release) bool { return r.Since >= release }

// From reports whether the kernel is a release or a newer one, for what no Release is about.
func (r *Rules) From(major, minor int) bool {
	gotMajor, gotMinor, err := parseRelease(r.Kernel)
	return err == nil && !older(gotMajor, gotMinor, major, minor)
}

// RandomPhase reports whether each group's periods begin at an offset of their own (from 6.4 on). Before, all
// groups with one length of period begin together.
func (r *Rules) RandomPhase() bool { return r.Has(Since6_4) }

// UnthrottlesByInterrupt reports whether the timer's CPU unthrottles other CPUs by interrupt, a few
// microseconds later (from 6.3 on). Before, all are unthrottled at once.
func (r *Rules) UnthrottlesByInterrupt() bool { return r.Has(Since6_3) }

// constants lists the constants that Set changes, under the kernel's names.
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

// maxConstant bounds every constant. It is the longest period.
const maxConstant = time.Second

// Constants lists the names that Set knows.
func Constants() []string {
	var names []string
	for _, c := range constants {
		names = append(names, c.name)
	}
	return names
}

// Set overrides a constant under the kernel's name for it. The error names the known constants, or the
// bounds.
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
	return fmt.Errorf("%s: the kernel's bandwidth control has no such constant: choose from %s", name, strings.Join(Constants(), ", "))
}
