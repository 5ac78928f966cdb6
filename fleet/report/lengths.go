package report

import (
	"cmp"
	"context"
	"slices"

	"github.com/unthrottle/unthrottle/fleet/engine"
	"github.com/unthrottle/unthrottle/internal/stats"
	view "github.com/unthrottle/unthrottle/internal/ui/report/fleet"
)

// length is how many of something took up to so many ms, and longer than the length before.
type length struct {
	ms    float64
	count int64
}

// lengths are those of one service, from the shortest on.
type lengths []length

// lengthsOf asks a question that has a service, a length in us and a count.
func lengthsOf(ctx context.Context, e engine.Engine, question string) (map[string]lengths, error) {
	all := map[string]lengths{}
	err := e.Ask(ctx, question, func(scan func(...any) error) error {
		var service string
		var us, count int64
		if err := scan(&service, &us, &count); err != nil {
			return err
		}
		all[service] = append(all[service], length{float64(us) / 1000, count})
		return nil
	})
	return all, err
}

// count is how many there are.
func (l lengths) count() (all int64) {
	for _, one := range l {
		all += one.count
	}
	return all
}

// quantile is the length, in ms, that a part q does not exceed; nil: there was none, or that is not known.
func (l lengths) quantile(q float64) *float64 {
	if i := stats.Bucket(len(l), func(i int) int64 { return l[i].count }, q); i >= 0 {
		return new(l[i].ms)
	}
	return nil
}

// mostRoles bounds the roles of a service in the document.
const mostRoles = 8

// rolesOf asks how long threads of each role took, of all services.
func rolesOf(ctx context.Context, e engine.Engine) (map[string][]view.Role, error) {
	all, names := map[string][]lengths{}, map[string][]string{}
	err := e.Ask(ctx, "responses", func(scan func(...any) error) error {
		var service, role string
		var us, runs int64
		if err := scan(&service, &role, &us, &runs); err != nil {
			return err
		}
		if n := len(names[service]); n == 0 || names[service][n-1] != role {
			names[service], all[service] = append(names[service], role), append(all[service], nil)
		}
		of := &all[service][len(all[service])-1]
		*of = append(*of, length{float64(us) / 1000, runs})
		return nil
	})
	roles := map[string][]view.Role{}
	for service, of := range all {
		some := make([]view.Role, len(of))
		for i, l := range of {
			some[i] = view.Role{Name: names[service][i], Runs: l.count(), P50: *l.quantile(0.5), P99: *l.quantile(0.99)}
		}
		slices.SortFunc(some, func(a, b view.Role) int { return cmp.Or(cmp.Compare(b.Runs, a.Runs), cmp.Compare(a.Name, b.Name)) })
		roles[service] = some[:min(len(some), mostRoles)]
	}
	return roles, err
}
