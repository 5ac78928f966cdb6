package observe

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
)

// nested is a machine without a quota whose payload has one.
func (f *fake) nested(payload time.Duration, throttled int) {
	f.v1("/vm", -1, 0, 0, 0, 0, 0)
	f.v1("/vm/emulator", -1, 0, 0, 0, 0, 0)
	f.v1("/vm/vcpu0", 5000, 10*throttled, throttled, payload, payload, 0)
}

func TestAQuotaInsideAContainerIsSeen(t *testing.T) {
	f := newFake(t, cgroup.V1, "/")
	f.nested(0, 0)
	o := f.window(f.sampler(Options{}), named("/vm"), func() { f.nested(940*ms, 9) })[0]
	if o.StoppedLow == nil || *o.StoppedLow != 235*ms || *o.StoppedHigh != 940*ms || o.ThrottledBy != "/vm/vcpu0" {
		t.Errorf("%v to %v by %q", o.StoppedLow, o.StoppedHigh, o.ThrottledBy)
	}
	if above, ok := o.Above(0.05); !above || !ok {
		t.Error("not above a bound of 5 %")
	}
}

func TestACgroupInsideThatIsAContainerIsItsOwn(t *testing.T) {
	f := newFake(t, cgroup.V1, "/")
	f.nested(0, 0)
	observations := f.window(f.sampler(Options{}), named("/vm", "/vm/vcpu0"), func() { f.nested(940*ms, 9) })
	if o := observations[0]; *o.StoppedHigh != 0 || o.ThrottledBy != "" {
		t.Errorf("the outer one: %v by %q", *o.StoppedHigh, o.ThrottledBy)
	}
	if o := observations[1]; *o.StoppedHigh != 940*ms || o.ThrottledBy != BySelf {
		t.Errorf("the inner one: %v by %q", *o.StoppedHigh, o.ThrottledBy)
	}
}

// What cannot be known is not 0.
func TestInsideNotMeasured(t *testing.T) {
	tests := map[string]func(f *fake){
		"its cgroup with a quota went": func(f *fake) { f.drop(cgroup.CPU, "/vm/vcpu0", "") },
		"too many cgroups": func(f *fake) {
			for i := range cgroup.MaxQuotasBelow + 1 {
				f.v1(fmt.Sprintf("/vm/%d", i), 5000, 0, 0, 0, 0, 0)
			}
		},
	}
	for name, change := range tests {
		f := newFake(t, cgroup.V1, "/")
		f.nested(0, 0)
		o := f.window(f.sampler(Options{}), named("/vm"), func() { change(f) })[0]
		if o.StoppedLow != nil || o.StoppedHigh != nil || !slices.Contains(o.NotMeasured, notMeasuredInside) {
			t.Errorf("%s: %v to %v, not measured: %q", name, o.StoppedLow, o.StoppedHigh, o.NotMeasured)
		}
	}
}

func TestAWindowOfLessThanAPeriodIsNotMeasured(t *testing.T) {
	f := newFake(t, cgroup.V1, "/")
	slow := func(periods int) {
		f.v1("/a", 100000, periods, periods, 0, 0, 0)
		f.set(cgroup.CPU, "/a", "cpu.cfs_period_us", "1000000")
	}
	slow(1)
	o := f.window(f.sampler(Options{}), named("/a"), func() {})[0]
	if o.StoppedHigh != nil || !strings.Contains(strings.Join(o.NotMeasured, "\n"),
		"no period of the quota of /a ended in the window of 1s: look for 2s or longer") {
		t.Errorf("%v, not measured %q", o.StoppedHigh, o.NotMeasured)
	}
}

// A Watcher finds a quota that is set inside a container while it runs, and looks no more often than at a hundredth of
// the time.
func TestAWatcherSeesAQuotaThatIsSetInside(t *testing.T) {
	f := newFake(t, cgroup.V1, "/")
	f.nested(0, 0)
	f.set(cgroup.CPU, "/vm/vcpu0", "cpu.cfs_quota_us", "-1")
	w := f.watch(WatchOptions{List: listed("/vm")})
	w.run(3 * time.Second)
	if o := w.last(); *o.StoppedHigh != 0 {
		t.Fatalf("stopped %v without a quota", *o.StoppedHigh)
	}
	f.nested(0, 0) // the quota, by a write
	w.run(2 * time.Second)
	f.nested(940*ms, 9)
	w.run(time.Second)
	if o := w.last(); *o.StoppedHigh != 940*ms || o.ThrottledBy != "/vm/vcpu0" {
		t.Errorf("%v by %q", *o.StoppedHigh, o.ThrottledBy)
	}
}

func TestAStrangerThatMakesCgroupsCostsABoundedTime(t *testing.T) {
	f := newFake(t, cgroup.V1, "/")
	f.nested(0, 0)
	w := f.watch(WatchOptions{List: listed("/vm")})
	w.sampler.opt.Now = func() time.Time { f.now = f.now.Add(ms); return f.now } // each look takes a millisecond
	w.run(2 * time.Second)
	looks, seen := 0, w.sampler.look
	for end := f.now.Add(20 * time.Second); f.now.Before(end); w.run(100 * ms) {
		w.written, w.inside = true, true
		if w.sampler.look != seen {
			looks, seen = looks+1, w.sampler.look
		}
	}
	if looks == 0 || looks > 20 {
		t.Errorf("%d looks of a millisecond or more in 20 s", looks)
	}
}

func listed(paths ...string) func() ([]container.Container, error) {
	return func() ([]container.Container, error) { return named(paths...), nil }
}

func (w *watched) last() Observation {
	return w.snapshots[len(w.snapshots)-1].Observations[0]
}
