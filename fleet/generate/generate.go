package generate

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/google/renameio/v2"

	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/demand"
	"github.com/unthrottle/unthrottle/internal/demand/leastlimit"
	"github.com/unthrottle/unthrottle/internal/demand/periodmodel"
	"github.com/unthrottle/unthrottle/internal/demand/store"
	"github.com/unthrottle/unthrottle/internal/sim/parallel"
)

// Options say how large the fleet is.
type Options struct {
	Hosts, Containers int
	Seed              uint64
	// Start is the beginning of the first hour, Hours how many there are.
	Start time.Time
	Hours int
	// Joined: the rows of all hosts in an hour are one file, or few, as store.Join makes them.
	Joined bool
	// Drawn: demands are drawn from the seed. Otherwise they are of recordings of real services.
	Drawn bool
	// Churn: nodes and pods come and go. Hosts are then the most at once, and Containers about as many as there are then,
	// beside those of DaemonSets.
	Churn bool
	// Priced is the part of the services whose agents make recordings for their containers' sizes.
	Priced float64
	// Treated is the part of the services that get a remedy on the node half-way, where recordings tell one that saves.
	Treated float64
	// Bound is the share of its time to work for which a quota may stop a container, for the truth.
	Bound float64
}

// Truth is truth.json: what is so in the fleet.
type Truth struct {
	Seed uint64 `json:"seed"`
	// Demand is Recorded or Drawn.
	Demand string `json:"demand"`
	// Until is the end. Hosts, Containers and CoresNow are what is there then, HostsGone and ContainersEnded what is not
	// any more.
	Until           time.Time `json:"until"`
	Hosts           int       `json:"hosts"`
	HostsGone       int       `json:"hosts_gone"`
	Containers      int       `json:"containers"`
	ContainersEnded int       `json:"containers_ended"`
	Rows            int       `json:"rows"`
	Bound           float64   `json:"bound"`
	CoresNow        float64   `json:"cores_now"`
	CoresAfter      float64   `json:"cores_after"`
	Services        []Service `json:"services"`
	// Lately is what is there in each of the last minutes, the last one at the end: at which of them a report counts is by the
	// rows that it has.
	Lately []Running `json:"lately"`
	// Applied is what came of remedies.
	Applied []Applied `json:"applied,omitempty"`
}

// Running is what is there at a moment.
type Running struct {
	At         time.Time `json:"at"`
	Hosts      int       `json:"hosts"`
	Containers int       `json:"containers"`
	CoresNow   float64   `json:"cores_now"`
}

// lately is for how many minutes truth.json tells what is there.
const lately = 30

// The kinds of demand.
const (
	Recorded = "recorded"
	Drawn    = "drawn"
)

// Service is the truth about one service, whose containers want the same. Recording is the kind of service whose demand
// it has; "": it is drawn. LeastLimit is the smallest limit at which its most loaded container is stopped for at most
// the bound of its time to work. CoresAfter is what is needed to be stopped for at most that, or no longer than now,
// and CoresAfterBurst the same with a burst of one quota; no container has more than now. StoppedShare is of all time,
// with the limit of now, and StoppedShareAfter with that of CoresAfter.
type Service struct {
	Name            string  `json:"name"`
	Recording       string  `json:"recording,omitempty"`
	Containers      int     `json:"containers"`
	LimitCPUs       float64 `json:"limit_cpus"`
	LeastLimit      float64 `json:"least_limit_cpus"`
	CoresAfter      float64 `json:"cores_after"`
	CoresAfterBurst float64 `json:"cores_after_burst"`
	// LongBursts are CoresAfterBurst in longer periods.
	LongBursts        []LongBurst `json:"cores_after_long_bursts"`
	StoppedShare      float64     `json:"stopped_share"`
	StoppedShareAfter float64     `json:"stopped_share_after"`
	// Priced is the truth that recordings tell; nil: there are none.
	Priced *Priced `json:"priced,omitempty"`
	// Treated is what it got half-way; nil: nothing. CoresAfter is then what it has with it.
	Treated *Treated `json:"treated,omitempty"`
}

