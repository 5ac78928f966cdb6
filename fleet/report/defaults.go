package report

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/unthrottle/unthrottle/fleet/engine"
	"github.com/unthrottle/unthrottle/internal/explain/threadpool"
	"github.com/unthrottle/unthrottle/internal/text"
	view "github.com/unthrottle/unthrottle/internal/ui/report/fleet"
)

const (
	// maxDefaults bounds the pools in the document: their names are strangers'.
	maxDefaults = 1000
	// maxPools bounds those of a service.
	maxPools = 5
	// longestThread bounds these names.
	longestThread = 64
)

// samePool is a pool in the containers of a service in which its figures are the same. A limit of null is none.
type samePool struct {
	Pool, ThreadName, Service                           string
	LimitCPUs                                           *float64
	Threads, Runnable, RunnableP99, Running, Containers int
	DefaultCPUs                                         *int
}

// defaults says which thread pools the containers of now have, and how many threads of them are too many.
func defaults(ctx context.Context, e engine.Engine, _ Options, d *view.Document) error {
	sums := newDefaultSums()
	if err := engine.Each(ctx, e, "recorded_containers", func(line struct{ Containers int }) {
		sums.of.Containers = line.Containers
	}); err != nil {
		return err
	}
	err := engine.Each(ctx, e, "defaults", sums.add)
	d.Defaults = sums.end(d.Services)
	return err
}

// defaultSums are the pools so far.
type defaultSums struct {
	table *threadpool.Table
	of    view.Defaults
	last  samePool
	row   *threadpool.Row // that of the last pool; nil: the table has none
	// wide are the known pools with threads too many, by service.
	wide map[string][]string
	// byService are the pools of each service.
	byService map[string]*view.Defaults
}

func newDefaultSums() *defaultSums {
	return &defaultSums{table: threadpool.Known(), wide: map[string][]string{}, byService: map[string]*view.Defaults{}}
}

// add takes containers, in the order of pools and services.
func (s *defaultSums) add(p samePool) {
	begins := len(s.of.Pools) == 0 || p.Pool != s.last.Pool || p.ThreadName != s.last.ThreadName
	if begins {
		s.row = nil
		if r, ok := s.table.Row(p.Pool); ok {
			s.row = &r
		}
		if len(s.of.Pools) >= 2*maxDefaults {
			keepMost(&s.of, maxDefaults)
		}
		s.of.Pools = append(s.of.Pools, defaultOf(p, s.row))
	}
	of := &s.of.Pools[len(s.of.Pools)-1]
	own := s.byService[p.Service]
	if own == nil {
		own = &view.Defaults{}
		s.byService[p.Service] = own
	}
	if begins || p.Service != s.last.Service {
		of.Services++
		if len(own.Pools) >= 2*maxPools {
			keepMost(own, maxPools)
		}
		own.Pools = append(own.Pools, defaultOf(p, s.row))
		own.Pools[len(own.Pools)-1].Services = 1
	}
	p.addTo(&own.Pools[len(own.Pools)-1], s.row)
	if wide := s.wide[p.Service]; p.addTo(of, s.row) > 0 && !slices.Contains(wide, p.Pool) {
		s.wide[p.Service] = append(wide, p.Pool)
	}
	s.last = p
}

// end adds what comes back with pools that fit: of the services in which only one known pool is too wide, where
// recordings tell it. What comes back where several are cannot be told apart.
func (s *defaultSums) end(services []view.Service) view.Defaults {
	if s.of.Pools == nil {
		s.of.Pools = []view.Default{}
	}
	cores := map[string]float64{}
	for i := range services {
		services[i].Pools = []view.Default{}
		if own := s.byService[services[i].Name]; own != nil {
			keepMost(own, maxPools)
			services[i].Pools = own.Pools
		}
		for _, price := range services[i].Prices {
			if wide := s.wide[services[i].Name]; price.Remedy == view.Pools && len(wide) == 1 {
				cores[wide[0]] += price.CoresNow - price.CoresAfter
			}
		}
	}
	for i := range s.of.Pools {
		if p := &s.of.Pools[i]; p.Pool != nil {
			if saved, ok := cores[*p.Pool]; ok {
				p.Cores = new(rounded(saved))
			}
		}
	}
	keepMost(&s.of, maxDefaults)
	return s.of
}

// keepMost keeps so many pools, those with most surplus threads, and counts the others.
func keepMost(d *view.Defaults, most int) {
	slices.SortStableFunc(d.Pools, func(a, b view.Default) int {
		return cmp.Or(cmp.Compare(b.Surplus(), a.Surplus()), cmp.Compare(b.Threads, a.Threads))
	})
	more := max(0, len(d.Pools)-most)
	d.Pools, d.More = d.Pools[:len(d.Pools)-more], d.More+more
}

// defaultOf begins with a pool. A newer program's key, which this table has not, is a name.
func defaultOf(p samePool, row *threadpool.Row) view.Default {
	if row == nil {
		return view.Default{Name: new(text.Sanitize(cmp.Or(p.ThreadName, p.Pool), longestThread))}
	}
	of := view.Default{Pool: &row.Key, Library: &row.Library}
	if row.Setting != "" {
		of.Setting = &row.Setting
	}
	return of
}

// addTo adds the containers, and returns how many of their threads are known to be too many.
func (p *samePool) addTo(of *view.Default, row *threadpool.Row) (tooMany int64) {
	of.Containers += p.Containers
	of.Threads += int64(p.Containers) * int64(p.Threads)
	of.Runnable += int64(p.Containers) * int64(p.Runnable)
	of.RunnableP99 += int64(p.Containers) * int64(p.RunnableP99)
	of.RunnableMost = max(of.RunnableMost, p.Runnable)
	if p.DefaultCPUs != nil && (of.DefaultCPUs == nil || *of.DefaultCPUs < *p.DefaultCPUs) {
		of.DefaultCPUs = p.DefaultCPUs
	}
	if row == nil || p.LimitCPUs == nil {
		return 0
	}
	if p.DefaultCPUs != nil && float64(*p.DefaultCPUs) > math.Ceil(*p.LimitCPUs) {
		of.BeyondLimit += p.Containers
	}
	if fit, ok := row.FittingThreads(p.Threads, p.Running, *p.LimitCPUs); ok {
		if of.TooMany == nil {
			of.TooMany = new(int64(0))
		}
		tooMany = int64(p.Containers) * int64(max(0, p.Threads-fit))
		*of.TooMany += tooMany
	}
	return tooMany
}
