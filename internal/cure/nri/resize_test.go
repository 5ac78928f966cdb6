package nri

import (
	"context"
	"testing"
	"time"

	"github.com/containerd/nri/pkg/api"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
)

// Before an update of the quota others are asked to make room, for this container alone; on v2 the runtime's copy follows. An update is
// never refused.
func TestBeforeResize(t *testing.T) {
	burst := cgroup.LimitFiles(cgroup.V2)[1]
	lowered := []cgroup.Value{{Controller: cgroup.CPU, Path: path, File: burst, Value: "30000"}}
	p := live(&runtime{})
	h := handlers{p, p.session}
	resize := func(id string, quota int64) []*api.ContainerUpdate {
		t.Helper()
		r := &api.LinuxResources{Cpu: &api.LinuxCPU{}}
		if quota != 0 {
			r.Cpu.Quota, r.Cpu.Period = api.Int64(quota), api.UInt64(100_000)
		}
		updates, err := h.UpdateContainer(t.Context(), nil, &api.Container{Id: id, Name: "app"}, r)
		if err != nil {
			t.Fatal(err)
		}
		return updates
	}
	if got := resize(id, 30000); len(got) > 0 {
		t.Errorf("nobody makes room: %v", got)
	}
	asked := 0
	p.BeforeResize(func(ctx context.Context, at func(string) bool, want cgroup.Limit) []cgroup.Value {
		asked++
		_, bounded := ctx.Deadline()
		if !bounded || want.Quota != 30*time.Millisecond || want.Period != 100*time.Millisecond ||
			!at(path) || at(path+"0") || at("/kubepods") {
			t.Errorf("%+v, bounded %v", want, bounded)
		}
		return lowered
	})
	if got := resize(id, 30000); len(got) != 1 || got[0].ContainerId != id || got[0].Linux.Resources.Unified[burst] != "30000" {
		t.Errorf("%v", got)
	}
	lowered[0].File = cgroup.LimitFiles(cgroup.V1)[2]
	if got := resize(id, 30000); len(got) > 0 {
		t.Errorf("v1 has no burst in NRI: %v", got)
	}
	lowered = nil
	if got := resize(id, 30000); len(got) > 0 || asked != 3 {
		t.Errorf("nothing was lowered: %v, asked %d times", got, asked)
	}
	for _, quota := range []int64{0, -1} {
		if resize(id, quota); asked != 3 {
			t.Errorf("quota %d: asked", quota)
		}
	}
	if resize("../../etc", 30000); asked != 3 {
		t.Error("asked for no id")
	}
}