// LongBurst is what remains of all containers of a service with a burst of one quota in a longer period.
type LongBurst struct {
	PeriodSeconds float64 `json:"period_seconds"`
	Cores         float64 `json:"cores_after"`
}

// has is what each of its containers has at the end.
func (s *Service) has() float64 {
	if s.Treated != nil {
		return s.Treated.CPUs
	}
	return s.LimitCPUs
}

// service is one that is being made.
type service struct {
	name, workload string
	// replicas are as many as it may have, now those at the end.
	replicas, now int
	setting
	// memoryBytes is what each of its containers has, with its limit.
	memoryBytes int64
	truth       Service
	// seen is for how many slots it was at each level: all its containers have the same day.
	seen [levels]int
	// same are the least limits, with nothing else and with a burst of one quota, at which it is stopped no more than now.
	same [2]float64
	// sameLong are those with a burst in each of longPeriods.
	sameLong []float64
	// sizing is what recordings tell; nil: there are none.
	sizing *sizing
	// treated is what it gets half-way; nil: nothing.
	treated *treatment
}

// setting is a limit, what became of the demand at each level under it, and what these periods tell of other limits.
type setting struct {
	limit float64
	// with is what is kept with the limit.
	with  periodmodel.Setting
	ran   [levels]ran
	other [levels]periodmodel.Outcome
}

// Make writes the rows of a fleet and truth.json below a folder.
func Make(ctx context.Context, dir string, o Options) (Truth, error) {
	services, runs, err := draw(ctx, o)
	if err != nil {
		return Truth{}, err
	}
	truth := Truth{Seed: o.Seed, Demand: Recorded, Bound: o.Bound, Until: o.Start.Add(time.Duration(o.Hours) * time.Hour)}
	if o.Drawn {
		truth.Demand = Drawn
	}
	for _, n := range runs.nodes {
		if n.to > runs.end {
			truth.Hosts++
		} else {
			truth.HostsGone++
		}
		truth.ContainersEnded += len(n.lives)
	}
	for i := range services {
		s := services[i].truth
		truth.Services = append(truth.Services, s)
		truth.Containers, truth.CoresNow = truth.Containers+s.Containers, truth.CoresNow+float64(s.Containers)*s.has()
		truth.CoresAfter += s.CoresAfter
	}
	for minute := range int64(lately + 1) {
		if at := runs.end - 60*(lately-minute); at >= 0 {
			truth.Lately = append(truth.Lately, runs.at(at, services, o.Start))
		}
	}
	truth.Applied = runs.applied(services, o.Seed)
	truth.ContainersEnded -= truth.Containers
	slices.SortFunc(truth.Services, func(a, b Service) int { return cmp.Compare(a.Name, b.Name) })
	if truth.Rows, err = write(ctx, dir, services, runs, o); err != nil {
		return truth, err
	}
	text, err := json.MarshalIndent(truth, "", "  ")
	if err != nil {
		return truth, err
	}
	return truth, renameio.WriteFile(filepath.Join(dir, "truth.json"), append(text, '\n'), 0o644)
}

// Every host of the fleet has as much.
const (
	hostCPUs        = 64
	hostMemoryBytes = 256 << 30
)

const slotsPerHour = int(time.Hour / demand.SlotLength)

// limits are those that services draw.
var limits = []float64{0.5, 1, 1, 2, 2, 4, 8, 16}

