package fleet

import (
	"fmt"
	"time"

	"github.com/unthrottle/unthrottle/internal/sim/forecast"
	"github.com/unthrottle/unthrottle/internal/text"
)

// Document is the JSON of `unthrottle fleet report`. What is not known is null.
type Document struct {
	// From and Until are the first and the last moment that a row is of. Rows of clocks that are ahead do not count for
	// Until.
	From  time.Time `json:"from"`
	Until time.Time `json:"until"`
	// Bound is the share of its time to work for which a quota may stop a container that is called fine.
	Bound float64 `json:"bound"`
	// Now is the moment at which is counted what runs: shortly before the first of the hosts' rows end, without those of Input.Gone.
	Now time.Time `json:"now"`
	// Containers are those that run now, and Hosts those that have rows of before and after it: see Input.HostsGone.
	Containers int `json:"containers"`
	Hosts      int `json:"hosts"`
	// Priced is how many of them are sized at the same p99: see ByRemedy. ByBounds is how many are sized by what serves
	// every order of their demand: see Service.
	Priced   int `json:"priced"`
	ByBounds int `json:"by_bounds"`
	// FailoverHosts is for how many hosts that fail at once cores are kept; 0: for none. FailoverNone is how many services
	// would have no container left then: see Service.FailoverHosts.
	FailoverHosts int `json:"failover_hosts"`
	FailoverNone  int `json:"failover_none"`
	// CoresWithoutPrice are those on nodes of which no price is known: they cost nothing in PerMonth.
	CoresWithoutPrice float64   `json:"cores_without_price"`
	Services          []Service `json:"services"`
	Ledger            Ledger    `json:"ledger"`
	// ByRemedy parts the ledger by the remedy that is best for each service. Each container whose need is known is in one
	// line.
	ByRemedy []ByRemedy `json:"by_remedy"`
	Defaults Defaults   `json:"defaults"`
	Applied  []Applied  `json:"applied"`
	// Rollouts are the services with a remedy in force in most containers.
	Rollouts []Rollout `json:"rollouts"`
	Unknown  []Unknown `json:"unknown"`
	Input    Input     `json:"input"`
}

