package generate

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/demand"
	"github.com/unthrottle/unthrottle/internal/demand/leastlimit"
	"github.com/unthrottle/unthrottle/internal/demand/periodmodel"
	"github.com/unthrottle/unthrottle/internal/sim/forecast"
)

// Applied is the truth about a remedy, over the containers that have rows before it and with it.
type Applied struct {
	Remedy        string  `json:"remedy"`
	Containers    int     `json:"containers"`
	StoppedBefore float64 `json:"stopped_share_before"`
	StoppedAfter  float64 `json:"stopped_share_after"`
	CoresBefore   float64 `json:"cores_before"`
	CoresAfter    float64 `json:"cores_after"`
	// Promised is what is saved by the need at the busiest load before of which there is a recording.
	Promised float64 `json:"saved_promised"`
	// Worse is in how many requests take longer than before.
	Worse int          `json:"worse"`
	Days  []AppliedDay `json:"days"`
	// seconds are those before and with it.
	seconds [2]float64
}

// AppliedDay is one day with a remedy, 0 the first.
type AppliedDay struct {
	Day          int     `json:"day"`
	Containers   int     `json:"containers"`
	StoppedShare float64 `json:"stopped_share"`
	Cores        float64 `json:"cores"`
	seconds      float64
}

// Treated is the truth about a service that gets a remedy.
type Treated struct {
	Remedy string `json:"remedy"`
	// CPUs are the limit with it, or CPUs of its own. StoppedShare is with it, of all time.
	CPUs         float64 `json:"cpus"`
	StoppedShare float64 `json:"stopped_share"`
}

// treatment is a remedy that a service gets.
type treatment struct {
	setting
	remedy string
	// from is the slot in which its first container gets it.
	from int
}

// apart is in how many slots the containers get it, one after another.
const apart = slotsPerHour

// worsePart is in which part of the containers requests take worseBy times as long with a remedy, against what was promised.
const worsePart, worseBy = 0.1, 2

// shortOnly is the part of the services whose owners keep the period of 100 ms.
const shortOnly = 0.5

// since is the slot in which a container gets the remedy of its service.
func (t *treatment) since(l *life) int { return t.from + l.no%apart }

// at is what a container has in a slot, and whether that is with the remedy.
func (s *service) at(l *life, slot int) (*setting, bool) {
	if s.treated != nil && slot >= s.treated.since(l) {
		return &s.treated.setting, true
	}
	return &s.setting, false
}

// treat gives some services with recordings the remedy on the node that needs fewest cores, with what surely is enough, when
// half of the time is over. A burst is stepped through the period model. With a narrow and a pin no quota stops them.
func (s *service) treat(no int, demands *[levels]offered, o Options) {
	chance := rand.New(rand.NewPCG(o.Seed, 1<<42|uint64(no)))
	if chance.Float64() >= o.Treated || s.sizing == nil {
		return
	}
	var t *treatment
	consider := func(kind remedy.Kind, cpus float64, with periodmodel.Setting) {
		if kind != remedy.Pin {
			cpus = leastlimit.Tenths(cpus * (1 + off) * (1 + sure))
		}
		if cpus < s.limit && (t == nil || cpus < t.limit) {
			t = &treatment{remedy: string(kind), setting: setting{limit: cpus, with: with}, from: o.Hours * slotsPerHour / 2}
		}
	}
	for _, name := range forecast.Priceable() {
		of, onNode := remedy.Find(remedy.Kind(name))
		if _, is := s.sizing.needs[name]; is && onNode {
			consider(of.Kind, s.sizing.cpus(name, s.sizing.top), periodmodel.Setting{Burst: of.Kind == remedy.Burst})
		}
	}
	longer := s.sizing.long
	if chance.Float64() < shortOnly {
		longer = nil
	}
	for i, need := range longer {
		consider(remedy.Burst, s.sizing.cpusOf(need, s.sizing.top), periodmodel.Setting{Burst: true, Period: longPeriods[i]})
	}
	if t == nil {
		return
	}
	stopped, slots := time.Duration(0), 0
	for level := range levels {
		d, other := demands[level], newModel(t.with)
		if t.remedy == forecast.Burst {
			t.ran[level] = d.under(t.limit, t.with, other)
		} else {
			d.width = slices.Clone(d.width)
			for i, width := range d.width {
				d.width[i] = min(width, int32(math.Ceil(t.limit)))
			}
			t.ran[level] = d.under(hostCPUs, plain, other)
		}
		t.other[level] = other.Take(demand.SlotLength)
		stopped, slots = stopped+time.Duration(s.seen[level])*t.ran[level].stopped, slots+s.seen[level]
	}
	s.treated = t
	s.truth.Treated = &Treated{t.remedy, t.limit, stopped.Seconds() / (float64(slots) * demand.SlotLength.Seconds())}
	s.truth.CoresAfter = float64(s.now) * t.limit
}

