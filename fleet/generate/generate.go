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
	"time"

	"github.com/google/renameio/v2"

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
	// Bound is the share of its time to work for which a quota may stop a container, for the truth.
	Bound float64
}

// Truth is truth.json: what is so in the fleet.
type Truth struct {
	Seed uint64 `json:"seed"`
	// Demand is Recorded or Drawn.
	Demand     string    `json:"demand"`
	Hosts      int       `json:"hosts"`
	Containers int       `json:"containers"`
	Rows       int       `json:"rows"`
	Bound      float64   `json:"bound"`
	CoresNow   float64   `json:"cores_now"`
	CoresAfter float64   `json:"cores_after"`
	Services   []Service `json:"services"`
}

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
	Name              string  `json:"name"`
	Recording         string  `json:"recording,omitempty"`
	Containers        int     `json:"containers"`
	LimitCPUs         float64 `json:"limit_cpus"`
	LeastLimit        float64 `json:"least_limit_cpus"`
	CoresAfter        float64 `json:"cores_after"`
	CoresAfterBurst   float64 `json:"cores_after_burst"`
	StoppedShare      float64 `json:"stopped_share"`
	StoppedShareAfter float64 `json:"stopped_share_after"`
}

// service is one that is being made.
type service struct {
	name, workload string
	replicas       int
	limit          float64
	// memoryBytes is what each of its containers has, with its limit.
	memoryBytes int64
	ran         [levels]ran
	// other is what the periods of each level tell of other limits.
	other [levels]periodmodel.Outcome
	truth Service
	// seen is for how many slots a container of it was at each level: all its containers have the same day.
	seen [levels]int
}