// Service is what is known of one service's containers.
type Service struct {
	Name       string `json:"name" parquet:"name"`
	Containers int    `json:"containers" parquet:"containers"`
	Hosts      int    `json:"hosts" parquet:"hosts"`
	// Workload is null outside of Kubernetes, and where the kind of the controller is not known.
	Workload *Workload `json:"workload" parquet:"workload,optional"`
	// CoresNow are the limits of its containers, or what they request. CoresAfter is what they need with the remedy,
	// between low and high. Containers of which it is not known keep what they have.
	CoresNow       *float64 `json:"cores_now" parquet:"cores_now,optional"`
	CoresAfter     *float64 `json:"cores_after" parquet:"cores_after,optional"`
	CoresAfterLow  *float64 `json:"cores_after_low" parquet:"cores_after_low,optional"`
	CoresAfterHigh *float64 `json:"cores_after_high" parquet:"cores_after_high,optional"`
	// Limit is the right-sized limit of one container: of the one that needs most.
	Limit     *float64 `json:"limit_cpus" parquet:"limit_cpus,optional"`
	LimitLow  *float64 `json:"limit_cpus_low" parquet:"limit_cpus_low,optional"`
	LimitHigh *float64 `json:"limit_cpus_high" parquet:"limit_cpus_high,optional"`
	// BurstLimit is the limit that goes with the remedy burst; null: not known.
	BurstLimit *float64 `json:"burst_limit_cpus" parquet:"burst_limit_cpus,optional"`
	// BurstPeriodMS is its period, for most of its cores; null: the period that its limit has, or not known.
	BurstPeriodMS *float64 `json:"burst_period_ms" parquet:"burst_period_ms,optional"`
	// Remedy is one of the remedies below, of most of its cores; null: not known.
	Remedy *string `json:"remedy" parquet:"remedy,optional"`
	// Priced is how many of its containers are sized by recordings of it: AFTER is then what they need with the remedy so
	// that the latency stays which JudgedOf, JudgedQuantile and JudgedMS name: of requests, or of a pool's threads, and what
	// it was as recorded, or must be by the objective. Null: there is no recording, or they are judged by different ones.
	Priced         int      `json:"priced" parquet:"priced"`
	JudgedOf       *string  `json:"judged_of" parquet:"judged_of,optional"`
	JudgedQuantile *float64 `json:"judged_quantile" parquet:"judged_quantile,optional"`
	JudgedMS       *float64 `json:"judged_ms" parquet:"judged_ms,optional"`
	// KneeShare is the part of its limit that a container uses, on average over five minutes, where the limit is just enough
	// for that latency: with more use it gets slower. Null: recordings do not tell it of each.
	KneeShare *float64 `json:"knee_share" parquet:"knee_share,optional"`
	// Objective is what they need to keep their own; null: they have none, or Prices are not of it.
	Objective *Objective `json:"objective" parquet:"objective,optional"`
	// Prices are what they need with each remedy, those first that ask for least. They have a table of their own.
	Prices []Price `json:"prices" parquet:"-"`
	// RunnablePerCore is the mean of running and runnable threads per core of the limit, while there is any.
	RunnablePerCore *float64 `json:"runnable_per_core" parquet:"runnable_per_core,optional"`
	// StoppedShare is the share of the time in which a quota stopped a container, at most; StoppedShareLow at least.
	StoppedShare    *float64 `json:"stopped_share" parquet:"stopped_share,optional"`
	StoppedShareLow *float64 `json:"stopped_share_low" parquet:"stopped_share_low,optional"`
	UsedCPUs        *float64 `json:"used_cpus" parquet:"used_cpus,optional"`
	// StopP50 and StopP99 are how long its own quota stopped a container within one period, of the periods in which it
	// did: half of the stops and 99 in a hundred are no longer. Lengths are told apart by a third of them. Null: it did
	// not, or no rows have periods.
	StopP50 *float64 `json:"stop_p50_ms" parquet:"stop_p50_ms,optional"`
	StopP99 *float64 `json:"stop_p99_ms" parquet:"stop_p99_ms,optional"`
	// Requests is how many requests agents recorded while the service was stopped, RequestP50 and RequestP99 how long they
	// took. Null: fewer than 20, or no recording shows them.
	Requests   *int64   `json:"requests" parquet:"requests,optional"`
	RequestP50 *float64 `json:"request_p50_ms" parquet:"request_p50_ms,optional"`
	RequestP99 *float64 `json:"request_p99_ms" parquet:"request_p99_ms,optional"`
	// Roles are the roles with most runs in these recordings; none: there is no recording. They have a table of their own.
	Roles []Role `json:"roles" parquet:"-"`
	// Pools are its thread pools with most surplus threads, as in Defaults; none: recordings show none.
	Pools []Default `json:"pools" parquet:"-"`
	// ContendedShare is the part of the time in which its threads ran or were runnable that they waited for a CPU which
	// others held, or more of its own threads than there are CPUs: at most; ContendedShareLow at least. No quota of its
	// own mends that.
	ContendedShare    *float64 `json:"contended_share" parquet:"contended_share,optional"`
	ContendedShareLow *float64 `json:"contended_share_low" parquet:"contended_share_low,optional"`
	// StoppedBy is whose quota stops it most: own, pod, slice or inside. SpentBy is the service that spends that quota.
	StoppedBy *string `json:"stopped_by" parquet:"stopped_by,optional"`
	SpentBy   *string `json:"spent_by" parquet:"spent_by,optional"`
	// OverHosts is how unlike its hosts are, for the limit that it has on most of them, and OverShards how unlike its shards,
	// which are containers, or several that took each other's place. Null: fewer than three were observed for at least half
	// as long as another.
	OverHosts  *Spread `json:"over_hosts" parquet:"over_hosts,optional"`
	OverShards *Spread `json:"over_shards" parquet:"over_shards,optional"`
	// Half and Double are the service as half and as twice as many containers, which serve as much together, with the same
	// remedy; null: it has one container, what one needs is not known, none would be left when hosts fail, or Prices tell
	// it.
	Half   *Shards `json:"half" parquet:"half,optional"`
	Double *Shards `json:"double" parquet:"double,optional"`
	// Unknown is how many of its containers keep what they have because what they need is not known.
	Unknown int `json:"unknown" parquet:"unknown"`
	// PerMonth is what they cost; null: no price was given.
	PerMonth *PerMonth `json:"per_month" parquet:"per_month,optional"`
	// Young is how many of these were observed for less than five minutes, and have another limit, other CPUs or another
	// remedy than those that were observed for longer, as after a deploy: Limit, which others tell, is theirs too.
	Young int `json:"young" parquet:"young"`
	// FailoverHosts is for how many hosts that fail at once what it needs is enough: fewer than Document.FailoverHosts where it is
	// on no more hosts than those.
	FailoverHosts int `json:"failover_hosts" parquet:"failover_hosts"`
	// ByBounds is how many of its containers have no periods in their rows, and are sized by what serves every order of
	// their demand.
	ByBounds int `json:"by_bounds" parquet:"by_bounds"`
}

