package realrun

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/unthrottle/unthrottle/internal/sim/simulate"
	"github.com/unthrottle/unthrottle/test/lab/require"
)

const threeShards = `version: 1
duration: 2s
host: {cpus: 2}
cgroups: {shard: {quota: 50ms}}
workloads:
  web:
    kind: service
    cgroup: shard
    threads: 2
    work: 1ms
    arrivals: {per_second: 300}
    timeout: 1s
    shards: {count: 3, balance: hash, skew: 1, dead: {after: 5}}
  gc: {kind: gc, cgroup: shard, of: web, threads: 1, work: 1ms, requests: 50}
`

// Each shard is a process in a cgroup of its own with its share of the requests;
// the whole is their sum; and all has the keys of the simulated one.
func TestShards(t *testing.T) {
	require.CPUs(t, 2)
	o, tree := options(t)
	s := parsed(t, threeShards)
	r, err := Run(t.Context(), s, o)
	if err != nil {
		t.Fatal(err)
	}
	whole, count, used := r.Outcome.Workloads["web"], uint64(0), 0.0
	for i := range 3 {
		name := fmt.Sprintf("web-%d", i+1)
		w, c := r.Outcome.Workloads[name], r.Outcome.Cgroups[fmt.Sprintf("shard-%d", i+1)]
		count += w.Count
		used += *w.CPUSeconds
		share := s.Workloads[0].Shards.Balance.Share(i)
		if got := float64(w.Count) / float64(whole.Count); math.Abs(got-share) > 0.1 {
			t.Errorf("%s answered %.2f of the requests, want %.2f", name, got, share)
		}
		// Its requests and collections are what its cgroup used, and little else.
		if least := float64(w.Count) * 0.001; c.UsageSeconds < 0.9*least || c.UsageSeconds > 3*least+0.3 {
			t.Errorf("%s: %d requests of 1 ms, and its cgroup used %.3f s", name, w.Count, c.UsageSeconds)
		}
		if gc := r.Outcome.Workloads[fmt.Sprintf("gc-%d", i+1)]; math.Abs(float64(gc.Count)-float64(w.Count)/50) > 2 {
			t.Errorf("%s: %d collections after %d requests", name, gc.Count, w.Count)
		}
		if w.MarkedDead == nil || w.DeadSeconds == nil || w.Failed != nil {
			t.Errorf("%s: %+v", name, w)
		}
	}
	if count != whole.Count || whole.CPUSeconds == nil || math.Abs(*whole.CPUSeconds-used) > 1e-9 ||
		whole.Failed == nil || whole.MarkedDead == nil {
		t.Errorf("the shards answered %d, the whole: %+v", count, whole)
	}
	simulated, err := simulate.Run(s, simulate.Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	if a, b := keys(t, r.Outcome), keys(t, simulated.Outcome); !slices.Equal(a, b) {
		t.Errorf("real %q\nsimulated %q", a, b)
	}
	if paths, pids := sandboxes(t, tree); len(paths)+len(pids) > 0 {
		t.Errorf("left: %q, processes %v", paths, pids)
	}
}
