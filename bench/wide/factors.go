package main

import (
	"fmt"

	"github.com/unthrottle/unthrottle/bench/study"
	"github.com/unthrottle/unthrottle/internal/experiment/capacity"
)

// factors compares the same points, with the same requests, at other factors of slowing.
func (p *page) factors() {
	all := []host{faster, wide, slower}
	p.Line("\n## K against K\n\nThe same points of `%s` at %.0f %% on %d CPUs, with the same requests.", capacity.Shard, 100*levels[comparedLevel], wide.CPUs)
	t := p.Table("remedy", "K", "p50 ms", "p99 ms", "CPUs used", "throttled periods", "a switch, us", "a sleep of 1 ms ends late, us")
	used := map[host]float64{} // of the quota
	for _, name := range []string{capacity.Quota, capacity.Burst, capacity.Pin} {
		for _, h := range all {
			r := p.have.find(pointOf(h, capacity.Shard, name, comparedLevel, 1))
			if r == nil {
				t.Rowf("%s | %d | %s", names[name], h.K, notYet)
				continue
			}
			throttled := "-"
			if r.Point.Periods != nil && r.Point.Throttled != nil {
				throttled = fmt.Sprintf("%d of %d", *r.Point.Throttled, *r.Point.Periods)
			}
			if name == capacity.Quota && r.Point.CPUUsed != nil {
				used[h] = *r.Point.CPUUsed
			}
			t.Rowf("%s | %d | %s | %s | %s | %s | %.1f | %.0f", names[name], h.K, study.Decimals(r.Point.P50, 1), study.Decimals(r.Point.P99, 1), study.Decimals(r.Point.CPUUsed, 2), throttled,
				r.Calibration.SwitchNs/1e3, r.Calibration.SleepLateUs)
		}
	}
	if len(used) < len(all) {
		return
	}
	p.Line("\nRequests work for a given CPU time, at each K. What comes beside it is instructions, which cost an emulated CPU more of its time the smaller K is: reading, sending,")
	p.Line("switching. So the same requests use %.2f, %.2f and %.2f CPUs under the quota, and stop it the more. A burst, which is hardly stopped, is the same at each K.", used[faster], used[wide], used[slower])
	p.Line("All remedies are compared at one K, and the gains at K = %d are of a service that needs %.0f %% more than at K = %d.", wide.K, 100*(used[wide]/used[slower]-1), slower.K)
}