// Spread is how unlike so many hosts of a service are, with so many shards, or these shards. A range is null where it is known
// of fewer than three of them, or of fewer than half.
type Spread struct {
	Hosts  int `json:"hosts" parquet:"hosts"`
	Shards int `json:"shards" parquet:"shards"`
	// Stopped is of StoppedShare, Contended of ContendedShareLow, and RequestP99 of RequestP99, in ms.
	Stopped    *Range `json:"stopped_share" parquet:"stopped_share,optional"`
	Contended  *Range `json:"contended_share" parquet:"contended_share,optional"`
	RequestP99 *Range `json:"request_p99_ms" parquet:"request_p99_ms,optional"`
}

// Range is a figure on the one with the least, in the middle, and on the one with the most, of those of which it is known.
// MostOn is CLUSTER/NODE of a host, and of a shard with its pod, or its container where it has none.
type Range struct {
	Of     int     `json:"of" parquet:"of"`
	Least  float64 `json:"least" parquet:"least"`
	Median float64 `json:"median" parquet:"median"`
	Most   float64 `json:"most" parquet:"most"`
	MostOn string  `json:"most_on" parquet:"most_on"`
}

// Role is what threads of one pool took from wake-up to sleep.
type Role struct {
	Name string  `json:"name" parquet:"name"`
	Runs int64   `json:"runs" parquet:"runs"`
	P50  float64 `json:"response_p50_ms" parquet:"response_p50_ms"`
	P99  float64 `json:"response_p99_ms" parquet:"response_p99_ms"`
}

// Shards are the containers of a service, if there were another number of them: what each needs as its limit, and all
// together.
type Shards struct {
	Containers int     `json:"containers" parquet:"containers"`
	Limit      float64 `json:"limit_cpus" parquet:"limit_cpus"`
	Cores      float64 `json:"cores" parquet:"cores"`
	CoresLow   float64 `json:"cores_low" parquet:"cores_low"`
	CoresHigh  float64 `json:"cores_high" parquet:"cores_high"`
}

// Workload is the controller in Kubernetes whose template has the limit of a service.
type Workload struct {
	// Kind is Deployment, StatefulSet or DaemonSet, by the form of its pods' names.
	Kind      string `json:"kind" parquet:"kind"`
	Namespace string `json:"namespace" parquet:"namespace"`
	Name      string `json:"name" parquet:"name"`
	Container string `json:"container" parquet:"container"`
	// LimitCPUs and RequestCPUs are those of each of its containers now; null: none, or they differ.
	LimitCPUs   *float64 `json:"limit_cpus" parquet:"limit_cpus,optional"`
	RequestCPUs *float64 `json:"request_cpus" parquet:"request_cpus,optional"`
}

