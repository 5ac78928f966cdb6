package apply

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup/cgroupmodel"
	"github.com/unthrottle/unthrottle/internal/podresize"
	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/internal/txn/change"
)

// pods are the specs of a modelled API server, and a kubelet that makes them true when it is looked at. Each operation
// is one of the kernel model's too, so that what kills or fails there does so here.
type pods struct {
	k     *cgroupmodel.Kernel
	v     cgroup.Version
	of    map[string]*podresize.CPU
	lazy  bool   // the kubelet does nothing
	stuck bool   // it says that it did, and the kernel has another limit
	says  string // what it says of a larger limit
}

func (f *pods) before(kind, value string) error {
	if f.k.Before == nil {
		return nil
	}
	return f.k.Before(cgroupmodel.Op{Kind: kind, Path: "/api", File: podresize.Setting, Value: value})
}

func (f *pods) Read(_ context.Context, name string) (podresize.CPU, error) {
	if err := f.before("read", ""); err != nil {
		return podresize.CPU{}, err
	}
	c := f.of[name]
	if c == nil {
		return podresize.CPU{}, fmt.Errorf("pods %q: %w", name, fs.ErrNotExist)
	}
	return *c, nil
}

func (f *pods) Write(_ context.Context, name string, from, to podresize.Milli) error {
	if err := f.before("write", to.String()); err != nil {
		return err
	}
	c := f.of[name]
	switch {
	case c.Limit != from:
		return podresize.ErrChanged
	case to > 4000:
		return &podresize.Refused{Message: "exceeded quota: cpu"}
	}
	c.Limit, c.Pending, c.Message = to, "", ""
	if to > c.Actual && f.says != "" {
		c.Pending, c.Message = f.says, "Node didn't have enough capacity"
	}
	return nil
}

// Wait is the kubelet's turn.
func (f *pods) Wait(_ context.Context, n int) bool {
	for _, c := range f.of {
		if c.Pending != "" || f.lazy || n == 1 { // the first look comes too early
			continue
		}
		if c.Actual = c.Limit; !f.stuck {
			file, value := "cpu.cfs_quota_us", fmt.Sprint(int64(c.Limit)*100)
			if f.v == cgroup.V2 {
				file, value = "cpu.max", value+" 100000"
			}
			before := f.k.Before
			f.k.Before = nil
			_ = f.k.Write(cgroup.CPU, "/pods/a", file, value)
			f.k.Before = before
		}
	}
	return n < 20
}

const ofPod = "shop/cart/app"

func newPods(s *scene) *pods {
	s.limit("/pods/a", "200000 100000 0")
	f := &pods{k: s.k, v: s.v, of: map[string]*podresize.CPU{ofPod: {UID: "one", ID: "a", Limit: 2000, Actual: 2000}}}
	s.env.Pods = f
	return f
}

func raised(s *scene, to string) (Result, error) {
	return Apply(s.t.Context(), s.env, txn.Purpose{Target: txn.Target{Path: "/pods/a"}, Remedy: "raise"},
		[]change.Change{{Kind: change.KindPodCPU, Op: change.OpSet, Path: "/pods", Unit: ofPod, File: podresize.Setting,
			From: s.env.Pods.(*pods).of[ofPod].Limit.String(), To: to}})
}

func (s *scene) quotaOfA() float64 {
	l, err := cgroup.ReadLimit(s.k, "/pods/a")
	s.must(err)
	cpus, _ := l.Bound()
	return cpus
}

// A limit is raised in the spec, by the kubelet in the kernel, and put back: after the container was started again and
// after a reboot too, as the spec outlives both.
func TestPodThereAndBack(t *testing.T) {
	bothVersions(t, func(t *testing.T, v cgroup.Version) {
		s := newScene(t, v)
		f := newPods(s)
		_, err := raised(s, "3500m")
		s.must(err)
		if c := f.of[ofPod]; c.Limit != 3500 || c.Actual != 3500 || s.quotaOfA() != 3.5 {
			t.Errorf("applied: %+v, the kernel has %v", c, s.quotaOfA())
		}
		if drift, err := Drift(s.env); err != nil || len(drift) > 0 {
			t.Errorf("drift %+v, %v", drift, err)
		}
		s.env.BootID = "boot-2"
		res, err := Restore(t.Context(), s.env, Selector{})
		if err != nil || len(res.Skipped) > 0 || f.of[ofPod].Limit != 2000 || s.quotaOfA() != 2 {
			t.Errorf("restored: %+v, %v: %+v, the kernel has %v", res.Skipped, err, f.of[ofPod], s.quotaOfA())
		}
	})
}

