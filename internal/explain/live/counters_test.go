package live

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/see/observe"
	view "github.com/unthrottle/unthrottle/internal/ui/report/explain"
)

func TestFromCounters(t *testing.T) {
	limited := cgroup.Limit{Quota: 200 * time.Millisecond, Period: 100 * time.Millisecond}
	seen := func(low, high time.Duration, used, limit float64, by string) observe.Observation {
		return observe.Observation{Container: container.Container{Name: "cart"}, Window: 10 * time.Second, Start: time.Unix(1, 0),
			StoppedLow: &low, StoppedHigh: &high, UsedCPUs: &used, LimitCPUs: &limit, ThrottledBy: by,
			Levels:  []cgroup.Level{{Limit: limited}},
			Periods: new(uint64(100)), ThrottledPeriods: new(uint64(40))}
	}
	inside := seen(time.Second, 4*time.Second, 1, 2, "/pod/cart/vcpu0")
	inside.Container.Group.Path = "/pod/cart"
	only := seen(time.Second, 4*time.Second, 1, 2, "/kubepods/pod1")
	only.Container.Group.Path, only.Container.Pod = "/kubepods/pod1/app", "cart"
	only.LimitAt = "/kubepods/pod1/app"
	only.Levels = []cgroup.Level{{Path: "/kubepods/pod1/app", Limit: limited}, {Path: "/kubepods/pod1", Limit: limited}}
	beside := only
	beside.Levels = []cgroup.Level{only.Levels[0],
		{Path: "/kubepods/pod1", Limit: cgroup.Limit{Quota: 250 * time.Millisecond, Period: limited.Period}}}
	slight := seen(0, 50*time.Millisecond, 1, 2, observe.BySelf)
	oneCPU := seen(time.Second, 4*time.Second, 1, 2, observe.BySelf)
	oneCPU.CPUsAllowed = cpuset.New(0, 1)
	blind := seen(time.Second, 4*time.Second, 1, 2, observe.BySelf)
	blind.UsedCPUs = nil
	calm := seen(0, 0, 1, 2, "")
	calm.ThrottledBefore = new(0.034)
	unknown := seen(time.Second, 4*time.Second, 1, 2, observe.BySelf)
	unknown.StoppedLow, unknown.StoppedHigh = nil, nil
	for _, c := range []struct {
		name  string
		o     observe.Observation
		cause diagnose.Cause
		says  string
	}{
		{"bursts", seen(time.Second, 4*time.Second, 1, 2, observe.BySelf), diagnose.Burst, "50 % of its limit"},
		{"shortage", seen(time.Second, 4*time.Second, 1.95, 2, observe.BySelf), diagnose.Shortage, "wants more CPU"},
		{"in between", seen(time.Second, 4*time.Second, 1.8, 2, observe.BySelf), "", "do not tell"},
		{"an ancestor", seen(time.Second, 4*time.Second, 1, 2, "/pod"), diagnose.Ancestor, "/pod"},
		{"the pod's quota, the same as its only container's", only, diagnose.Burst, "50 % of its limit"},
		{"the pod's quota, of two containers", beside, diagnose.Ancestor, "/kubepods/pod1"},
		{"an ancestor out of sight", seen(0, 4*time.Second, 1, 2, observe.ByUnknown), diagnose.Ancestor, "not visible here"},
		{"a cgroup inside", inside, diagnose.Inside, "/pod/cart/vcpu0, held threads of cart back for 1 s to 4 s of 10 s"},
		{"nothing", seen(0, 0, 1, 2, ""), diagnose.None, "counters do not show"},
		{"a calm time", calm, diagnose.None, "But 3.4 % of its periods were throttled since it was made, and none in " +
			"these 10 s: look longer"},
		{"a stop that is no finding", slight, diagnose.None, "for only 0 ms to 50 ms of 10 s"},
		{"no more CPUs than the limit fills", oneCPU, diagnose.TinyLimit, "pieces longer than the quota"},
		{"without CPU use", blind, "", "without its CPU use"},
		{"not measured", unknown, "", "could not be measured"},
	} {
		e := FromCounters(c.o, "BPF was refused")
		if e.Cause != c.cause || !strings.Contains(e.Verdict, c.says) {
			t.Errorf("%s: %q: %s", c.name, e.Cause, e.Verdict)
		}
		if e.Width != nil || e.Waiting != nil || e.Pools != nil || len(e.NotMeasured) < 4 ||
			!strings.Contains(e.NotMeasured[0], "BPF was refused") {
			t.Errorf("%s claims more than counters tell, or does not say why: %+v", c.name, e)
		}
		if c.name == "bursts" && e.Stopped != nil {
			t.Error("an interval became a figure")
		}
		var b bytes.Buffer
		if err := view.Write(&b, e, view.Options{}); err != nil {
			t.Error(err)
		}
	}
}
