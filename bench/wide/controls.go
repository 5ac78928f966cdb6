package main

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/unthrottle/unthrottle/internal/experiment/capacity"
	"github.com/unthrottle/unthrottle/internal/stats"
	"github.com/unthrottle/unthrottle/test/study"
)

// settled is by how much p99 may move from one K to the next larger one: from there on slowing is enough, and what comes is no longer
// the emulator's.
const settled = 0.1

// move is p99 of a remedy at a host's K, and at the next larger one with the same requests.
type move struct {
	Remedy   string
	K, Next  int
	P99, Far float64
}

func (m move) settled() bool { return math.Abs(m.P99-m.Far) < settled*m.P99 }

// moves tells how p99 of a shape under a remedy moves beyond a host's K; false: no larger K was measured.
func (p page) moves(at host, shape, remedy string) (m move, ok bool) {
	here := p.have.find(pointOf(at, shape, remedy, comparedLevel, 1))
	if here == nil || here.Point.P99 == nil {
		return m, false
	}
	for _, far := range hosts() {
		if far.CPUs != at.CPUs || far.Limit != at.Limit || far.K <= at.K || ok && far.K >= m.Next {
			continue
		}
		if r := p.have.find(pointOf(far, shape, remedy, comparedLevel, 1)); r != nil && r.Point.P99 != nil {
			m, ok = move{names[remedy], at.K, far.K, *here.Point.P99, *r.Point.P99}, true
		}
	}
	return m, ok
}

// Headlines are the gains that are settled: p99 of neither the quota nor the remedy moves with K.
func (p page) Headlines() (texts []string) {
	for _, of := range p.Gains {
		for _, name := range allRemedies()[1:] {
			quota, known := p.moves(of.At, of.Shape, capacity.Quota)
			remedy, knownToo := p.moves(of.At, of.Shape, name)
			if g := p.gain(of.At, of.Shape, name); known && knownToo && quota.settled() && remedy.settled() && g.factor() > 0 {
				texts = append(texts, fmt.Sprintf("%d CPUs, `%s`, %s: %v", of.At.CPUs, of.Shape, names[name], g))
			}
		}
	}
	return texts
}

// Unsettled says for each gain why it is no headline.
func (p page) Unsettled() (texts []string) {
	for _, of := range p.Gains {
		text := fmt.Sprintf("`%s` on %d CPUs: ", of.Shape, of.At.CPUs)
		switch m, known := p.moves(of.At, of.Shape, capacity.Quota); {
		case !known:
			texts = append(texts, text+"no larger K was measured")
		case !m.settled():
			texts = append(texts, text+fmt.Sprintf("the quota's p99 is %.1f ms at K = %d and %.1f at K = %d", m.P99, m.K, m.Far, m.Next))
		}
	}
	return texts
}

// Settled are the remedies of the shard whose own p99 does not move with K.
func (p page) Settled() string {
	var texts []string
	for _, at := range []host{small, faster, wide} {
		for _, name := range append(allRemedies(), noCredit) {
			if m, known := p.moves(at, capacity.Shard, name); known && m.settled() {
				texts = append(texts, fmt.Sprintf("%s on %d CPUs (%.1f ms at K = %d, %.1f at K = %d)", m.Remedy, at.CPUs, m.P99, m.K, m.Far, m.Next))
			}
		}
	}
	return strings.Join(texts, ", ")
}

// Ended are the gains whose grid ended below what the best remedy carries.
func (p page) Ended() (texts []string) {
	for _, of := range p.Gains {
		var ended []string
		for _, name := range allRemedies()[1:] {
			if g := p.gain(of.At, of.Shape, name); slices.ContainsFunc(g.ended, func(share float64) bool { return share > 0 }) {
				ended = append(ended, names[name])
			}
		}
		if len(ended) > 0 {
			texts = append(texts, fmt.Sprintf("`%s` on %d CPUs (%s)", of.Shape, of.At.CPUs, strings.Join(ended, ", ")))
		}
	}
	return texts
}