// What cannot be raised leaves nothing raised, and the error says whose refusal it is.
func TestPodRefused(t *testing.T) {
	for want, arrange := range map[string]func(f *pods) (to string){
		"the API server refuses it: exceeded quota: cpu": func(*pods) string { return "5" },
		"no room for it now (Deferred: Node didn't have": func(f *pods) string { f.says = "Deferred"; return "3" },
		"cannot do it on this node (Infeasible: Node":    func(f *pods) string { f.says = "Infeasible"; return "3" },
		"the kubelet has not done it in half a minute":   func(f *pods) string { f.lazy = true; return "3" },
		"limits.cpu: the kubelet has not done it":        func(f *pods) string { f.stuck = true; return "3" },
		"is no number of CPUs of a pod's spec":           func(*pods) string { return "many" },
		"pods \"gone/cart/app\": file does not":          nil,
	} {
		s := newScene(t, cgroup.V2)
		f := newPods(s)
		var err error
		if arrange == nil {
			_, err = Apply(t.Context(), s.env, txn.Purpose{Target: txn.Target{Path: "/pods/a"}}, []change.Change{{
				Kind: change.KindPodCPU, Op: change.OpSet, Path: "/pods", Unit: "gone/cart/app",
				File: podresize.Setting, To: "1"}})
		} else {
			_, err = raised(s, arrange(f))
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
		if inForce, err := Status(s.env); err != nil || len(inForce) > 0 || f.of[ofPod].Limit != 2000 {
			t.Errorf("%s: left in force %+v, %v, spec %v", want, inForce, err, f.of[ofPod].Limit)
		}
	}
}

// Another program's resize, another pod of the name, and one that is gone are left alone; what cannot be read now is
// kept.
func TestPodOfOthers(t *testing.T) {
	for want, change := range map[string]func(s *scene, f *pods){
		whyForeign:  func(_ *scene, f *pods) { f.of[ofPod].Limit = 2500 },
		whyOtherPod: func(_ *scene, f *pods) { f.of[ofPod].UID = "two" },
		whyNoPod:    func(_ *scene, f *pods) { delete(f.of, ofPod) },
		"":          func(s *scene, _ *pods) { s.env.Pods = nil },
	} {
		s := newScene(t, cgroup.V1)
		f := newPods(s)
		_, err := raised(s, "3")
		s.must(err)
		change(s, f)
		res, err := Restore(t.Context(), s.env, Selector{})
		if want == "" {
			if !errors.As(err, new(*NotRestored)) || !strings.Contains(err.Error(), errNoPods.Error()) {
				t.Errorf("nobody to ask: %v", err)
			}
			s.env.Pods = f
			if _, err := Restore(t.Context(), s.env, Selector{}); err != nil || f.of[ofPod].Limit != 2000 {
				t.Errorf("asked again: %v, %v", f.of[ofPod].Limit, err)
			}
			continue
		}
		if err != nil || len(res.Skipped) != 1 || res.Skipped[0].Why != want || len(res.Writes) > 0 {
			t.Errorf("%+v, %v, want %q", res, err, want)
		}
	}
}

// Killed before any operation, between the journal's entry and the API server's answer too, one restore puts the spec
// back.
func TestPodKilledAtEveryPoint(t *testing.T) {
	bothVersions(t, func(t *testing.T, v cgroup.Version) {
		for n := 1; ; n++ {
			s := newScene(t, v)
			f := newPods(s)
			before := s.k.Snapshot()
			s.killAt(n)
			crashed, err := crashes(func() error { _, err := raised(s, "3"); return err })
			s.must(err)
			s.k.Before = nil
			if err := s.everythingBack(before); err != nil || f.of[ofPod].Limit != 2000 {
				t.Fatalf("killed at point %d: %v, %v", n, f.of[ofPod], err)
			}
			if !crashed {
				if n < 7 {
					t.Errorf("only %d points were walked", n-1)
				}
				return
			}
		}
	})
}

// Where nobody answers about a pod, the drift of the other pods is not asked about: each question would have to wait as long.
func TestDriftAsksInVainOnce(t *testing.T) {
	s := newScene(t, cgroup.V2)
	f := newPods(s)
	for _, name := range []string{ofPod, "shop/cart/web"} {
		f.of[name] = &podresize.CPU{UID: name, Limit: 500, Actual: 500}
		_, err := Apply(t.Context(), s.env, txn.Purpose{Target: txn.Target{Path: "/pods/a"}, Remedy: "raise"},
			[]change.Change{{Kind: change.KindPodCPU, Op: change.OpSet, Path: "/pods", Unit: name, File: podresize.Setting,
				From: f.of[name].Limit.String(), To: "3"}})
		s.must(err)
	}
	asked := 0
	s.k.Before = func(op cgroupmodel.Op) error {
		if op.Path == "/api" {
			asked++
			return context.DeadlineExceeded
		}
		return nil
	}
	if drift, err := Drift(s.env); err != nil || len(drift) > 0 || asked != 1 {
		t.Errorf("asked %d times: %+v, %v", asked, drift, err)
	}
}