// draw draws the services, of which a few are large and most are small, and when they run where.
func draw(ctx context.Context, o Options) ([]service, *schedule, error) {
	recorded, err := recordings()
	if err != nil {
		return nil, nil, fmt.Errorf("recorded.json: %w", err)
	}
	n := max(1, min(o.Containers, o.Containers/40+3))
	services := make([]service, n)
	weights := 0.0
	for i := range services {
		weights += 1 / float64(i+1)
	}
	left := o.Containers - n // each has one
	chances := make([]*rand.Rand, n)
	for i := range services {
		chance := rand.New(rand.NewPCG(o.Seed, uint64(i)))
		s := &services[i]
		s.workload, s.limit = fmt.Sprintf("service-%05d", i), limits[chance.IntN(len(limits))]
		s.name = namespace + "/" + s.workload + "/app"
		if o.Churn && kindOf(i) == daemonSet {
			s.limit = limits[0] // there is one on each node
		}
		// 0.5 to 2 GiB per CPU, not drawn: what is drawn stays as it was
		s.memoryBytes = int64(s.limit*(1+float64(i%4))) << 29
		s.replicas = 1 + int(float64(o.Containers-n)/float64(i+1)/weights)
		left -= s.replicas - 1
		chances[i] = chance
	}
	services[0].replicas += left // what rounding leaves
	chances[0] = rand.New(rand.NewPCG(o.Seed, uint64(n)))
	runs := steady
	if o.Churn {
		runs = changing
	}
	s := runs(services, o)
	s.count(services)
	return services, s, parallel.OnAllCores(ctx)(n, func(i int) error {
		services[i].demand(i, chances[i], recorded, o)
		return nil
	})
}

// wish is what a service's containers want.
type wish interface {
	offered(chance *rand.Rand, level int) offered
}

// plain is a limit with nothing else, and longPeriods those of bursts that rows tell.
var (
	plain       periodmodel.Setting
	longPeriods = remedy.LongPeriods()
)

// newModel is that of a limit with what is kept with it.
func newModel(with periodmodel.Setting) *periodmodel.Model {
	return periodmodel.New(max(period, with.Period), longPeriods...)
}

// demand draws what its containers want, runs it under the limit, and finds the truth. The demands themselves are too
// large to keep.
func (s *service) demand(no int, chance *rand.Rand, recorded []recording, o Options) {
	var demands [levels]offered
	var p wish
	kind := ""
	if o.Drawn {
		p = profileOf(chance, s.limit)
	} else {
		r := replayOf(chance, recorded, s.limit)
		p, kind = &r, r.source.kind
	}
	for level := range levels {
		demands[level] = p.offered(chance, level)
		other := newModel(plain)
		s.ran[level] = demands[level].under(s.limit, plain, other)
		s.other[level] = other.Take(demand.SlotLength)
	}
	s.truth = s.found(&demands, o.Bound)
	s.truth.Recording = kind
	s.price(no, o)
	s.treat(no, &demands, o)
}

// levelAt is the level of load of a service in a slot: low at night and high at noon, each service with an hour of its
// own.
func levelAt(service, slot int) int {
	hour := float64(slot)/float64(slotsPerHour) + float64(service%5)
	return min(levels-1, int(float64(levels)*(0.5-0.5*math.Cos(2*math.Pi*hour/24))))
}

// recordedAt: an agent records in the first slot, and whenever the load changes.
func recordedAt(service, slot int) bool {
	return slot == 0 || levelAt(service, slot-1) != levelAt(service, slot)
}

