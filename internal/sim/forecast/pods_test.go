package forecast

import (
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/bandwidth"
	rt "github.com/unthrottle/unthrottle/internal/see/recording/recordingtest"
	"github.com/unthrottle/unthrottle/internal/sim/simulate"
)

// The kubelet gives a pod of one container the container's quota. A remedy helps the container in the pod as it helps it
// alone: a forecast that changed the container's quota only said of each such pod that nothing at equal CPU helps.
func TestAPodWithTheQuotaOfItsContainer(t *testing.T) {
	recorded := func(parent string, pod time.Duration) *Load {
		s := rt.New(8).Limit(50*ms, 100*ms).Process("java")
		if pod > 0 {
			s.ParentLimit(pod, 100*ms)
		}
		s.Header().Levels[1].Path = parent
		w := s.Threads("http-worker", 8)
		s.Repeat(8, 250*ms, func(at time.Duration) { s.Work(at, 8*ms, w...) })
		return loadOf(t, s.Run(2*time.Second))
	}
	stopped := func(l *Load, r Remedy) float64 {
		s, err := l.scenarioWith(r)
		if err != nil {
			t.Fatalf("%+v: %v", r, err)
		}
		out, err := simulate.RunReplay(s, &l.replay, simulate.Options{Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		return *out.Outcome.Cgroups[s.Cgroups[l.container].Name].StoppedSeconds
	}
	alone := recorded("/parent", 0)
	left := stopped(alone, Remedy{Name: None})
	const pod = "/kubepods/podc1a3b0a2-3f3b-4d52-8a2b-0c6f1d2e3f40"
	for _, r := range []Remedy{{Name: Burst, Burst: 50 * ms}, {Name: Raise, Factor: 2}, {Name: Narrow, Burst: 50 * ms},
		{Name: Narrow, Credit: 100 * ms}} {
		want := stopped(alone, r)
		if want > left/4 {
			t.Errorf("%+v alone: stopped %.3f s of %.3f s", r, want, left)
		}
		for _, quota := range []time.Duration{50 * ms, 60 * ms} {
			if got := stopped(recorded(pod, quota), r); got > want+left/10 {
				t.Errorf("%+v in a pod with a quota of %v: stopped %.3f s, alone %.3f s", r, quota, got, want)
			}
		}
	}
	// A plan changes no other ancestor's quota.
	if got := stopped(recorded("/parent", 50*ms), Remedy{Name: Burst, Burst: 50 * ms}); got < left/2 {
		t.Errorf("burst below an ancestor that is no pod: stopped %.3f s, left alone %.3f s", got, left)
	}
}

// What a plan writes into the quotas along the path is what the forecast simulates.
func TestLimitsOfAPod(t *testing.T) {
	limitOf := func(quota, burst, period time.Duration) bandwidth.Limit {
		return bandwidth.Limit{Quota: quota, Burst: burst, Period: period}
	}
	for name, c := range map[string]struct {
		pod      time.Duration
		r        Remedy
		own, out bandwidth.Limit
	}{
		"burst": {50 * ms, Remedy{Name: Burst, Burst: 50 * ms}, limitOf(50*ms, 50*ms, 100*ms),
			limitOf(50*ms, 50*ms, 100*ms)},
		"burst, beside another": {80 * ms, Remedy{Name: Burst, Burst: 50 * ms}, limitOf(50*ms, 50*ms, 100*ms),
			limitOf(80*ms, 50*ms, 100*ms)},
		"burst in a shorter period": {50 * ms, Remedy{Name: Burst, Burst: 10 * ms, Period: 20 * ms},
			limitOf(10*ms, 10*ms, 20*ms), limitOf(50*ms, 10*ms, 100*ms)},
		"raise":                     {50 * ms, Remedy{Name: Raise, Factor: 2}, limitOf(100*ms, 0, 100*ms), limitOf(100*ms, 0, 100*ms)},
		"raise, beside another":     {80 * ms, Remedy{Name: Raise, Factor: 2}, limitOf(100*ms, 0, 100*ms), limitOf(130*ms, 0, 100*ms)},
		"raise of a pod that binds": {40 * ms, Remedy{Name: Raise, Factor: 1.5}, limitOf(60*ms, 0, 100*ms), limitOf(60*ms, 0, 100*ms)},
		"period": {50 * ms, Remedy{Name: Period, Period: 20 * ms}, limitOf(10*ms, 0, 20*ms),
			limitOf(50*ms, 0, 100*ms)},
		"narrow": {50 * ms, Remedy{Name: Narrow}, limitOf(5*ms, 0, 10*ms), limitOf(5*ms, 0, 10*ms)},
		"narrow, burst": {50 * ms, Remedy{Name: Narrow, Burst: 50 * ms}, limitOf(50*ms, 50*ms, 100*ms),
			limitOf(50*ms, 50*ms, 100*ms)},
		"narrow, burst, beside others": {80 * ms, Remedy{Name: Narrow, Burst: 50 * ms}, limitOf(50*ms, 50*ms, 100*ms),
			limitOf(80*ms, 50*ms, 100*ms)},
	} {
		s := rt.New(8).Limit(50*ms, 100*ms).ParentLimit(c.pod, 100*ms).Process("java")
		s.Header().Levels[1].Path = "/kubepods.slice/kubepods-podc1a3b0a2_3f3b_4d52_8a2b_0c6f1d2e3f40.slice"
		s.Work(10*ms, 8*ms, s.Threads("http-worker", 8)...)
		l := loadOf(t, s.Run(time.Second))
		with, err := l.scenarioWith(c.r)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if own, pod := with.Cgroups[l.container].Limit, with.Cgroups[l.pods[0]].Limit; own != c.own || pod != c.out {
			t.Errorf("%s: container %+v, pod %+v", name, own, pod)
		}
	}
}