// Naive compares narrow without credit, which is how the published kernel patch bounds the width, with the quota: one point.
func (p page) Naive() string {
	var texts []string
	for _, at := range []host{small, patient} {
		quota, naive := p.p99Ms(at, capacity.Shard, capacity.Quota, comparedLevel), p.p99Ms(at, capacity.Shard, noCredit, comparedLevel)
		if quota != nil && naive != nil {
			texts = append(texts, fmt.Sprintf("p99 %.1f ms at K = %d, with the quota %.1f", *naive, at.K, *quota))
		}
	}
	return strings.Join(texts, "; ")
}

// Unpredictable are the factors of p99 on a full host that are above the bound of narrow.
func (p page) Unpredictable() string {
	var texts []string
	for _, at := range []host{small, patient} {
		for _, name := range []string{noCredit, capacity.NarrowSchedExt} {
			empty, full := p.emptyAndFull(at, name)
			if empty == nil || full == nil {
				continue
			}
			if factor := *full.Point.P99 / *empty.Point.P99; factor > mostUnpredictable {
				texts = append(texts, fmt.Sprintf("%s %.2f at K = %d", names[name], factor, at.K))
			}
		}
	}
	return strings.Join(texts, ", ")
}

// mostUnpredictable is the bound for narrow.
const mostUnpredictable = 1.2

// Factors are the rows of the same points at several K.
func (p page) Factors() (rows []string) {
	for _, name := range converging {
		for _, at := range []host{faster, wide, slower} {
			r := p.have.find(pointOf(at, capacity.Shard, name, comparedLevel, 1))
			if r == nil {
				rows = append(rows, study.Row(names[name], at.K, "not measured yet", "", "", "", "", ""))
				continue
			}
			rows = append(rows, study.Row(names[name], at.K, study.Decimals(r.Point.P50, 1), study.Decimals(r.Point.P99, 1),
				study.Decimals(r.Point.CPUUsed, 2), throttledText(r.Point), fmt.Sprintf("%.1f", r.Calibration.SwitchNs/1e3),
				fmt.Sprintf("%.0f", r.Calibration.SleepLateUs)))
		}
	}
	return rows
}

// throttledText are the throttled periods of a point; "-": it has none to throttle.
func throttledText(f *figures) string {
	if f.Periods == nil || f.Throttled == nil || *f.Periods == 0 {
		return "-"
	}
	return fmt.Sprintf("%d of %d", *f.Throttled, *f.Periods)
}

// shapeTable are all remedies of a shape on a host.
type shapeTable struct {
	At    host
	Shape string
	Rows  []string
	Told  string // where the prediction comes from
}

// Tables are those of all shapes that are measured.
func (p page) Tables() (tables []shapeTable) {
	for _, at := range []host{small, wide, widest} {
		for _, shape := range shapes {
			t := shapeTable{At: at, Shape: shape}
			var forecast *forecasts
			forecast, t.Told = p.forecast(at, shape)
			for _, name := range append(allRemedies(), capacity.PinPools) {
				knees, cells, measured := p.knees(at, shape, name), []any{}, false
				for level := range levels {
					p99 := p.p99Ms(at, shape, name, level)
					cell := ""
					if p99 != nil {
						cell, measured = study.Decimals(p.ms(at, shape, name, level, 0.5), 1)+"; "+study.Decimals(p99, 0), true
					}
					cells = append(cells, cell)
				}
				if measured {
					t.Rows = append(t.Rows, study.Row(append([]any{names[name], knees, predictedText(forecast, name)}, cells...)...))
				}
			}
			if len(t.Rows) > 0 {
				tables = append(tables, t)
			}
		}
	}
	return tables
}

// knees are the highest loads of all repeats.
func (p page) knees(at host, shape, remedy string) string {
	var texts []string
	for repeat := 1; repeat <= repeats; repeat++ {
		if k, ok := p.have.kneeOf(at, shape, remedy, repeat); ok {
			texts = append(texts, k.String())
		}
	}
	return strings.Join(texts, ", ")
}

