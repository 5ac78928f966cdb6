package report

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/unthrottle/unthrottle/fleet/engine"
	view "github.com/unthrottle/unthrottle/internal/ui/report/fleet"
)

// portion is what a host's containers of a service and a limit came to, or those of a shard. Of what has no seconds nothing
// is known.
type portion struct {
	name                                string
	seconds, stopped, wanted, contended float64
	requests                            []lengths
	// with are the shards on a host, or the hosts of a shard.
	with map[string]bool
}

// add adds a container's.
func (p *portion) add(seconds, stopped, wanted, contended *float64, requests lengths) {
	plus := func(to, v *float64) {
		if v != nil {
			*to += *v
		}
	}
	plus(&p.seconds, seconds)
	plus(&p.stopped, stopped)
	plus(&p.wanted, wanted)
	plus(&p.contended, contended)
	if len(requests) > 0 {
		p.requests = append(p.requests, requests)
	}
}

// Figures of one; nil: it is not known.
func (p *portion) stoppedShare() *float64   { return share(p.stopped, p.seconds) }
func (p *portion) contendedShare() *float64 { return share(p.contended, p.wanted) }
func (p *portion) requestP99() *float64     { return merged(p.requests...).requestP99() }

func share(part, of float64) *float64 {
	if of == 0 {
		return nil
	}
	return new(rounded(part / of))
}

// alike are the portions of a service with a limit.
type alike struct {
	service string
	limit   float64
	hosts   []*portion
	shards  []*portion
	// of are the places of the shards.
	of map[*sized]*portion
}

// spreads are how unlike the hosts of each service are, and how unlike its shards, for the limit that most of them have.
func spreads(ctx context.Context, e engine.Engine, containers []sized, requests map[withLimit]lengths) (
	overHosts, overShards map[string]*view.Spread, err error) {
	overHosts, overShards = map[string]*view.Spread{}, map[string]*view.Spread{}
	shards := make(map[int64]*sized, len(containers))
	for i := range containers {
		shards[containers[i].ContainerNo] = containers[i].shard
	}
	var now alike
	take := func() {
		if s, n, shards := spreadOf(now.hosts); s != nil && (overHosts[now.service] == nil || overHosts[now.service].Hosts < n) {
			s.Hosts, s.Shards, overHosts[now.service] = n, shards, s
		}
		if s, n, hosts := spreadOf(now.shards); s != nil && (overShards[now.service] == nil || overShards[now.service].Shards < n) {
			s.Shards, s.Hosts, overShards[now.service] = n, hosts, s
		}
	}
	err = engine.Each(ctx, e, "shares", func(line struct {
		Service                                                  string
		LimitCPUs                                                float64
		ContainerNo                                              int64
		Cluster, Node                                            string
		Seconds, StoppedSeconds, WantedSeconds, ContendedSeconds *float64
	}) {
		if now.of == nil || now.service != line.Service || now.limit != line.LimitCPUs { // the first service may have no name
			take()
			now = alike{service: line.Service, limit: line.LimitCPUs, of: map[*sized]*portion{}}
		}
		host := hostName(line.Cluster, line.Node)
		if n := len(now.hosts); n == 0 || now.hosts[n-1].name != host {
			now.hosts = append(now.hosts, &portion{name: host, with: map[string]bool{}})
		}
		s := shards[line.ContainerNo]
		if now.of[s] == nil {
			now.of[s] = &portion{name: hostName(s.Cluster, s.Node) + "/" + cmp.Or(s.Pod, s.Container), with: map[string]bool{}}
			now.shards = append(now.shards, now.of[s])
		}
		on := now.hosts[len(now.hosts)-1]
		on.with[now.of[s].name], now.of[s].with[host] = true, true
		for _, p := range []*portion{on, now.of[s]} {
			p.add(line.Seconds, line.StoppedSeconds, line.WantedSeconds, line.ContendedSeconds,
				requests[withLimit{line.ContainerNo, line.LimitCPUs}])
		}
	})
	take()
	return overHosts, overShards, err
}

// spreadOf compares parts, without those that were observed for less than half as long as another: they may have seen the
// peak alone. It is of n, with so many others; nil: they are too few.
func spreadOf(parts []*portion) (s *view.Spread, n, with int) {
	longest := 0.0
	for _, p := range parts {
		longest = max(longest, p.seconds)
	}
	parts = slices.DeleteFunc(parts, func(p *portion) bool { return p.seconds < max(leastMeasured, longest/2) })
	if len(parts) < leastOnHosts {
		return nil, 0, 0
	}
	others := map[string]bool{}
	for _, p := range parts {
		maps.Copy(others, p.with)
	}
	return &view.Spread{Stopped: rangeOf(parts, (*portion).stoppedShare), Contended: rangeOf(parts, (*portion).contendedShare),
		RequestP99: rangeOf(parts, (*portion).requestP99)}, len(parts), len(others)
}

// rangeOf is the range of a figure, and the first of the parts with most of it; nil: it is known of too few.
func rangeOf(parts []*portion, of func(*portion) *float64) *view.Range {
	type known struct {
		*portion
		figure float64
	}
	var all []known
	for _, p := range parts {
		if v := of(p); v != nil {
			all = append(all, known{p, *v})
		}
	}
	if len(all) < leastOnHosts || 2*len(all) < len(parts) {
		return nil
	}
	// Figures are rounded: the last bits of sums differ from run to run, and what is equal as it is shown is equal here.
	slices.SortStableFunc(all, func(a, b known) int { return cmp.Compare(a.figure, b.figure) })
	most := all[len(all)-1].figure
	on := all[slices.IndexFunc(all, func(k known) bool { return k.figure == most })]
	return &view.Range{Of: len(all), Least: all[0].figure, Median: all[len(all)/2].figure, Most: most, MostOn: on.name}
}
