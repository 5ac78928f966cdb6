package realrun

import (
	"strconv"

	"github.com/unthrottle/unthrottle/internal/load/loadgen"
	"github.com/unthrottle/unthrottle/internal/scenario"
	"github.com/unthrottle/unthrottle/internal/scenario/balance"
)

// wholeName is a service's name, of one in shards the whole's.
func wholeName(w *scenario.Workload) string {
	if w.Shards != nil {
		return w.Shards.Name
	}
	return w.Name
}

// shardNames are the shards of the service that w is the first one of.
func shardNames(w *scenario.Workload) (all []string) {
	if w.Shards == nil {
		return nil
	}
	for i := range w.Shards.Balance.Shards {
		all = append(all, w.Shards.Name+"-"+strconv.Itoa(i+1))
	}
	return all
}

// join tells the first shard of each service of the others.
func join(s *scenario.Scenario, jobs []job) {
	first := map[*scenario.Shards]*serviceJob{}
	for _, j := range jobs {
		one, ok := j.(*serviceJob)
		if !ok || s.Workloads[one.index].Shards == nil {
			continue
		}
		of := s.Workloads[one.index].Shards
		if first[of] == nil {
			first[of] = one
		}
		first[of].shards = append(first[of].shards, one)
	}
}

// addresses are where a service's shards are reached, in their order.
func (j *serviceJob) addresses(rule balance.Rule) *loadgen.Shards {
	all := &loadgen.Shards{Rule: rule}
	for _, shard := range j.shards {
		all.Addrs = append(all.Addrs, shard.process.Addr())
	}
	return all
}

// shardServed is the tries of one shard.
func shardServed(shards *scenario.Shards, r loadgen.ShardResult) scenario.WorkloadOutcome {
	out := scenario.WorkloadOutcome{Latencies: figures(loadgen.StreamResult{Answered: r.Answered, Latency: r.Latency})}
	out.Refused, out.Unfinished = r.Refused, r.Unfinished
	if shards.Balance.DeadAfter > 0 {
		dead := r.Dead.Seconds()
		out.MarkedDead, out.DeadSeconds = &r.Marked, &dead
	}
	return out
}

// sumShards gives the whole of each service in shards what its shards used, and how
// often they were marked.
func sumShards(s *scenario.Scenario, out map[string]scenario.WorkloadOutcome) {
	for i := range s.Workloads {
		shards := s.Workloads[i].Shards
		if shards == nil {
			continue
		}
		whole, shard := out[shards.Name], out[s.Workloads[i].Name]
		whole.CPUSeconds = plus(whole.CPUSeconds, shard.CPUSeconds)
		whole.DeadSeconds = plus(whole.DeadSeconds, shard.DeadSeconds)
		whole.MarkedDead = plus(whole.MarkedDead, shard.MarkedDead)
		out[shards.Name] = whole
	}
}

// plus adds two measurements.
func plus[N uint64 | float64](a, b *N) *N {
	if a == nil || b == nil {
		return b
	}
	sum := *a + *b
	return &sum
}