// found is the truth, by halves, on the demands that were drawn.
func (s *service) found(demands *[levels]offered, bound float64) Service {
	share := func(limit float64, with periodmodel.Setting) (ofWork, ofTime float64) {
		var stopped, busy time.Duration
		slots := 0
		for level, times := range s.seen {
			if times == 0 {
				continue
			}
			r := demands[level].under(limit, with, nil)
			stopped, busy, slots = stopped+time.Duration(times)*r.stopped, busy+time.Duration(times)*r.busy, slots+times
		}
		if stopped+busy == 0 { // at little load, a service may want nothing for all of the time
			return 0, 0
		}
		return float64(stopped) / float64(stopped+busy), stopped.Seconds() / (float64(slots) * demand.SlotLength.Seconds())
	}
	widest := 0.0
	for level := range demands {
		for _, w := range demands[level].width {
			widest = max(widest, float64(w))
		}
	}
	least := func(may float64, with periodmodel.Setting) float64 {
		below, enough := 0.0, widest
		for enough-below > 0.001 {
			middle := (below + enough) / 2
			if stopped, _ := share(middle, with); stopped <= may {
				enough = middle
			} else {
				below = middle
			}
		}
		return enough
	}
	now, stopped := share(s.limit, plain)
	same := max(bound, now)
	s.same = [...]float64{least(same, plain), least(same, periodmodel.OwnBurst)}
	limit, burst := min(s.limit, leastlimit.Tenths(s.same[0])), min(s.limit, leastlimit.Tenths(s.same[1]))
	_, stoppedAfter := share(limit, plain)
	var long []LongBurst
	for _, every := range longPeriods {
		s.sameLong = append(s.sameLong, least(same, periodmodel.Setting{Burst: true, Period: every}))
		cpus := min(s.limit, leastlimit.Tenths(s.sameLong[len(s.sameLong)-1]))
		long = append(long, LongBurst{every.Seconds(), float64(s.now) * cpus})
	}
	return Service{
		Name: s.name, Containers: s.now, LimitCPUs: s.limit, LeastLimit: least(bound, plain),
		CoresAfter: float64(s.now) * limit, CoresAfterBurst: float64(s.now) * burst, LongBursts: long,
		StoppedShare: stopped, StoppedShareAfter: stoppedAfter,
	}
}

// write writes the files, a host's hour each, and returns how many rows they have.
func write(ctx context.Context, dir string, services []service, runs *schedule, o Options) (rows int, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return 0, err
	}
	files := runs.files(o.Joined)
	var written atomic.Int64
	err = parallel.OnAllCores(ctx)(len(files), func(i int) error {
		var rows []demand.Row
		for _, n := range files[i].nodes {
			for _, l := range n.lives {
				for slot := files[i].hour * slotsPerHour; slot < (files[i].hour+1)*slotsPerHour; slot++ {
					from, seconds := runs.row(n, l, slot)
					if seconds == 0 {
						continue
					}
					at := int(max(0, from-n.clock) / secondsPerSlot)
					s, level := &services[l.service], levelAt(l.service, at)
					has, with := s.at(l, at)
					row := s.row(has, level, o.Start, n, l, from, seconds)
					if with {
						s.treated.into(&row)
					}
					if s.sizing != nil && recordedAt(l.service, at) {
						s.sizing.into(&row, level, s.sizing.tookBy(l.no, o.Seed, with),
							rand.New(rand.NewPCG(o.Seed, uint64(l.no)<<32|uint64(at))))
					}
					rows = append(rows, row)
				}
			}
		}
		if written.Add(int64(len(rows))); len(rows) == 0 {
			return nil
		}
		name := filepath.Join(dir, store.File(&rows[0]))
		if o.Joined {
			name = filepath.Join(filepath.Dir(name), store.JoinedFile(files[i].no))
			slices.SortStableFunc(rows, func(a, b demand.Row) int { return cmp.Compare(a.Service, b.Service) })
		}
		return create(name, rows)
	})
	return int(written.Load()), err
}

// create writes a file that is not there yet. Unlike store.Write it does not wait for the disk, which is most of its
// time: what a crash takes can be made again.
func create(name string, rows []demand.Row) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	if err := errors.Join(store.Encode(f, rows), f.Close()); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// namespace is that of all pods.
const namespace = "shop"

// firstHash is that of a template before there was another.
const firstHash = "7d9c5b8f6"

// letters are those that Kubernetes draws from.
const letters = "bcdfghjklmnpqrstvwxz2456789"

// podName is that of a Deployment's pod: with the hash of a template.
func podName(workload, hash string, no int) string { return workload + "-" + hash + "-" + suffix(no) }

func suffix(no int) string {
	var suffix [5]byte
	for i := range suffix {
		suffix[i] = letters[no%len(letters)]
		no /= len(letters)
	}
	return string(suffix[:])
}

// hash is that of a service's template.
func hash(service, template int) string {
	if template == 0 {
		return firstHash
	}
	return suffix(7*service+1) + suffix(template)[:4]
}