func (k knee) String() string {
	switch low, high := 100*k.Share, 100*k.Upto; {
	case k.Open && math.IsInf(high, 1):
		return fmt.Sprintf("above %.0f %%", low)
	case k.Open && low == high, k.AtMost:
		return fmt.Sprintf("below %.0f %%", low)
	case k.Open:
		return fmt.Sprintf("%.0f to %.0f %%", low, high)
	case k.AtLeast:
		return fmt.Sprintf("at least %.0f %%", low)
	default:
		return fmt.Sprintf("%.0f %%", low)
	}
}

// forecast is what was forecast of a shape, as multiples of what the limit can carry, and where it comes from; nil: there is none.
func (p page) forecast(at host, shape string) (f *forecasts, told string) {
	for level, share := range levels {
		of := pointOf(at, shape, capacity.Quota, level, 1)
		of.Kind = recorded
		r := p.have.find(of)
		if r == nil || r.Forecast == nil {
			continue
		}
		if r.Forecast.Why != "" {
			return nil, "Not predicted: " + r.Forecast.Why + "."
		}
		scaled := *r.Forecast
		scaled.Rows = slices.Clone(scaled.Rows)
		for i, row := range scaled.Rows {
			if row.BreaksAt != nil {
				scaled.Rows[i].BreaksAt = new(share * *row.BreaksAt)
			}
		}
		return &scaled, fmt.Sprintf("Predicted: the load from which on [forecast](../reference/forecast.md) has the objective missed, from a recording "+
			"of the plain quota at %.0f requests per second.", scaled.Load)
	}
	return nil, ""
}

// predictedText is the load at which a forecast has a remedy miss the objective.
func predictedText(f *forecasts, remedy string) string {
	if f == nil {
		return ""
	}
	for _, row := range f.Rows {
		if row.Remedy != remedy {
			continue
		}
		if row.BreaksAt == nil {
			return fmt.Sprintf("at no load up to %d times that of the recording", forecastTo)
		}
		return fmt.Sprintf("%.0f %%", 100**row.BreaksAt)
	}
	return ""
}

// narrowRows are the figures of the scheduler of narrow, by the names that records have.
var narrowRows = []struct{ name, about, bound string }{
	{"widest", "most CPUs that 32 burners under a cap of 2 had at one moment, by the scheduler's count, less threads that joined above it", "at most 2"},
	{"wider", "share of the time in which the probe saw them wider than the cap", "at most 0.02"},
	{"stops", "throttled periods of a container with a cap of 2 in place of a quota", "0"},
	{"mean-0.5", "mean use of 16 burners under a cap of 0.5, over the cap", "at most 1.02"},
	{"mean-1", "the same of 1", "at most 1.02"},
	{"mean-2", "the same of 2", "at most 1.02"},
	{"mean-2.5", "the same of 2.5", "at most 1.02"},
	{"idle-half", "8 threads idle for half of each second, then all out: mean use over the cap of 2, without credit", "none"},
	{"idle-half-credit", "the same with a credit of 1 s: what an idle half saves", "at least 0.95"},
	{"idle-half-credit-2s", "the same with a credit of 2 s", "at least 0.95"},
	{"sleeper", "p99 of sleeps of 10 ms beside 32 burners under a cap of 2, over that on 2 CPUs by a cpuset", "at most 1.5"},
	{"many", "threads above the caps of 100 containers whose caps change every 100 ms, and faults of the scheduler", "0"},
	{"killed", "from SIGKILL of the loader until the kernel's own scheduler is back, s", "at most 1"},
	{"neighbour", "CPU time of 8 burners beside a container with a cap of 2, over what 6 CPUs are", "at least 0.95"},
}