// Make writes the rows of a fleet and truth.json below a folder.
func Make(ctx context.Context, dir string, o Options) (Truth, error) {
	services, err := draw(ctx, o)
	if err != nil {
		return Truth{}, err
	}
	truth := Truth{Seed: o.Seed, Demand: Recorded, Hosts: o.Hosts, Containers: o.Containers, Bound: o.Bound,
		Rows: o.Containers * o.Hours * slotsPerHour}
	if o.Drawn {
		truth.Demand = Drawn
	}
	for i := range services {
		s := services[i].truth
		truth.Services = append(truth.Services, s)
		truth.CoresNow += float64(s.Containers) * s.LimitCPUs
		truth.CoresAfter += s.CoresAfter
	}
	slices.SortFunc(truth.Services, func(a, b Service) int { return cmp.Compare(a.Name, b.Name) })
	if err := write(ctx, dir, services, o); err != nil {
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

// draw draws the services: a few are large, most are small.
func draw(ctx context.Context, o Options) ([]service, error) {
	recorded, err := recordings()
	if err != nil {
		return nil, fmt.Errorf("recorded.json: %w", err)
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
		// 0.5 to 2 GiB per CPU, not drawn: what is drawn stays as it was
		s.memoryBytes = int64(s.limit*(1+float64(i%4))) << 29
		s.replicas = 1 + int(float64(o.Containers-n)/float64(i+1)/weights)
		left -= s.replicas - 1
		chances[i] = chance
	}
	services[0].replicas += left // what rounding leaves
	chances[0] = rand.New(rand.NewPCG(o.Seed, uint64(n)))
	return services, parallel.OnAllCores(ctx)(n, func(i int) error {
		services[i].demand(chances[i], recorded, i, o)
		return nil
	})
}

// wish is what a service's containers want.
type wish interface {
	offered(chance *rand.Rand, level int) offered
}

// demand draws what its containers want, runs it under the limit, and finds the truth. The demands themselves are too
// large to keep.
func (s *service) demand(chance *rand.Rand, recorded []recording, no int, o Options) {
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
		other := periodmodel.New(period)
		s.ran[level] = demands[level].under(s.limit, false, other)
		s.other[level] = other.Take(demand.SlotLength)
	}
	for slot := range o.Hours * slotsPerHour {
		s.seen[levelAt(no, slot)]++
	}
	s.truth = s.found(&demands, o.Bound)
	s.truth.Recording = kind
}

// levelAt is the level of load of a service in a slot: low at night and high at noon, each service with an hour of its
// own.
func levelAt(service, slot int) int {
	hour := float64(slot)/float64(slotsPerHour) + float64(service%5)
	return min(levels-1, int(float64(levels)*(0.5-0.5*math.Cos(2*math.Pi*hour/24))))
}

// found is the truth, by halves, on the demands that were drawn.
func (s *service) found(demands *[levels]offered, bound float64) Service {
	share := func(limit float64, burst bool) (ofWork, ofTime float64) {
		var stopped, busy time.Duration
		slots := 0
		for level, times := range s.seen {
			if times == 0 {
				continue
			}
			r := demands[level].under(limit, burst, nil)
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
	least := func(may float64, burst bool) float64 {
		below, enough := 0.0, widest
		for enough-below > 0.001 {
			middle := (below + enough) / 2
			if stopped, _ := share(middle, burst); stopped <= may {
				enough = middle
			} else {
				below = middle
			}
		}
		return enough
	}
	now, stopped := share(s.limit, false)
	same := max(bound, now)
	after := func(burst bool) float64 { return min(s.limit, leastlimit.Tenths(least(same, burst))) }
	limit := after(false)
	_, stoppedAfter := share(limit, false)
	return Service{
		Name: s.name, Containers: s.replicas, LimitCPUs: s.limit, LeastLimit: least(bound, false),
		CoresAfter: float64(s.replicas) * limit, CoresAfterBurst: float64(s.replicas) * after(true),
		StoppedShare: stopped, StoppedShareAfter: stoppedAfter,
	}
}

// write writes the files, a host's hour each.
func write(ctx context.Context, dir string, services []service, o Options) error {
	on := make([][]int, o.Hosts) // numbers of containers
	serviceOf := make([]int, 0, o.Containers)
	for i := range services {
		for range services[i].replicas {
			on[len(serviceOf)%o.Hosts] = append(on[len(serviceOf)%o.Hosts], len(serviceOf))
			serviceOf = append(serviceOf, i)
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	files := filesOf(on, o.Joined)
	return parallel.OnAllCores(ctx)(o.Hours*len(files), func(i int) error {
		hour, file := i/len(files), i%len(files)
		var rows []demand.Row
		for host := files[file].first; host < files[file].end; host++ {
			for _, no := range on[host] {
				for slot := hour * slotsPerHour; slot < (hour+1)*slotsPerHour; slot++ {
					rows = append(rows, services[serviceOf[no]].row(levelAt(serviceOf[no], slot),
						o.Start.Add(time.Duration(slot)*demand.SlotLength), host, no))
				}
			}
		}
		name := filepath.Join(dir, store.File(&rows[0]))
		if o.Joined {
			name = filepath.Join(filepath.Dir(name), store.JoinedFile(file))
			slices.SortStableFunc(rows, func(a, b demand.Row) int { return cmp.Compare(a.Service, b.Service) })
		}
		return create(name, rows)
	})
}

// hosts are those from first to before end.
type hosts struct{ first, end int }

// filesOf are the hosts whose rows of an hour are in a file: each its own, or so many together that a file has as many
// rows as store.Join makes. on are the containers of each host; none is without.
func filesOf(on [][]int, joined bool) (files []hosts) {
	first, rows := 0, 0
	for host := range on {
		if rows += len(on[host]) * slotsPerHour; joined && rows < store.RowsOfFile && host < len(on)-1 {
			continue
		}
		files = append(files, hosts{first, host + 1})
		first, rows = host+1, 0
	}
	return files
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

// podName is that of a Deployment's pod: with the hash of a template, and letters that Kubernetes draws from.
func podName(workload string, no int) string {
	const letters = "bcdfghjklmnpqrstvwxz2456789"
	var suffix [5]byte
	for i := range suffix {
		suffix[i] = letters[no%len(letters)]
		no /= len(letters)
	}
	return workload + "-7d9c5b8f6-" + string(suffix[:])
}

// row is a container's five minutes at a level of load.
func (s *service) row(level int, start time.Time, host, no int) demand.Row {
	r := &s.ran[level]
	wanted := histogram(r.wanted)
	demanded := 0.0
	for _, l := range wanted {
		demanded += float64(l.CPUs) * float64(l.Microseconds) / 1e6
	}
	stopped := r.stopped.Seconds()
	row := demand.Row{
		Schema: demand.SchemaVersion, Start: start, Began: start, Seconds: demand.SlotLength.Seconds(), Samples: 300,
		Cluster: "generated", Node: fmt.Sprintf("n%05d", host), Namespace: namespace, Pod: podName(s.workload, no),
		Container: "app", Service: s.name, Cgroup: int64(no + 1),
		LimitCPUs: &s.limit, LimitScope: "own", OwnLimitCPUs: &s.limit, AllowedCPUs: new(int32(hostCPUs)),
		UsedCPUSeconds: new(r.used.Seconds()), WantedCPUSeconds: &demanded, StoppedLowSeconds: &stopped,
		StoppedHighSeconds:  &stopped,
		ThrottledOwnSeconds: &stopped, ThrottledPodSeconds: new(0.0), ThrottledSliceSeconds: new(0.0),
		ThrottledInsideSeconds: new(0.0),
		HostCPUs:               new(int32(hostCPUs)), HostMemoryBytes: new(int64(hostMemoryBytes)), MemoryBytes: new(s.memoryBytes),
		WaitingQuotaSeconds: new(max(0, demanded-r.used.Seconds())), WaitingAncestorSeconds: new(0.0),
		WaitingContentionSeconds: new(0.0), WaitingUnclearSeconds: new(0.0),
		Periods: new(int64(periods)), ThrottledPeriods: &r.throttled, Width: histogram(r.width), Wanted: wanted,
	}
	row.SetCandidates(period, s.other[level])
	row.Stops = r.stops.List()
	return row
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
