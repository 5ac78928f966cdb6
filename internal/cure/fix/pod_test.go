package fix

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/podresize"
	"github.com/unthrottle/unthrottle/internal/see/observe"
	"github.com/unthrottle/unthrottle/internal/txn/apply"
	"github.com/unthrottle/unthrottle/internal/txn/change"
)

// oneSpec has the spec of one container.
type oneSpec struct{ podresize.FS }

func (oneSpec) Read(_ context.Context, name string) (podresize.CPU, error) {
	if name != "shop/cart/app" {
		return podresize.CPU{}, errors.New("no answer")
	}
	return podresize.CPU{UID: "one", Limit: 500}, nil
}

func TestPodOf(t *testing.T) {
	app := container.Container{Namespace: "shop", Pod: "cart", ContainerName: "app", PodUID: "one"}
	if got := PodOf(t.Context(), oneSpec{}, app); got == nil || got.Unread != "" || got.CPU.Limit != 500 ||
		got.Name != "shop/cart/app" {
		t.Errorf("%+v", got)
	}
	nameless, unit := app, app
	nameless.Pod, unit.PodUID = "", ""
	if got := PodOf(t.Context(), oneSpec{}, nameless); got == nil || got.Unread != "its name is not known" {
		t.Errorf("%+v", got)
	}
	app.ContainerName = "other"
	if got := PodOf(t.Context(), oneSpec{}, app); got == nil || got.Unread != "no answer" {
		t.Errorf("%+v", got)
	}
	if a, b := PodOf(t.Context(), nil, app), PodOf(t.Context(), oneSpec{}, unit); a != nil || b != nil {
		t.Errorf("%+v, %+v", a, b)
	}
}

// What the kubelet writes for a resize of ours, to the container and its pod, is no other program's; what it writes
// else is.
func TestTheKubeletWritesForUs(t *testing.T) {
	level := func(path string, quota time.Duration) cgroup.Level {
		return cgroup.Level{Path: path, Limit: cgroup.Limit{Quota: quota, Period: cgroup.DefaultPeriod}}
	}
	r := newRun(Env{Apply: apply.Env{StateDir: t.TempDir()}},
		Options{Target: container.Container{Group: cgroup.Group{Path: "/q/pod/app"}}})
	r.own = observe.Observation{Levels: []cgroup.Level{level("/q/pod/app", 50e6), level("/q/pod", 50e6), level("/q",
		400e6)}}
	after := observe.Observation{Levels: []cgroup.Level{level("/q/pod/app", 100e6), level("/q/pod", 100e6), level("/q",
		400e6)}}
	if r.writtenByOthers(after) == "" {
		t.Error("nothing was written, and a limit that changed is not told")
	}
	r.res.Writes = []apply.Write{{Kind: change.KindPodCPU, Path: "/q/pod"}}
	if why := r.writtenByOthers(after); why != "" {
		t.Error(why)
	}
	after.Levels[2].Limit.Quota = 300e6
	if r.writtenByOthers(after) == "" {
		t.Error("a level that no resize changes")
	}
}
