package remedy

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/txn/apply"
	"github.com/unthrottle/unthrottle/test/lab/require"
)

// watched is this machine's cgroups, and after each write the limit that one of them has then.
type watched struct {
	*cgroup.Host
	path string
	seen []cgroup.Limit
}

func (w *watched) Write(c cgroup.Controller, path, file, value string) error {
	err := w.Host.Write(c, path, file, value)
	if l, bad := cgroup.ReadLimit(w.Host, w.path); path == w.path && bad == nil {
		w.seen = append(w.seen, l)
	}
	return err
}

// However often remedies that keep the limit are written and undone, in whatever order, a container that takes all it gets has no more
// CPU time than the kernel's own bound: a quota for each period that begins, each write beginning one, and a burst. No write in between
// lifts the quota or grants more than the limit.
func TestPeriodsKeepTheLimitOnTheKernel(t *testing.T) {
	require.EachCgroup(t, "the limits that are written")
	const limit, states = 0.3, 12
	r := newReal(t)
	host := &watched{Host: r.Host, path: r.target}
	env := r.env()
	env.FS = host
	requests := []Request{{Kind: Burst}, {Kind: Burst, Period: 20 * time.Millisecond}, {Kind: Burst, Period: 300 * time.Millisecond},
		{Kind: Burst, Period: time.Second}, {Kind: Period, Period: time.Second}, {Kind: Period, Period: 10 * time.Millisecond}}
	draw := rand.New(rand.NewPCG(3, 4))
	began, used := time.Now(), usage(t, r.target)
	l, err := cgroup.ReadLimit(r.Host, r.target)
	if err != nil {
		t.Fatal(err)
	}
	// What the kernel may give in a state: the quota that the write, or the period that was under way, gives at once, and one for each
	// period that begins in it; a CPU stops at its next tick only.
	const untilATick = 2 * 10 * time.Millisecond
	most, since := l.Quota, time.Now()
	ends := func(l cgroup.Limit) {
		most += l.Quota*(1+time.Since(since)/l.Period) + l.Burst + untilATick
		since = time.Now()
	}
	for range states {
		p, err := r.plan(r.target, requests[draw.IntN(len(requests))])
		if err != nil {
			t.Fatal(err)
		}
		for _, write := range []func() error{
			func() error { _, err := apply.Apply(context.Background(), env, p.Purpose(), p.Changes); return err },
			func() error { _, err := apply.Restore(context.Background(), env, apply.Selector{}); return err },
		} {
			time.Sleep(time.Duration(draw.IntN(900)) * time.Millisecond)
			ends(l)
			host.seen = nil
			if err := write(); err != nil {
				t.Fatal(err)
			}
			for _, at := range host.seen {
				if cpus, limited := at.Bound(); !limited || cpus > limit*1.001 {
					t.Errorf("%v: in between the limit is %+v", p.Shown(), at)
				}
				most += at.Quota
			}
			l = host.seen[len(host.seen)-1]
		}
	}
	ends(l)
	used, lasted := usage(t, r.target)-used, time.Since(began)
	t.Logf("%v of CPU time in %v: %.3f CPUs, with %d writes; the kernel's bound is %v", used.Round(time.Millisecond),
		lasted.Round(time.Millisecond), used.Seconds()/lasted.Seconds(), 2*states, most.Round(time.Millisecond))
	if used > most {
		t.Errorf("%v of CPU time, above the kernel's bound of %v", used, most)
	}
	if used == 0 {
		t.Error("it did not run")
	}
}

// usage is the CPU time of a cgroup.
func usage(t *testing.T, path string) time.Duration {
	t.Helper()
	h, err := cgroup.Open("/proc")
	if err != nil {
		t.Fatal(err)
	}
	s, err := cgroup.ReadStat(h, cgroup.Group{Path: path, CPUSetPath: path, CPUAcctPath: path})
	if err != nil || s.Usage == nil {
		t.Fatalf("%+v, %v", s, err)
	}
	return *s.Usage
}
