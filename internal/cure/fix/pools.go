package fix

import (
	"cmp"
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/internal/objective"
	"github.com/unthrottle/unthrottle/internal/sim/forecast"
	"github.com/unthrottle/unthrottle/internal/stats"
	"github.com/unthrottle/unthrottle/internal/text"
)

// Pool is what the recordings before and after a change show of one thread pool.
type Pool struct {
	Name string `json:"name"`
	// Judged: the verdict rests on this one, or on all together; false of each where requests are judged.
	Judged bool `json:"judged"`
	// Before and After are null where it did not run.
	Before *PoolTimes `json:"before"`
	After  *PoolTimes `json:"after"`
}

// PoolTimes are quantiles of a pool's runs: of the time from a wake-up until it runs, and to its next sleep. A p99 is null
// where there are fewer than leastOfPool runs.
type PoolTimes struct {
	Runs          int      `json:"runs"`
	DelayP50Ms    float64  `json:"delay_p50_ms"`
	DelayP99Ms    *float64 `json:"delay_p99_ms"`
	ResponseP50Ms float64  `json:"response_p50_ms"`
	ResponseP99Ms *float64 `json:"response_p99_ms"`
}

// mostPools bounds the pools that are kept, those that used most CPU time before.
const mostPools = 16

// poolsOf compares the pools of two recordings, the one that used most CPU time before first.
func poolsOf(judged forecast.Judged, before, after *forecast.Runs) []Pool {
	names := slices.Compact(slices.Sorted(slices.Values(slices.Concat(before.Pools(), after.Pools()))))
	pools := []Pool{}
	for _, name := range byUse(before, names, mostPools) {
		pools = append(pools, Pool{text.Sanitize(name, 0), judged.Of == forecast.OfPool &&
			(judged.Pool == "" || name == judged.Pool), timesOf(before.Of(name)), timesOf(after.Of(name))})
	}
	return pools
}

// byUse are those of the pools that used most CPU time, at most so many.
func byUse(runs *forecast.Runs, names []string, most int) []string {
	used := map[string]time.Duration{}
	for _, name := range names {
		used[name] = usedBy(runs, name)
	}
	names = slices.SortedStableFunc(slices.Values(names), func(a, b string) int { return cmp.Compare(used[b], used[a]) })
	return names[:min(len(names), most)]
}

// usedBy is the CPU time of a pool.
func usedBy(runs *forecast.Runs, pool string) (sum time.Duration) {
	for _, run := range runs.Of(pool) {
		sum += run.CPU
	}
	return sum
}

func timesOf(runs []forecast.Run) *PoolTimes {
	if len(runs) == 0 {
		return nil
	}
	sorted := func(pick func(forecast.Run) time.Duration) []float64 {
		all := make([]float64, len(runs))
		for i, run := range runs {
			all[i] = ms(pick(run))
		}
		slices.Sort(all)
		return all
	}
	delays := sorted(func(r forecast.Run) time.Duration { return r.Delay })
	responses := sorted(func(r forecast.Run) time.Duration { return r.Response })
	t := &PoolTimes{Runs: len(runs), DelayP50Ms: stats.Rank(delays, 0.5), ResponseP50Ms: stats.Rank(responses, 0.5)}
	if len(runs) >= leastOfPool {
		t.DelayP99Ms, t.ResponseP99Ms = new(stats.Rank(delays, objective.P99)), new(stats.Rank(responses, objective.P99))
	}
	return t
}