// DaemonSet is the kind of a Workload that has a pod on each host.
const DaemonSet = "DaemonSet"

// Remedies of a Service.
const (
	Lower  = "lower"         // a lower limit
	Burst  = forecast.Burst  // a lower limit, with a burst of one quota
	Narrow = forecast.Narrow // a lower limit as a width, with credit
	Pin    = forecast.Pin    // fewer CPUs, of its own
	Pools  = forecast.Pools  // a lower limit, with pools of as many threads
	Budget = forecast.Budget // a lower limit, with the library
	Halved = forecast.Shards // half as many containers of twice the size
	Leave  = "leave"
)

// Period is the period of a burst; 0: the one that the limit has.
func Period(ms *float64) time.Duration {
	if ms == nil {
		return 0
	}
	return time.Duration(*ms * float64(time.Millisecond))
}

// named is a remedy with the period of its burst.
func named(remedy string, periodMS *float64) string {
	if period := Period(periodMS); period > 0 {
		return remedy + ", period " + text.Duration(period)
	}
	return remedy
}

// flags are those that apply a burst in a longer period, in brackets; "" for what needs none.
func (s *Service) flags() string {
	if s.Remedy == nil || *s.Remedy != Burst || s.BurstPeriodMS == nil {
		return ""
	}
	return fmt.Sprintf(" (--remedy %s --period %v)", Burst, Period(s.BurstPeriodMS))
}

// remedyNamed is its remedy, with the period of a burst.
func (s *Service) remedyNamed() string {
	if s.Remedy != nil && *s.Remedy == Burst {
		return named(Burst, s.BurstPeriodMS)
	}
	return known(s.Remedy)
}

// Priced is a remedy of a Service that a forecast may price.
type Priced struct {
	Name   string // in a forecast's prices
	Remedy string // in the report
	Asks   string // what it asks for
}

// Remedies are those of a Service, those first that ask for least: every one that forecasts price.
var Remedies = []Priced{
	{forecast.Limit, Lower, AsksLimit}, {forecast.Burst, Burst, AsksNode}, {forecast.Narrow, Narrow, AsksNode},
	{forecast.Pin, Pin, AsksNode}, {forecast.Pools, Pools, AsksSetting}, {forecast.Budget, Budget, AsksCode},
	{forecast.Shards, Halved, AsksShards},
}

// Asks is what a remedy of a Service asks for; "": there is no such remedy.
func Asks(remedy string) string {
	for _, r := range Remedies {
		if r.Remedy == remedy {
			return r.Asks
		}
	}
	if remedy == Leave {
		return AsksNothing
	}
	return ""
}

// What a remedy asks for.
const (
	AsksLimit   = "limit"   // of the workload
	AsksNode    = "node"    // a setting that unthrottle keeps there
	AsksSetting = "setting" // of the service: the sizes of its pools
	AsksCode    = "code"    // a change of the service's own
	AsksShards  = "shards"  // another number of containers: each that is lost takes more with it
	AsksNothing = "nothing"
)

// Objective is a bound on a latency that the owner of a service gave, in a policy or an annotation. JudgedQuantile and
// JudgedMS of the service are then those of it.
type Objective struct {
	Quantile float64 `json:"quantile" parquet:"quantile"`
	MS       float64 `json:"ms" parquet:"ms"`
	// Cores are what its containers need to keep it, by their limits alone: more than they have where they miss it.
	// CoresHigh is null where none that was tried surely keeps it.
	Cores     float64  `json:"cores" parquet:"cores"`
	CoresLow  float64  `json:"cores_low" parquet:"cores_low"`
	CoresHigh *float64 `json:"cores_high" parquet:"cores_high,optional"`
	// Slack is the part of their cores that are too many for it; below zero they are too few.
	Slack float64 `json:"slack" parquet:"slack"`
}