// Narrow are the rows of narrow by itself.
func (p page) Narrow() (rows []string) {
	for _, of := range narrowRows {
		var came []string
		met := 0
		for repeat := 1; repeat <= repeats; repeat++ {
			r := p.have.find(piece{Machine: small.machine(), Kind: narrowed, Edition: edition, Limit: small.Limit, Scenario: of.name,
				Seconds: 4, Repeat: repeat})
			if r == nil || r.Narrow == nil {
				continue
			}
			if came = append(came, fmt.Sprintf("%.3g", r.Narrow.Value)); r.Narrow.Met {
				met++
			}
		}
		verdict := fmt.Sprintf("%d of %d", met, len(came))
		if of.bound == "none" {
			verdict = "-" // it cannot miss
		}
		if len(came) > 0 {
			rows = append(rows, study.Row(of.about, of.bound, strings.Join(came, ", "), verdict))
		}
	}
	return rows
}

// changes are what was changed beside the plain quota: remedies, and settings of the guest.
var changes = []struct{ remedy, setting, about string }{
	{capacity.Quota, "", "quota"}, {capacity.Period, "", ""}, {capacity.Burst, "", ""}, {capacity.BurstPeriod, "", ""},
	{capacity.Twice, "", ""}, {capacity.Weight, "", ""}, {capacity.Pools, "", ""}, {capacity.RateLimit, "", ""}, {noCredit, "", ""},
	{capacity.Quota, "slice-1ms", "sched_cfs_bandwidth_slice_us 1000, not 5000"},
	{capacity.Quota, "slice-20ms", "sched_cfs_bandwidth_slice_us 20000, not 5000"},
	{capacity.Quota, "base-slice-500us", "base_slice_ns 500000"},
	{capacity.Quota, "base-slice-10ms", "base_slice_ns 10000000"},
	{capacity.Quota, "scaling-none", "tunable_scaling none, not by the logarithm of the CPUs"},
	{capacity.Quota, "autogroup-off", "sched_autogroup_enabled 0"},
	{capacity.Quota, "host-50", "others want half of the host"},
	{capacity.Quota, fullHost, "others want nine tenths of the host"},
	{capacity.Quota, "spikes-together", "three services of its size spike at the same time, 20 ms on all CPUs in each 240 ms"},
	{capacity.Quota, "spikes-apart", "the same three, one after the other"},
}

// Changes are the rows of the shard under the quota with one thing changed.
func (p page) Changes() (rows []string) {
	base := p.p99Ms(small, capacity.Shard, capacity.Quota, comparedLevel)
	for _, of := range changes {
		asked := pointOf(small, capacity.Shard, of.remedy, comparedLevel, 1)
		asked.Setting = of.setting
		r := p.have.find(asked)
		if r == nil {
			continue
		}
		factor, about := "-", of.about
		if base != nil && r.Point.P99 != nil {
			factor = fmt.Sprintf("%.2f", *r.Point.P99 / *base)
		}
		if about == "" {
			about = names[of.remedy]
		}
		rows = append(rows, study.Row(about, study.Decimals(r.Point.P50, 1), study.Decimals(r.Point.P99, 1), factor, r.Point.Requests,
			r.Point.Failed, study.Decimals(r.Point.CPUUsed, 2), throttledText(r.Point)))
	}
	return rows
}

// Conditions under which all were measured.
func (p page) Conditions() string {
	var others, late []float64
	days := map[string]bool{}
	for _, r := range p.have.All {
		days[r.Day()] = true
		if s := r.Calibration.StealShare; s != nil {
			others = append(others, 100**s)
		}
		late = append(late, r.Calibration.SleepLateUs)
	}
	if len(others) == 0 {
		return ""
	}
	return fmt.Sprintf("%d pieces on %d days. While they ran, others had %.0f %% of the host's CPUs (median; at most %.0f %%). A sleep of 1 ms ended %.0f us late (median).",
		len(p.have.All), len(days), stats.Median(others), slices.Max(others), stats.Median(late))
}