// row is so many seconds of a container with a setting at a level of load, from a second by its node's clock on.
func (s *service) row(has *setting, level int, begin time.Time, n *node, l *life, from, seconds int64) demand.Row {
	r := &has.ran[level]
	wanted := histogram(r.wanted)
	demanded := 0.0
	for _, l := range wanted {
		demanded += float64(l.CPUs) * float64(l.Microseconds) / 1e6
	}
	stopped := r.stopped.Seconds()
	began := begin.Add(time.Duration(from) * time.Second)
	row := demand.Row{
		Schema: demand.SchemaVersion, Start: began.Truncate(demand.SlotLength), Began: began,
		Seconds: demand.SlotLength.Seconds(), Samples: int32(seconds),
		Cluster: "generated", Node: n.name, Namespace: namespace, Pod: l.pod,
		Container: "app", Service: s.name, Cgroup: int64(l.no + 1),
		LimitCPUs: &has.limit, LimitScope: "own", OwnLimitCPUs: &has.limit, AllowedCPUs: new(int32(hostCPUs)),
		UsedCPUSeconds: new(r.used.Seconds()), WantedCPUSeconds: &demanded, StoppedLowSeconds: &stopped,
		StoppedHighSeconds:  &stopped,
		ThrottledOwnSeconds: &stopped, ThrottledPodSeconds: new(0.0), ThrottledSliceSeconds: new(0.0),
		ThrottledInsideSeconds: new(0.0),
		HostCPUs:               new(int32(hostCPUs)), HostMemoryBytes: new(int64(hostMemoryBytes)), MemoryBytes: new(s.memoryBytes),
		WaitingQuotaSeconds: new(max(0, demanded-r.used.Seconds())), WaitingAncestorSeconds: new(0.0),
		WaitingContentionSeconds: new(0.0), WaitingUnclearSeconds: new(0.0),
		Periods: new(int64(periods)), ThrottledPeriods: &r.throttled, Width: histogram(r.width), Wanted: wanted,
	}
	row.SetCandidates(period, has.other[level])
	row.Stops = r.stops.List()
	if seconds < secondsPerSlot {
		cut(&row, float64(seconds)/secondsPerSlot)
	}
	return row
}

// cut leaves a part of a row's time.
func cut(r *demand.Row, part float64) {
	of := func(us *int64) { *us = int64(part * float64(*us)) }
	few := func(n *int32) { *n = int32(math.Round(part * float64(*n))) }
	r.Seconds *= part
	*r.CandidateSeconds *= part
	for _, v := range []**float64{&r.UsedCPUSeconds, &r.WantedCPUSeconds, &r.StoppedLowSeconds, &r.StoppedHighSeconds,
		&r.ThrottledOwnSeconds, &r.WaitingQuotaSeconds} {
		*v = new(part * **v)
	}
	r.Periods, r.ThrottledPeriods = new(int64(part*float64(*r.Periods))), new(int64(part*float64(*r.ThrottledPeriods)))
	for _, levels := range [][]demand.Level{r.Width, r.Wanted} {
		for i := range levels {
			of(&levels[i].Microseconds)
		}
	}
	for i := range r.Candidates {
		c := &r.Candidates[i]
		of(&c.StoppedMicroseconds)
		of(&c.BurstStoppedMicroseconds)
		few(&c.ThrottledPeriods)
	}
	for i := range r.LongBursts {
		of(&r.LongBursts[i].StoppedMicroseconds)
	}
	for i := range r.Stops {
		few(&r.Stops[i].Periods)
	}
	r.Stops = slices.DeleteFunc(r.Stops, func(s demand.Stop) bool { return s.Periods == 0 })
}

func histogram(lasted map[int32]time.Duration) (histogram []demand.Level) {
	for cpus, d := range lasted {
		if us := d.Microseconds(); us > 0 {
			histogram = append(histogram, demand.Level{CPUs: cpus, Microseconds: us})
		}
	}
	slices.SortFunc(histogram, func(a, b demand.Level) int { return cmp.Compare(a.CPUs, b.CPUs) })
	return histogram
}