// Price is what the containers of a service that have the same settings need with a remedy, at the same latency.
type Price struct {
	Remedy string `json:"remedy" parquet:"remedy"`
	// PeriodMS is the period of a burst, where it is a longer one than the limit has; else null.
	PeriodMS *float64 `json:"period_ms" parquet:"period_ms,optional"`
	// Asks is what it asks for: limit, node, setting, code or shards.
	Asks string `json:"asks" parquet:"asks"`
	// CPUs is what one container needs, or one of now where there are half as many: a limit, or CPUs of its own. From
	// CPUsLow on it may do, from CPUsHigh on it surely does; null: none that was tried surely does.
	CPUs     float64  `json:"cpus" parquet:"cpus"`
	CPUsLow  float64  `json:"cpus_low" parquet:"cpus_low"`
	CPUsHigh *float64 `json:"cpus_high" parquet:"cpus_high,optional"`
	// Containers are those with these settings, most of the service. CoresAfter is what remains of their CoresNow.
	Containers     int     `json:"containers" parquet:"containers"`
	CoresNow       float64 `json:"cores_now" parquet:"cores_now"`
	CoresAfter     float64 `json:"cores_after" parquet:"cores_after"`
	CoresAfterLow  float64 `json:"cores_after_low" parquet:"cores_after_low"`
	CoresAfterHigh float64 `json:"cores_after_high" parquet:"cores_after_high"`
	// Rounding and Failover are those of Ledger; null: what whole CPUs cost a pin is not known.
	Rounding *float64 `json:"rounding" parquet:"rounding,optional"`
	Failover *float64 `json:"failover" parquet:"failover,optional"`
}

// ByRemedy is the part of the ledger of a remedy.
type ByRemedy struct {
	Remedy string `json:"remedy" parquet:"remedy"`
	// PeriodMS is that of Price.
	PeriodMS *float64 `json:"period_ms" parquet:"period_ms,optional"`
	Asks     string   `json:"asks" parquet:"asks"`
	// Priced: recordings tell what these containers need at the same p99. Otherwise rows tell what they need at the same
	// stops.
	Priced     bool    `json:"priced" parquet:"priced"`
	Services   int     `json:"services" parquet:"services"`
	Containers int     `json:"containers" parquet:"containers"`
	CoresNow   float64 `json:"cores_now" parquet:"cores_now"`
	CoresAfter float64 `json:"cores_after" parquet:"cores_after"`
	// Saved is without what Ledger takes off for fragmentation.
	Saved     float64 `json:"saved" parquet:"saved"`
	SavedLow  float64 `json:"saved_low" parquet:"saved_low"`
	SavedHigh float64 `json:"saved_high" parquet:"saved_high"`
	// Rounding and Failover are those of Price.
	Rounding *float64  `json:"rounding" parquet:"rounding,optional"`
	Failover *float64  `json:"failover" parquet:"failover,optional"`
	PerMonth *PerMonth `json:"per_month" parquet:"per_month,optional"`
}

// HoursPerMonth is how long a month is: a twelfth of a year.
const HoursPerMonth = 730

// PerMonth is what cores cost in a month, in the currency of the price that was given, and what of it comes back.
type PerMonth struct {
	Now       float64 `json:"now" parquet:"now"`
	Saved     float64 `json:"saved" parquet:"saved"`
	SavedLow  float64 `json:"saved_low" parquet:"saved_low"`
	SavedHigh float64 `json:"saved_high" parquet:"saved_high"`
}

// Add adds more. Where no price was given both are nil.
func (m *PerMonth) Add(more *PerMonth) {
	if m != nil && more != nil {
		m.Now, m.Saved, m.SavedLow, m.SavedHigh = m.Now+more.Now, m.Saved+more.Saved, m.SavedLow+more.SavedLow, m.SavedHigh+more.SavedHigh
	}
}

