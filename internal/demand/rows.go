package demand

import (
	"cmp"
	"hash/fnv"
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/demand/periodmodel"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/objective"
	"github.com/unthrottle/unthrottle/internal/see/observe"
	"github.com/unthrottle/unthrottle/internal/see/probe/counts"
	"github.com/unthrottle/unthrottle/internal/stats"
	"github.com/unthrottle/unthrottle/internal/text"
)

// MaxContainers bounds the containers of one slot.
const MaxContainers = 8192

// maxLevels bounds the levels of a histogram; the last one holds what is wider.
const maxLevels = 1024

// Names are where the rows come from.
type Names struct{ Cluster, Node string }

// Rows makes rows of observations. It is not safe for concurrent use.
type Rows struct {
	names Names
	long  []time.Duration
	slot  time.Time
	open  map[key]*sum
	// models are of the containers with a quota of their own, by cgroup, while rows per period come; nil: they do not.
	models map[uint64]*model
	// Left is how many containers the current slot has no row for, beyond MaxContainers.
	Left int
}

// model is what the periods of one container tell.
type model struct {
	*periodmodel.Model
	stops Stops
	// seen: the slot under way has rounds of it.
	seen bool
}

type key struct {
	path   string
	cgroup uint64
}

// sum is a row under way.
type sum struct {
	row           Row
	width, wanted []time.Duration
	// fed is for how much of the time rows per period came.
	fed time.Duration
	// recorded is what recordings tell; nil: there was none.
	recorded *recorded
	// priced is what a recording told of its remedies; nil: there was none.
	priced *Pricing
}

// NewRows begins. long are the longer periods for which a row says what a burst would have done.
func NewRows(n Names, long ...time.Duration) *Rows {
	return &Rows{names: Names{text.Sanitize(n.Cluster, maxName), text.Sanitize(n.Node, maxName)}, long: long, open: map[key]*sum{}}
}

// Names are those of the rows.
func (r *Rows) Names() Names { return r.names }

const maxName = 253 // of Kubernetes' objects

// Add takes the observations of a round, and returns the rows of the slot before if the round begins another one: a
// later one, or an earlier one where the clock was set back.
func (r *Rows) Add(round []observe.Observation) (done []Row) {
	var latest time.Time
	for i := range round {
		if o := &round[i]; o.Window > 0 && o.Start.After(latest) {
			latest = o.Start
		}
	}
	if latest.IsZero() {
		return nil
	}
	if slot := slotOf(latest); !slot.Equal(r.slot) {
		r.add(round) // what began before the slot did
		done = r.Finish()
		r.slot = slot
	}
	r.add(round)
	return done
}

func slotOf(began time.Time) time.Time { return began.UTC().Truncate(SlotLength) }

// add adds what began in the slot under way.
func (r *Rows) add(round []observe.Observation) {
	for i := range round {
		o := &round[i]
		if o.Window <= 0 || !slotOf(o.Start).Equal(r.slot) {
			continue
		}
		if s := r.sumOf(o); s != nil {
			s.add(o)
			r.model(s, o)
		}
	}
}

// Feed says whether AddPeriod gets the rows of all periods from now on.
func (r *Rows) Feed(on bool) {
	r.models = nil // what came meanwhile is not known
	if on {
		r.models = map[uint64]*model{}
	}
}

// model begins with a container's periods, or goes on. Another period of its quota, and rows per period that came only
// now, begin anew.
func (r *Rows) model(s *sum, o *observe.Observation) {
	if r.models == nil || o.CgroupID == 0 || len(o.Levels) == 0 || !o.Levels[0].Limit.Limited() {
		return
	}
	period := o.Levels[0].Limit.Period
	m := r.models[o.CgroupID]
	if m == nil || m.Period() != period {
		r.models[o.CgroupID] = &model{Model: periodmodel.New(period, r.long...), seen: true}
		s.fed = 0
		return
	}
	m.seen = true
	s.fed += o.Window
}

// AddPeriod takes a period of a container's own quota. It counts for the slot under way: a row comes up to half a
// second late. Those of containers that no round has told of yet are dropped.
func (r *Rows) AddPeriod(p counts.PeriodRow) {
	m := r.models[p.Cgroup]
	if m == nil {
		return
	}
	length := float64(p.LengthNS)
	stopped := time.Duration(p.StoppedShare * length)
	m.stops.Add(stopped)
	m.Add(periodmodel.Period{Length: time.Duration(length), Used: time.Duration(p.MeanWidth * length), Width: p.MostWidth,
		Stopped: stopped, Throttled: p.Throttled})
}

