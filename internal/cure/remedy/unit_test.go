package remedy

import (
	"errors"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup/cgroupmodel"
)

// limitedPod is a pod with two containers, of which app is returned. On cgroup v1 no container may have more than the pod.
func limitedPod(t tester, state string, config cgroupmodel.Config, limits map[string]cgroup.Limit) (*host, container.Container) {
	h := newHost(t, config, state)
	h.hand("/", cgroup.CPU, cgroup.CPUSet)
	for _, path := range []string{"/kubepods", podPath, appPath, besidePath} {
		h.make(path)
		if path != appPath && path != besidePath {
			h.hand(path, cgroup.CPU, cgroup.CPUSet)
		}
		if want, ok := limits[path]; ok {
			for _, w := range cgroup.LimitWrites(h.v, cgroup.Unlimited(), want, false) {
				h.write(cgroup.CPU, path, w.File, w.Value)
			}
		}
	}
	h.run(besidePath, 11)
	app := h.run(appPath, 10)
	app.PodUID = strings.TrimPrefix(cgroup.Base(podPath), "pod")
	h.containers[1] = app
	return h, app
}

// A limit in another period, or a larger one, is taken by the kernel whatever quota and period were and whatever is asked for:
// quota and period are whole microseconds, no container has more than its pod or, in another period, than before.
func TestALimitIsWholeMicroseconds(t *testing.T) {
	applied := 0
	rapid.Check(t, func(rt *rapid.T) {
		us := func(name string, least, most int) time.Duration {
			return time.Duration(rapid.IntRange(least, most).Draw(rt, name)) * time.Microsecond
		}
		was := cgroup.Limit{Period: us("period", 5_000, 1_000_000)}
		was.Quota = us("quota", 1_000, int(4*was.Period/time.Microsecond))
		same := rapid.Bool().Draw(rt, "the pod has the same limit")
		limits := map[string]cgroup.Limit{podPath: was, appPath: was, besidePath: was}
		if !same {
			limits = map[string]cgroup.Limit{appPath: was}
		}
		h, app := limitedPod(rt, t.TempDir(),
			rapid.SampledFrom([]cgroupmodel.Config{cgroupmodel.V1("0-7"), cgroupmodel.V2("0-7")}).Draw(rt, "kernel"), limits)
		r := rapid.SampledFrom([]Request{{Kind: Period}, {Kind: Burst}, {Kind: Narrow}, {Kind: Raise}}).Draw(rt, "remedy")
		if r.Kind == Raise {
			r.Factor = rapid.Float64Range(1.1, 1.9).Draw(rt, "factor")
		} else {
			r.Period = us("asked", 1_000, 1_000_000)
		}
		plan, err := Make(h.facts(), app, r)
		if refused := new(Refused); errors.As(err, &refused) {
			return // such as a quota below 1 ms
		} else if err != nil {
			rt.Fatal(err)
		}
		applied++
		h.apply(plan)
		for path, l := range limits {
			now, err := cgroup.ReadLimit(h.k, path)
			if err != nil {
				rt.Fatal(err)
			}
			if !now.Limited() || r.Kind == Raise {
				continue
			}
			before, _ := l.Bound()
			after, _ := now.Bound()
			if off := (after - before) * float64(now.Period); off <= -float64(time.Microsecond) || off >= float64(time.Microsecond) ||
				path == app.Group.Path && after > before {
				rt.Fatalf("%s: %+v became %+v", path, l, now)
			}
		}
	})
	if applied == 0 {
		t.Error("nothing was applied")
	}
}

// A part of a microsecond is refused with the reason: the kernel's files have none, and quota and period would be cut apart.
func TestPartsOfAMicrosecondAreRefused(t *testing.T) {
	was := cgroup.Limit{Quota: 150 * time.Millisecond, Period: 100 * time.Millisecond}
	for _, r := range []Request{
		{Kind: Period, Period: 1_234_567}, {Kind: Burst, Period: 20_000_500}, {Kind: Narrow, Period: 3_333_333},
		{Kind: Burst, Burst: 1_500},
		{Kind: Narrow, Burst: 10_000_001}, {Kind: Period, Period: 333_333}, {Kind: Narrow, Period: 500_000},
		{Kind: Narrow, Period: 2_000_000_000},
	} {
		h, app := limitedPod(t, t.TempDir(), cgroupmodel.V1("0-7"), map[string]cgroup.Limit{appPath: was})
		_, err := Make(h.facts(), app, r)
		why := "no whole number of microseconds"
		if r.Burst == 0 && (r.Period < cgroup.MinPeriod || r.Period > cgroup.MaxPeriod) {
			why = "is not within 1ms to 1s"
		}
		if err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%+v: %v", r, err)
		}
	}
}
