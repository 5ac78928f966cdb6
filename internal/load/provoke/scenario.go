package provoke

import (
	"time"

	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
)

// Scenario is cgroups and the processes in them. Its paths are below a cgroup of the
// test, which has [CPUs] CPUs.
type Scenario struct {
	Name string
	// Cause that an explanation of Target must name first.
	Cause  diagnose.Cause
	Target string
	Groups []Group
	Loads  []Load
}

// CPUs is how many CPUs scenarios are made for: all that they may use together.
const CPUs = 2

// MostForeign is what others may have of a run that counts: the hypervisor of its CPUs, and strangers of the time that its threads
// waited or were stopped.
const MostForeign = 0.02

// Group is one cgroup; parents come before children.
type Group struct {
	Path  string
	Limit float64 // in CPUs per 100 ms; 0: none
	CPUs  int     // of its cpuset; 0: all that its parent has
}

// Load is one process.
type Load struct {
	Group string
	Pools []Pool
}

// Demand is the CPUs that the target's processes want on average without any limit.
func (s Scenario) Demand() float64 {
	sum := 0.0
	for _, l := range s.Loads {
		if l.Group == s.Target {
			for _, p := range l.Pools {
				sum += p.demand()
			}
		}
	}
	return sum
}

const ms = time.Millisecond

// one is a scenario of one cgroup.
func one(cause diagnose.Cause, name string, g Group, pools ...Pool) Scenario {
	g.Path = "target"
	return Scenario{Name: name, Cause: cause, Target: g.Path, Groups: []Group{g}, Loads: []Load{{g.Path, pools}}}
}

// ordinaryRequests is a pool of ordinary requests: short runs, spread.
func ordinaryRequests(threads int) Pool {
	return Pool{Name: "http-worker", Threads: threads, Work: ms, Every: 20 * ms}
}

// Causes are scenarios that provoke one cause each.
func Causes() []Scenario {
	return []Scenario{
		one(diagnose.Burst, "a pool fed in bursts", Group{Limit: 0.6},
			Pool{Name: "http-worker", Threads: 8, Work: 10 * ms, Every: 250 * ms, Together: true}),
		one(diagnose.Pool, "a collector beside requests", Group{Limit: 0.8},
			Pool{Name: "GC Thread", Threads: 4, Work: 30 * ms, Every: 450 * ms, Together: true}, ordinaryRequests(4)),
		one(diagnose.Shortage, "burners and a sleeper", Group{Limit: 1},
			Pool{Name: "burner", Threads: 4, Work: 10 * ms}, Pool{Name: "sleeper", Threads: 1, Work: ms / 10, Every: 10 * ms}),
		one(diagnose.TinyLimit, "one thread, work longer than the quota", Group{Limit: 0.4, CPUs: 1},
			Pool{Name: "worker", Threads: 1, Work: 60 * ms, Every: 270 * ms}),
		{Name: "a sibling that spends the parent's quota", Cause: diagnose.Ancestor, Target: "pod/target",
			Groups: []Group{{Path: "pod", Limit: 0.7}, {Path: "pod/target"}, {Path: "pod/sibling"}},
			Loads: []Load{{"pod/target", []Pool{ordinaryRequests(4)}},
				{"pod/sibling", []Pool{{Name: "sidecar", Threads: 2, Work: 10 * ms}}}}},
		{Name: "the quota of a cgroup in it, beside a busy neighbour", Cause: diagnose.Inside, Target: "target",
			Groups: []Group{{Path: "target"}, {Path: "target/vcpu", Limit: 0.2}, {Path: "neighbour"}},
			Loads: []Load{{"target/vcpu", []Pool{{Name: "worker", Threads: 1, Work: 10 * ms}}},
				{"neighbour", []Pool{{Name: "batch", Threads: 4, Work: 5 * ms, Every: 50 * ms, Together: true}}}}},
		one(diagnose.Debt, "long kernel work", Group{Limit: 0.3},
			Pool{Name: "reader", Threads: 1, Work: 200 * ms, Every: 1100 * ms, Kernel: true}),
		{Name: "a busy neighbour", Cause: diagnose.Neighbours, Target: "target",
			Groups: []Group{{Path: "target"}, {Path: "neighbour"}},
			Loads: []Load{{"target", []Pool{{Name: "http-worker", Threads: 2, Work: 5 * ms, Every: 20 * ms}}},
				// In bursts that leave CPU time to the recorder.
				{"neighbour", []Pool{{Name: "batch", Threads: 8, Work: 12 * ms, Every: 90 * ms, Together: true}}}}},
		one(diagnose.Cpuset, "4 busy threads on one CPU", Group{CPUs: 1},
			Pool{Name: "worker", Threads: 4, Work: 10 * ms}),
		one(diagnose.None, "idle", Group{Limit: 1}),
		one(diagnose.None, "busy below the limit", Group{Limit: 1.5}, Pool{Name: "worker", Threads: 1, Work: 5 * ms, Every: 10 * ms}),
	}
}