// Ledger is the sum over all services.
type Ledger struct {
	CoresNow   float64 `json:"cores_now" parquet:"cores_now"`
	CoresAfter float64 `json:"cores_after" parquet:"cores_after"`
	// Rounding is what CoresAfter has above what is needed: limits are tenths of a CPU, exclusive CPUs are whole.
	Rounding float64 `json:"rounding" parquet:"rounding"`
	// Failover is what CoresAfter has for hosts that fail; null: nothing was asked to be kept. Fragmentation is what
	// pinned containers give back as odd threads of cores, which no set of whole cores can have: it is not in Saved. Null:
	// rows do not tell which CPUs they have.
	Fragmentation *float64 `json:"fragmentation" parquet:"fragmentation,optional"`
	Failover      *float64 `json:"failover" parquet:"failover,optional"`
	Saved         float64  `json:"saved" parquet:"saved"`
	SavedLow      float64  `json:"saved_low" parquet:"saved_low"`
	SavedHigh     float64  `json:"saved_high" parquet:"saved_high"`
	// PerMonth is what they cost; null: no price was given.
	PerMonth *PerMonth `json:"per_month" parquet:"per_month,optional"`
}

// Applied is what came of a remedy, over the containers that have rows without it and with it. Where pods were made anew with a
// lower limit, each container is compared with one that its service had before, and with no remedy in force the lower limit is one.
type Applied struct {
	Remedy     string `json:"remedy" parquet:"remedy"`
	Containers int    `json:"containers" parquet:"containers"`
	// DoLess is how many more use less than half of the CPU time that they used before: fewer stops tell nothing of the remedy there.
	DoLess        int      `json:"do_less" parquet:"do_less"`
	StoppedBefore *float64 `json:"stopped_share_before" parquet:"stopped_share_before,optional"`
	StoppedAfter  *float64 `json:"stopped_share_after" parquet:"stopped_share_after,optional"`
	// StoppedForecast is what the periods before foretold of a burst or another limit; null: they do not tell that of
	// each container.
	StoppedForecast *float64 `json:"stopped_share_forecast" parquet:"stopped_share_forecast,optional"`
	CoresBefore     *float64 `json:"cores_before" parquet:"cores_before,optional"`
	CoresAfter      *float64 `json:"cores_after" parquet:"cores_after,optional"`
	// RequestP99Before and RequestP99After are of the requests in agents' recordings while a quota stopped them. Null: there
	// are fewer than 20.
	RequestP99Before *float64 `json:"request_p99_ms_before" parquet:"request_p99_ms_before,optional"`
	RequestP99After  *float64 `json:"request_p99_ms_after" parquet:"request_p99_ms_after,optional"`
	// Promised is of how many a recording before told what they need with it. That it saves as much of their cores was
	// promised, between low and high; Came is what these have less than before, now. Null: of none, or their cores with it
	// are not known.
	Promised      int      `json:"promised" parquet:"promised"`
	SavedPromised *float64 `json:"saved_promised" parquet:"saved_promised,optional"`
	SavedLow      *float64 `json:"saved_promised_low" parquet:"saved_promised_low,optional"`
	SavedHigh     *float64 `json:"saved_promised_high" parquet:"saved_promised_high,optional"`
	Came          *float64 `json:"saved" parquet:"saved,optional"`
	// Compared is of how many it is known whether they are worse than promised, and Worse how many are: with as many CPUs
	// as promised or more, the judged latency is longer than before by more than counts as equal, or the quota stopped them
	// for a larger share of the time than a limit at the bound of what StoppedForecast may be off by would.
	Compared int `json:"compared" parquet:"compared"`
	Worse    int `json:"worse" parquet:"worse"`
	// Days are what came by the day since it was applied to each container. They have a table of their own.
	Days []AppliedDay `json:"days" parquet:"-"`
}

// DaysOfApplied is how many days of a remedy are told apart: its last line is of all later ones.
const DaysOfApplied = 14

// AppliedDay is one day with a remedy, 0 the first, of the containers that had it for so long.
type AppliedDay struct {
	Day          int      `json:"day" parquet:"day"`
	Containers   int      `json:"containers" parquet:"containers"`
	StoppedShare float64  `json:"stopped_share" parquet:"stopped_share"`
	Cores        *float64 `json:"cores" parquet:"cores,optional"`
	RequestP99   *float64 `json:"request_p99_ms" parquet:"request_p99_ms,optional"`
}

