package report

import (
	"cmp"
	"context"
	"slices"

	"github.com/unthrottle/unthrottle/fleet/engine"
	view "github.com/unthrottle/unthrottle/internal/ui/report/fleet"
)

// hostShare is what a host's containers of a service and a limit came to.
type hostShare struct {
	Service                               string
	LimitCPUs                             float64
	Cluster, Node                         string
	Seconds, StoppedShare, ContendedShare *float64
}

// spreads are how unlike the hosts of each service are, for the limit that it has on most of them.
func spreads(ctx context.Context, e engine.Engine) (map[string]*view.Spread, error) {
	found := map[string]*view.Spread{}
	var alike []hostShare
	take := func() {
		if len(alike) == 0 {
			return
		}
		s := spreadOf(alike)
		if before := found[alike[0].Service]; s != nil && (before == nil || before.Hosts < s.Hosts) {
			found[alike[0].Service] = s
		}
		alike = nil
	}
	err := engine.Each(ctx, e, "host_shares", func(h hostShare) {
		if len(alike) > 0 && (alike[0].Service != h.Service || alike[0].LimitCPUs != h.LimitCPUs) {
			take()
		}
		alike = append(alike, h)
	})
	take()
	return found, err
}

// spreadOf compares hosts, without those that were observed for less than half as long as another: they may have seen
// the peak alone. nil: there are too few.
func spreadOf(hosts []hostShare) *view.Spread {
	longest := 0.0
	for _, h := range hosts {
		if h.Seconds != nil {
			longest = max(longest, *h.Seconds)
		}
	}
	hosts = slices.DeleteFunc(hosts, func(h hostShare) bool {
		return h.Seconds == nil || *h.Seconds < max(leastMeasured, longest/2)
	})
	if len(hosts) < leastOnHosts {
		return nil
	}
	return &view.Spread{
		Hosts:     len(hosts),
		Stopped:   rangeOf(hosts, func(h *hostShare) *float64 { return h.StoppedShare }),
		Contended: rangeOf(hosts, func(h *hostShare) *float64 { return h.ContendedShare }),
	}
}

// rangeOf is the range of a share, and the first of the hosts with most of it; nil: it is not known of each host.
func rangeOf(hosts []hostShare, share func(*hostShare) *float64) *view.Range {
	if slices.ContainsFunc(hosts, func(h hostShare) bool { return share(&h) == nil }) {
		return nil
	}
	// Sums have no order, so the last bits of shares differ from run to run: what is equal as it is shown is equal here.
	hosts = slices.Clone(hosts)
	slices.SortStableFunc(hosts, func(a, b hostShare) int { return cmp.Compare(rounded(*share(&a)), rounded(*share(&b))) })
	r := &view.Range{Least: rounded(*share(&hosts[0])), Median: rounded(*share(&hosts[len(hosts)/2])),
		Most: rounded(*share(&hosts[len(hosts)-1]))}
	most := hosts[slices.IndexFunc(hosts, func(h hostShare) bool { return rounded(*share(&h)) == r.Most })]
	r.MostOn = hostName(most.Cluster, most.Node)
	return r
}