// AddRecording takes what a recording of a container told. It counts for the slot under way, in which the recording
// ended or was read. That of a container that the slot has no row of is dropped.
func (r *Rows) AddRecording(cgroup uint64, more Recorded) {
	if s := r.openOf(cgroup); s != nil {
		if s.recorded == nil {
			s.recorded = &recorded{}
		}
		s.recorded.add(more)
	}
}

// openOf is the row under way of a container that the probe counts; nil: there is none.
func (r *Rows) openOf(cgroup uint64) *sum {
	for k, s := range r.open {
		if k.cgroup == cgroup && cgroup != 0 {
			return s
		}
	}
	return nil
}

// AddPriced takes what a recording of a container told of its remedies. It counts for the slot under way: the last one stays.
// That of a container that the slot has no row of is dropped.
func (r *Rows) AddPriced(cgroup uint64, p Pricing) {
	if s := r.openOf(cgroup); s != nil {
		s.priced = &p
	}
}

// Finish ends the current slot and returns its rows, by service, pod, container and cgroup: equal names side by side
// pack well.
func (r *Rows) Finish() (done []Row) {
	for k, s := range r.open {
		s.finish()
		if m := r.models[k.cgroup]; m != nil && s.fed > 0 {
			s.row.SetCandidates(m.Period(), m.Take(s.fed))
			s.row.Stops, m.stops = m.stops.List(), Stops{}
		}
		if s.recorded != nil {
			s.recorded.into(&s.row)
		}
		if s.priced != nil {
			s.priced.into(&s.row)
		}
		done = append(done, s.row)
	}
	slices.SortFunc(done, func(a, b Row) int {
		return cmp.Or(cmp.Compare(a.Service, b.Service), cmp.Compare(a.Pod, b.Pod), cmp.Compare(a.Container, b.Container),
			cmp.Compare(a.Cgroup, b.Cgroup), a.Began.Compare(b.Began))
	})
	for id, m := range r.models {
		if !m.seen {
			delete(r.models, id)
		}
		m.seen = false
	}
	clear(r.open)
	r.Left = 0
	return done
}

// CgroupOf is the number that stands for a container's cgroup in rows, greater than 0: the same for the same names, which are
// the cgroup's path, or where that is not known what else tells the container apart. An inode would be known to the probe
// alone.
func CgroupOf(names ...string) int64 {
	h := fnv.New64a()
	for _, name := range names {
		h.Write([]byte(name)) // a hash.Hash never fails
		h.Write([]byte{0})
	}
	return int64(max(1, h.Sum64()>>1))
}

func (r *Rows) sumOf(o *observe.Observation) *sum {
	k := key{o.Container.Group.Path, o.CgroupID}
	if s := r.open[k]; s != nil {
		return s
	}
	if len(r.open) >= MaxContainers {
		r.Left++
		return nil
	}
	c := &o.Container
	s := &sum{row: Row{
		Schema: SchemaVersion, Start: r.slot, Began: o.Start.UTC(), Cluster: r.names.Cluster, Node: r.names.Node,
		Namespace: text.Sanitize(c.Namespace, maxName), Pod: text.Sanitize(c.Pod, maxName),
		Container: text.Sanitize(c.ContainerName, maxName),
		Service:   text.Sanitize(ServiceOf(c), maxName), Runtime: c.Runtime, Cgroup: CgroupOf(c.Group.Path),
	}}
	if s.row.Container == "" {
		s.row.Container = text.Sanitize(c.Name, maxName)
	}
	r.open[k] = s
	return s
}

// add adds one observation.
func (s *sum) add(o *observe.Observation) {
	w := &s.row
	w.Seconds += o.Window.Seconds()
	w.Samples++
	w.LimitCPUs, w.LimitScope, w.OwnLimitCPUs = o.LimitCPUs, scopeOf(o, o.LimitAt), nil
	if len(o.Levels) > 0 {
		if own, ok := o.Levels[0].Limit.Bound(); ok {
			w.OwnLimitCPUs = &own
		}
	}
	if n := o.CPUsAllowed.Size(); n > 0 {
		w.AllowedCPUs, w.CPUList = new(int32(n)), o.CPUsAllowed.String()
	}
	if o.UsedCPUs != nil {
		plus(&w.UsedCPUSeconds, *o.UsedCPUs*o.Window.Seconds())
	}
	if o.StoppedLow != nil && o.StoppedHigh != nil {
		plus(&w.StoppedLowSeconds, o.StoppedLow.Seconds())
		plus(&w.StoppedHighSeconds, o.StoppedHigh.Seconds())
	}
	count(&w.StoppedIntervals, o.StoppedIntervals)
	count(&w.Periods, o.Periods)
	count(&w.ThrottledPeriods, o.ThrottledPeriods)
	if o.OwnThrottledSeconds != nil || o.ThrottledSeconds != nil {
		for _, to := range []**float64{&w.ThrottledOwnSeconds, &w.ThrottledPodSeconds, &w.ThrottledSliceSeconds,
			&w.ThrottledInsideSeconds} {
			plus(to, 0)
		}
	}
	for _, share := range o.ThrottledByAll {
		switch scopeOf(o, share.Path) {
		case container.ScopeOwn:
			plus(&w.ThrottledOwnSeconds, share.Seconds)
		case container.ScopePod:
			plus(&w.ThrottledPodSeconds, share.Seconds)
		case scopeInside:
			plus(&w.ThrottledInsideSeconds, share.Seconds)
		default:
			plus(&w.ThrottledSliceSeconds, share.Seconds)
		}
	}
	if wait, ok := o.Waiting(); ok {
		plus(&w.WaitingQuotaSeconds, wait.Quota.Seconds())
		plus(&w.WaitingAncestorSeconds, wait.Ancestor.Seconds())
		plus(&w.WaitingContentionSeconds, wait.Contention.Seconds())
		plus(&w.WaitingUnclearSeconds, wait.Unclear.Seconds())
	}
	s.width, s.wanted = merged(s.width, o.Width), merged(s.wanted, o.Wanted)
}

