package report

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/fleet/engine"
	"github.com/unthrottle/unthrottle/internal/demand/leastlimit"
	"github.com/unthrottle/unthrottle/internal/demand/periodmodel"
	view "github.com/unthrottle/unthrottle/internal/ui/report/fleet"
)

// longBursts reads what containers' rows tell of bursts in longer periods. A period of which they do not tell it for all of the time that
// other limits are known for is left out: what is missing are files of older programs, and times in which a quota held a container back
// for seconds, which are those that count.
func longBursts(ctx context.Context, e engine.Engine, of func(containerNo int64) *sized) error {
	return engine.Each(ctx, e, "longbursts", func(line struct {
		ContainerNo, PeriodUS, StoppedUS, DelayUS int64
		KnownSeconds                              float64
		FromStep, Step                            int
	}) {
		c, period := of(line.ContainerNo), microseconds(line.PeriodUS)
		if c.CandidateSeconds == nil || line.KnownSeconds < *c.CandidateSeconds-1 {
			return
		}
		o := &c.others[0]
		if n := len(o.Long); n == 0 || o.Long[n-1].Period != period {
			known := time.Duration(line.KnownSeconds * float64(time.Second))
			o.Long = append(o.Long, periodmodel.Long{Period: period, Known: known, From: line.FromStep})
		}
		l := &o.Long[len(o.Long)-1]
		l.Bursts = append(l.Bursts,
			periodmodel.Burst{Step: line.Step, Stopped: microseconds(line.StoppedUS), Delay: microseconds(line.DelayUS)})
	})
}

// bursts are the limits that are enough with a burst of one quota, by its period; 0: the period that the limit has. None is there that is
// not known.
type bursts map[time.Duration]size

// take keeps the periods that are known of both, with what the one needs that needs more.
func (b bursts) take(other bursts) {
	maps.DeleteFunc(b, func(period time.Duration, _ size) bool { _, known := other[period]; return !known })
	for period, limit := range b {
		limit.take(other[period])
		b[period] = limit
	}
}

// best is the period in which the limit is least, in tenths of a CPU; of equal ones the shorter. ok is false where none is known.
func (b bursts) best() (period time.Duration, limit size, ok bool) {
	for p, l := range b {
		less, more := leastlimit.Tenths(l.cpus), leastlimit.Tenths(limit.cpus)
		if !ok || less < more || less == more && p < period {
			period, limit, ok = p, l, true
		}
	}
	return period, limit, ok
}

// burstPeriod is the period of the burst that most of its cores would have, where it is a longer one than their limits have; else 0.
func (s *service) burstPeriod() (period time.Duration) {
	most := 0.0
	for _, g := range s.groups {
		i := slices.IndexFunc(g.options, func(o option) bool { return o.remedy == view.Burst })
		if i >= 0 && g.cores > most {
			period, most = g.options[i].period, g.cores
		}
	}
	return period
}

// periodMS is a longer period in milliseconds; nil: the period that a limit has.
func periodMS(period time.Duration) *float64 {
	if period == 0 {
		return nil
	}
	return new(float64(period.Milliseconds()))
}
