package report

import (
	"cmp"
	"context"
	"slices"

	"github.com/unthrottle/unthrottle/fleet/engine"
	requestscan "github.com/unthrottle/unthrottle/internal/explain/requests"
	"github.com/unthrottle/unthrottle/internal/stats"
	view "github.com/unthrottle/unthrottle/internal/ui/report/fleet"
)

// length is how many of something took up to so many microseconds, and longer than the length before.
type length struct{ Microseconds, Times int64 }

// lengths are those of one service, from the shortest on.
type lengths []length

// lengthsByService asks a question about lengths.
func lengthsByService(ctx context.Context, e engine.Engine, question string) (map[string]lengths, error) {
	services := map[string]lengths{}
	err := engine.Each(ctx, e, question, func(line struct {
		Service string
		length
	}) {
		services[line.Service] = append(services[line.Service], line.length)
	})
	return services, err
}

// withLimit is a container while it had a limit; 0: it had none.
type withLimit struct {
	container int64
	limit     float64
}

// requestsTaken are how long requests took, by service and by container.
func requestsTaken(ctx context.Context, e engine.Engine) (byService map[string]lengths, byContainer map[withLimit]lengths, err error) {
	byService, byContainer = map[string]lengths{}, map[withLimit]lengths{}
	return byService, byContainer, engine.Each(ctx, e, "requests", func(line struct {
		Service     string
		LimitCPUs   float64
		ContainerNo int64
		length
	}) {
		all, key := byService[line.Service], withLimit{line.ContainerNo, line.LimitCPUs}
		if n := len(all); n > 0 && all[n-1].Microseconds == line.Microseconds {
			all[n-1].Times += line.Times
		} else {
			byService[line.Service] = append(all, line.length)
		}
		byContainer[key] = append(byContainer[key], line.length)
	})
}

// merged are lengths of several together.
func merged(parts ...lengths) lengths {
	all := slices.Concat(parts...)
	slices.SortFunc(all, func(a, b length) int { return cmp.Compare(a.Microseconds, b.Microseconds) })
	return all
}

// requestP99 is the 99th percentile of requests in ms; nil: they are too few.
func (l lengths) requestP99() *float64 {
	if l.count() < requestscan.Least {
		return nil
	}
	return l.quantile(0.99)
}

// count is how many there are.
func (l lengths) count() (n int64) {
	for _, some := range l {
		n += some.Times
	}
	return n
}

// quantile is the length, in ms, that a part q does not exceed; nil: there was none, or that is not known.
func (l lengths) quantile(q float64) *float64 {
	if i := stats.Bucket(len(l), func(i int) int64 { return l[i].Times }, q); i >= 0 {
		return new(float64(l[i].Microseconds) / 1000)
	}
	return nil
}

// mostRoles bounds the roles of a service in the document.
const mostRoles = 8

// rolesByService asks how long threads of each role took.
func rolesByService(ctx context.Context, e engine.Engine) (map[string][]view.Role, error) {
	type key struct{ service, role string }
	responses := map[key]lengths{}
	err := engine.Each(ctx, e, "responses", func(line struct {
		Service, Role string
		length
	}) {
		k := key{line.Service, line.Role}
		responses[k] = append(responses[k], line.length)
	})
	roles := map[string][]view.Role{}
	for k, l := range responses {
		role := view.Role{Name: k.role, Runs: l.count(), P50: *l.quantile(0.5), P99: *l.quantile(0.99)}
		roles[k.service] = append(roles[k.service], role)
	}
	for service, its := range roles {
		slices.SortFunc(its, func(a, b view.Role) int {
			return cmp.Or(cmp.Compare(b.Runs, a.Runs), cmp.Compare(a.Name, b.Name))
		})
		roles[service] = its[:min(len(its), mostRoles)]
	}
	return roles, err
}