// into says in a row which remedy is in force. A pin has no quota.
func (t *treatment) into(r *demand.Row) {
	if t.with.Period > 0 && r.PeriodMicroseconds != nil {
		r.PeriodMicroseconds = new(t.with.Period.Microseconds())
	}
	if r.Remedy = t.remedy; t.remedy == forecast.Pin {
		r.AllowedCPUs, r.LimitCPUs, r.OwnLimitCPUs, r.LimitScope = new(int32(t.limit)), nil, nil, ""
		r.PeriodMicroseconds, r.CandidateSeconds, r.CandidateFrom, r.Candidates, r.LongBursts, r.Stops = nil, nil, nil, nil, nil, nil
	}
}

// took is how long a container's requests take. The containers of a service differ by up to a fifth.
func (p *sizing) tookBy(no int, seed uint64, with bool) time.Duration {
	chance := rand.New(rand.NewPCG(seed, 1<<43|uint64(no)))
	took := float64(p.took) * (0.8 + 0.4*chance.Float64())
	if worse := chance.Float64() < worsePart; worse && with {
		took *= worseBy
	}
	return time.Duration(took).Truncate(time.Microsecond)
}

// applied is what came of each remedy.
func (s *schedule) applied(services []service, seed uint64) (all []Applied) {
	byRemedy := map[string]*Applied{}
	for _, n := range s.nodes {
		for _, l := range n.lives {
			of := &services[l.service]
			if of.treated == nil {
				continue
			}
			var c came
			for slot := -slotsPerHour; slot <= int(s.end/secondsPerSlot)+slotsPerHour; slot++ {
				from, seconds := s.row(n, l, slot)
				if seconds > 0 {
					at := int(max(0, from-n.clock) / secondsPerSlot)
					c.take(of, l, at, from, float64(seconds))
				}
			}
			if c.seconds[0] == 0 || c.seconds[1] == 0 {
				continue
			}
			a := byRemedy[of.treated.remedy]
			if a == nil {
				a = &Applied{Remedy: of.treated.remedy}
				byRemedy[a.Remedy] = a
			}
			a.add(of, &c)
			if of.sizing.tookBy(l.no, seed, true) > of.sizing.tookBy(l.no, seed, false) {
				a.Worse++
			}
		}
	}
	for _, a := range byRemedy {
		a.StoppedBefore, a.StoppedAfter = a.StoppedBefore/a.seconds[0], a.StoppedAfter/a.seconds[1]
		for i := range a.Days {
			a.Days[i].StoppedShare /= a.Days[i].seconds
		}
		all = append(all, *a)
	}
	slices.SortFunc(all, func(a, b Applied) int { return strings.Compare(a.Remedy, b.Remedy) })
	return all
}

// came is what came of a remedy in a container: seconds and stopped before it and with it, and by the day.
type came struct {
	seconds, stopped [2]float64
	since            int64
	days             []AppliedDay
	// busiest is the level of the busiest recording before.
	busiest, recorded int
}

func (c *came) take(of *service, l *life, slot int, from int64, seconds float64) {
	set, with := of.at(l, slot)
	level, i := levelAt(l.service, slot), 0
	stopped := set.ran[level].stopped.Seconds() * seconds / secondsPerSlot
	switch {
	case with:
		if i = 1; c.seconds[1] == 0 {
			c.since = from
		}
		day := int((from - c.since) / (24 * secondsPerHour))
		for len(c.days) <= day {
			c.days = append(c.days, AppliedDay{Day: len(c.days), Containers: 1, Cores: set.limit})
		}
		c.days[day].StoppedShare, c.days[day].seconds = c.days[day].StoppedShare+stopped, c.days[day].seconds+seconds
	case recordedAt(l.service, slot):
		if c.recorded == 0 || set.ran[level].used > set.ran[c.busiest].used {
			c.busiest = level
		}
		c.recorded++
	}
	c.seconds[i], c.stopped[i] = c.seconds[i]+seconds, c.stopped[i]+stopped
}

func (a *Applied) add(of *service, c *came) {
	a.Containers++
	a.StoppedBefore, a.StoppedAfter = a.StoppedBefore+c.stopped[0], a.StoppedAfter+c.stopped[1]
	a.seconds[0], a.seconds[1] = a.seconds[0]+c.seconds[0], a.seconds[1]+c.seconds[1]
	a.CoresBefore, a.CoresAfter = a.CoresBefore+of.limit, a.CoresAfter+of.treated.limit
	if c.recorded > 0 {
		need := of.sizing.cpus(a.Remedy, c.busiest)
		if i := slices.Index(longPeriods, of.treated.with.Period); i >= 0 {
			need = of.sizing.cpusOf(of.sizing.long[i], c.busiest)
		}
		if a.Remedy != forecast.Pin {
			need = leastlimit.Tenths(need)
		}
		a.Promised += max(0, of.limit-need)
	}
	for i, day := range c.days {
		if i == len(a.Days) {
			a.Days = append(a.Days, AppliedDay{Day: i})
		}
		to := &a.Days[i]
		to.Containers, to.Cores = to.Containers+1, to.Cores+day.Cores
		to.StoppedShare, to.seconds = to.StoppedShare+day.StoppedShare, to.seconds+day.seconds
	}
}