// scopeInside is the scope of a cgroup inside the container.
const scopeInside = "inside"

// scopeOf tells whose a level is.
func scopeOf(o *observe.Observation, path string) string {
	own := o.Container.Group.Path
	switch {
	case path == "":
		return ""
	case path != own && cgroup.Below(path, own):
		return scopeInside
	}
	return o.Container.ScopeOf(path)
}

func plus(to **float64, v float64) {
	if *to == nil {
		*to = new(0.0)
	}
	**to += v
}

func count(to **int64, v *uint64) {
	if v == nil {
		return
	}
	if *to == nil {
		*to = new(int64(0))
	}
	**to += int64(*v)
}

// merged adds one histogram to another.
func merged(to, more []time.Duration) []time.Duration {
	for i, d := range more {
		i = min(i, maxLevels-1)
		for len(to) <= i {
			to = append(to, 0)
		}
		to[i] += d
	}
	return to
}

// finish derives what the histograms tell.
func (s *sum) finish() {
	w := &s.row
	w.Width, w.Wanted = levels(s.width), levels(s.wanted)
	if s.width != nil {
		w.WidthMax = new(last(w.Width))
	}
	if s.wanted == nil {
		return
	}
	demand := 0.0
	for _, l := range w.Wanted {
		demand += float64(l.CPUs) * float64(l.Microseconds) / 1e6
	}
	w.WantedCPUSeconds = &demand
	w.WantedP50, w.WantedP95, w.WantedP99, w.WantedMax = quantile(w.Wanted, 0.5), quantile(w.Wanted, 0.95),
		quantile(w.Wanted, 0.99), new(last(w.Wanted))
}

// SetObjective takes the container's objective; the zero value: it has none.
func (w *Row) SetObjective(o objective.Objective) {
	if o != (objective.Objective{}) {
		w.ObjectiveQuantile, w.ObjectiveMicroseconds = new(o.Quantile), new(o.Bound.Microseconds())
	}
}

// SetCandidates takes what the periods tell.
func (w *Row) SetCandidates(period time.Duration, o periodmodel.Outcome) {
	w.PeriodMicroseconds, w.CandidateSeconds, w.CandidateFrom = new(period.Microseconds()), new(o.Known.Seconds()),
		new(int32(o.From))
	for _, c := range o.Candidates {
		w.Candidates = append(w.Candidates, Candidate{int32(c.Step), c.Stopped.Microseconds(), int32(c.Throttled),
			c.Delay.Microseconds(),
			c.BurstStopped.Microseconds(), c.BurstDelay.Microseconds()})
	}
	for _, l := range o.Long {
		for _, b := range l.Bursts {
			w.LongBursts = append(w.LongBursts, LongBurst{l.Period.Microseconds(), int32(b.Step), b.Stopped.Microseconds(),
				b.Delay.Microseconds()})
		}
	}
}

// levels are those of a histogram that any time was spent at.
func levels(lasted []time.Duration) (histogram []Level) {
	for i, d := range lasted {
		if us := d.Microseconds(); us > 0 {
			histogram = append(histogram, Level{int32(i), us})
		}
	}
	return histogram
}

func last(histogram []Level) int32 {
	if len(histogram) == 0 {
		return 0
	}
	return histogram[len(histogram)-1].CPUs
}

// quantile is the least level at or below which a histogram is for so much of the time; nil: it is empty.
func quantile(histogram []Level, q float64) *int32 {
	if i := stats.Bucket(len(histogram), func(i int) int64 { return histogram[i].Microseconds }, q); i >= 0 {
		return new(histogram[i].CPUs)
	}
	return nil
}