// Rollout is a service that has a remedy in force in so many containers, and a line for some that had rows before it: those
// that run now first, and then those that were stopped most before.
type Rollout struct {
	Service    string        `json:"service"`
	Remedy     string        `json:"remedy"`
	Containers int           `json:"containers"`
	Lines      []RolloutLine `json:"lines"`
}

// RolloutLine is one container. StoppedShare is in each half hour from 24 hours before Since, when the remedy came into
// force, until 24 hours after it: 48 and 48. Null: there is no row of it.
type RolloutLine struct {
	Host         string     `json:"host"`
	Pod          string     `json:"pod"`
	Since        time.Time  `json:"since"`
	StoppedShare []*float64 `json:"stopped_share"`
	// RequestP99Before and RequestP99After are of requests that agents recorded in these 24 hours before Since, and after it, in ms.
	RequestP99Before *float64 `json:"request_p99_ms_before"`
	RequestP99After  *float64 `json:"request_p99_ms_after"`
}

// Unknown is a reason for which the needs of containers are not known.
type Unknown struct {
	Reason     string `json:"reason" parquet:"reason"`
	Containers int    `json:"containers" parquet:"containers"`
	// Cores are what they have.
	Cores float64 `json:"cores" parquet:"cores"`
}

// Input is what was read, and what was left out of it.
type Input struct {
	Files   int       `json:"files"`
	Refused []Refused `json:"files_left_out"`
	// RefusedMore is how many more files were left out than are listed.
	RefusedMore int   `json:"files_left_out_more"`
	Rows        int64 `json:"rows"`
	// Copies are rows that were there twice, Overlapping those of two programs that observed the same five minutes: one of
	// each counts.
	Copies      int64 `json:"rows_copied"`
	Overlapping int64 `json:"rows_overlapping"`
	// Later are rows of after the moment that was asked for.
	Later    int64     `json:"rows_later"`
	Problems []Problem `json:"rows_left_out"`
	// Ahead are hosts whose newest rows begin after the moment of the report, or go on for long after the rows of most hosts
	// ended.
	Ahead     []Ahead `json:"clocks_ahead"`
	AheadMore int     `json:"clocks_ahead_more"`
	// GoneAfter is how long before Until the rows of a host end that is gone, for those who say so in words.
	GoneAfter time.Duration `json:"-"`
	// HostsGone are hosts without rows of that time before Until, ContainersGone the containers that ran at the
	// end of their rows. What they wanted counts for what is needed, and they are no part of what runs now. Gone names
	// some of the hosts.
	HostsGone      int    `json:"hosts_gone"`
	ContainersGone int    `json:"containers_gone"`
	Gone           []Gone `json:"gone"`
	// Most are more hosts, whose rows end together long before Until: the clocks of others may be ahead; null: there are none.
	Most *Most `json:"most_hosts"`
}

// Most are the most hosts whose rows end together, and the last moment of these.
type Most struct {
	Hosts int       `json:"hosts"`
	Until time.Time `json:"until"`
}

// Refused is a file that cannot be read.
type Refused struct {
	File string `json:"file"`
	Why  string `json:"why"`
}

// Problem is what is wrong with some rows. File and Row name the first; rows count from 0.
type Problem struct {
	Why  string `json:"why"`
	Rows int64  `json:"rows"`
	File string `json:"file"`
	Row  int64  `json:"row"`
}

// Gone is a host that has ended, or whose newest rows were not brought here. Until is the end of its rows, by its own
// clock.
type Gone struct {
	Host       string    `json:"host"`
	Until      time.Time `json:"until"`
	Containers int       `json:"containers"`
}

// Ahead is a host with a clock that is ahead.
type Ahead struct {
	Host    string  `json:"host"`
	Seconds float64 `json:"seconds"`
}
