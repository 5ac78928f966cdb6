package generate

import (
	"math/rand/v2"
	"time"

	"github.com/unthrottle/unthrottle/bandwidth"
	"github.com/unthrottle/unthrottle/internal/demand"
	"github.com/unthrottle/unthrottle/internal/demand/periodmodel"
	"github.com/unthrottle/unthrottle/internal/sim/simulate/coarse"
)

const (
	// levels of load, from next to nothing to the peak of the day.
	levels = 6
	period = bandwidth.DefaultPeriod
	// periods of a row.
	periods = int(demand.SlotLength / period)
)

// offered is what one container wants in five minutes: work and width of each period.
type offered struct {
	workNS []int64
	width  []int32
}

// profile is how a service's threads want CPUs.
type profile struct {
	// base is the CPUs used all the time at the peak, at a width of baseWidth; bursts of burstWork come once in so many
	// periods.
	base       float64
	baseWidth  int32
	burstWidth int32
	burstWork  time.Duration
	burstEvery int
}

// profileOf draws a service that a limit holds back a little, or not at all.
func profileOf(chance *rand.Rand, limit float64) *profile {
	p := &profile{
		base:       limit * (0.05 + 0.5*chance.Float64()*chance.Float64()),
		burstEvery: 5 + chance.IntN(100),
	}
	p.baseWidth = int32(p.base) + 1 + int32(chance.IntN(2))
	p.burstWidth = p.baseWidth + int32(chance.IntN(int(3*limit)+2))
	p.burstWork = time.Duration(float64(p.burstWidth) * float64(10+chance.IntN(80)) * float64(time.Millisecond))
	return p
}

// offered is the demand at a level of load.
func (p *profile) offered(chance *rand.Rand, level int) offered {
	d := offered{make([]int64, periods), make([]int32, periods)}
	load := float64(level+1) / levels
	for i := range d.workNS {
		work := p.base * load * (0.5 + chance.Float64()) * float64(period)
		d.workNS[i], d.width[i] = int64(min(work, float64(p.baseWidth)*float64(period))), p.baseWidth
		if chance.Float64() < load/float64(p.burstEvery) {
			d.workNS[i], d.width[i] = d.workNS[i]+int64(p.burstWork), p.burstWidth
		}
	}
	return d
}

// ran is what became of a demand under a limit.
type ran struct {
	width, wanted       map[int32]time.Duration
	used, stopped, busy time.Duration
	throttled           int64
	stops               demand.Stops
}

// under steps a demand through the period model, with a setting. What waits behind the quota stays
// as wide as it came. other is told of the limit's periods, if it is not nil.
func (d *offered) under(limitCPUs float64, with periodmodel.Setting, other *periodmodel.Model) ran {
	r := ran{width: map[int32]time.Duration{}, wanted: map[int32]time.Duration{}}
	parts := max(1, int64(with.Period/period))
	l := coarse.Limit{QuotaNS: parts * int64(limitCPUs*float64(period)), PeriodNS: parts * int64(period)}
	if with.Burst {
		l.BurstNS = l.QuotaNS
	}
	var s coarse.State
	var last int32
	var whole periodmodel.Period
	for i, work := range d.workNS {
		width := d.width[i]
		if s.BacklogNS > 0 {
			width = max(width, last)
		}
		last = width
		p := s.StepPart(&l, parts, int64(i)%parts, work, width)
		on := time.Duration(p.UsedNS / int64(width))
		stopped := time.Duration(p.StoppedNS)
		r.width[width] += on
		r.wanted[width] += on + stopped
		r.width[0] += period - on
		r.wanted[0] += period - on - stopped
		r.used += time.Duration(p.UsedNS)
		r.stopped += stopped
		r.stops.Add(stopped)
		r.busy += on
		if p.Throttled {
			r.throttled++
		}
		whole = periodmodel.Period{Length: whole.Length + period, Used: whole.Used + time.Duration(p.UsedNS),
			Width: max(whole.Width, int(width)), Stopped: whole.Stopped + stopped, Throttled: whole.Throttled || p.Throttled}
		if int64(i+1)%parts == 0 {
			if other != nil {
				other.Add(whole)
			}
			whole = periodmodel.Period{}
		}
	}
	return r
}
