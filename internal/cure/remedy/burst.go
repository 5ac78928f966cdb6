package remedy

import (
	"fmt"
	"time"

	"github.com/unthrottle/unthrottle/bandwidth"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/sim/forecast"
	"github.com/unthrottle/unthrottle/internal/stats"
	"github.com/unthrottle/unthrottle/internal/text"
)

// shortLook is how short a look tells only of that moment.
const shortLook = 3 * time.Second

// noBurst is why a kernel cannot do it, mayBeSpent what it does.
const (
	noBurst    = "this kernel has no burst (since 5.14)"
	mayBeSpent = "unused time of earlier periods may be spent"
)

// Burst keeps the quota. Unused time of earlier periods may be spent.
const Burst = Kind(forecast.Burst)

// burst is the row of Burst.
var burst = Remedy{
	Kind:        Burst,
	Settings:    []Setting{{Flag: "burst"}, {Flag: "period"}},
	Effects:     []*forecast.Effect{forecast.BurstEffect},
	ShowsDemand: true,
	Merit: &Merit{Rank: 0, Why: "its mean use is below its limit, so unused time of earlier periods can carry " +
		"it over its peaks", Spare: true},
	here: burstHere,
	request: func(row forecast.Remedy, r *Request) string {
		r.Burst, r.Period = row.Burst, row.Period
		return ""
	},
	row: func(r Request, c forecast.Container) (forecast.Remedy, bool) {
		asked := forecast.Remedy{Name: forecast.Burst, Burst: r.Burst, Period: r.Period}
		if asked.Burst == 0 && r.Period > 0 {
			asked.Burst = bandwidth.QuotaOf(c.Limit, r.Period)
		} else if asked.Burst == 0 {
			asked.Burst = c.Quota.Quota
		}
		return asked, true
	},
	plan:       (*planner).burst,
	parameters: []string{ParamStartup},
}

// LongPeriods are [forecast.LongPeriods], for the agent, which imports no forecasts.
func LongPeriods() []time.Duration { return forecast.LongPeriods }

// burst keeps the quota and lets unused time of earlier periods be spent.
func (p *planner) burst() error {
	if !p.f.HasBurst {
		return p.refuse(noBurst, "try --remedy pin or raise")
	}
	limit, limited, at := cgroup.Effective(p.levels())
	if !limited {
		return p.refuse("neither it nor an ancestor has a quota", "")
	}
	// A shorter period shortens each stop even where nothing is left to save up.
	shorter := p.r.Period > 0 && p.r.Period < p.f.Groups[at].Limit.Period
	if !shorter {
		if err := p.noSpare(limit); err != nil {
			return err
		}
	}
	path := p.target.Group.Path
	own := p.f.Groups[path].Limit
	if err := p.mayChange(at); err != nil {
		return err
	}
	if err := p.halfWritten(p.r.Period); err != nil {
		return err
	}
	for _, level := range p.levels() {
		cpusHere, ok := level.Limit.Bound()
		switch {
		case !ok:
			p.keepLimit(level.Path)
		case level.Path != path && (!p.mayLift(level.Path) || !p.f.inScope(level.Path)):
			if !own.Limited() || cpusHere < 2*limit {
				p.skip(level.Path, fmt.Sprintf("its quota of %s stays without burst and may still stop one", text.CPUs(cpusHere)))
			}
		default:
			want, err := p.bursting(level, at)
			if err != nil {
				return err
			}
			p.setLimit(level.Path, want, mayBeSpent)
			if level.Path == path || level.Path == at {
				p.shows(level.Limit, want)
			}
			if cpus, ok := (cgroup.Limit{Quota: want.Burst, Period: want.Period}).Bound(); ok && level.Path == path {
				p.warn("while it is in force the kernel refuses its owner a limit below the burst, %s (%s)", text.CPUs(cpus), afterwards)
			}
		}
	}
	return nil
}

// shows notes the burst and the period that a limit gets, for people; the container's own, which comes first, stands.
func (p *planner) shows(was, want cgroup.Limit) {
	if p.plan.settings != nil {
		return
	}
	p.plan.settings = map[string]string{}
	if want.Burst > 0 {
		p.plan.settings["burst"] = want.Burst.String()
	}
	if want.Period != was.Period {
		p.plan.settings["period"] = want.Period.String()
	}
}

// afterwards is the way out for the owner of a container with a burst.
const afterwards = "the agent lowers the burst first where the runtime has NRI; else restore it before"

// noSpare refuses a burst where the whole limit is used. A short look may have caught a peak, which is what a burst is for, and a trial
// tells: then the plan says what was seen.
func (p *planner) noSpare(limit float64) error {
	o := p.r.Observed
	if o == nil || o.UsedCPUs == nil {
		return nil
	}
	why := Unfilled(*o.UsedCPUs, limit)
	if why == "" {
		return nil
	}
	if p.r.OnTrial || o.Window > 0 && o.Window < shortLook {
		p.warn("it used %s of %s in the last %s; if it always does, a burst has nothing to spend",
			text.CPUs(*o.UsedCPUs), text.CPUs(limit), text.Duration(o.Window))
		return nil
	}
	return p.refuse(why, "it needs more CPU: try --remedy raise or pin")
}

// Unfilled says why a container that uses so many CPUs of its limit cannot fill a burst; "": it can. A forecast, fix and apply ask
// this of the same stretch of time. Work that takes whatever it gets, such as a compaction, leaves nothing to save up,
// whatever a replay of the recorded amount says.
func Unfilled(usedCPUs, limitCPUs float64) string {
	if usedCPUs < stats.UsedUp*limitCPUs {
		return ""
	}
	return fmt.Sprintf("it used %s of %s on average, so that a burst had no unused time to spend", text.CPUs(usedCPUs),
		text.CPUs(limitCPUs))
}

// bursting is the limit of one level with burst, in the period that was asked for where it takes that.
func (p *planner) bursting(level cgroup.Level, binding string) (cgroup.Limit, error) {
	want := level.Limit
	if forecast.TakesPeriod(want, p.r.Period, level.Path == p.target.Group.Path || level.Path == binding) {
		want = p.inPeriod(level.Path, want, p.r.Period)
	}
	want.Burst = want.Quota
	if p.r.Burst > 0 {
		want.Burst = p.r.Burst
		if level.Path != p.target.Group.Path {
			want.Burst = min(p.r.Burst, want.Quota)
		}
	}
	if p.r.Room { // the owner writes quotas of the period that it knows
		want.Burst = min(want.Burst, (min(want.Quota, level.Limit.Quota) / 2).Truncate(time.Microsecond))
	}
	if err := want.CheckBounds(); err != nil {
		return want, p.refuse(err.Error(), "choose a burst up to the quota and a period of 1 ms to 1 s")
	}
	return want, nil
}
