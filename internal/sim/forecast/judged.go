package forecast

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/internal/explain/requests"
	"github.com/unthrottle/unthrottle/internal/objective"
	"github.com/unthrottle/unthrottle/internal/stats"
)

// What Judged.Of may be.
const (
	OfRequests = "requests"
	OfPool     = "pool"
)

// Judged says whose latency decides between remedies, and which quantile of it.
//
// Where requests are seen it is theirs: the time from the arrival of a request's data to its last write. A wake-up is no
// request: during a stop many requests queue, and one wake-up of an event loop answers them all, so that a pool's p99
// counts a stop once that a hundred clients wait for. Only where too few requests are seen it is the responses of a pool.
type Judged struct {
	// Of is OfRequests or OfPool.
	Of string
	// Pool is the name of the judged thread pool; "": all pools together, or requests are judged.
	Pool string
	// Kind are the judged requests.
	Kind Kind
	// Quantile is 0 to 1; 1 is the longest.
	Quantile float64
	// Samples is how many requests or responses the recording has.
	Samples int
}

// judge sets the figure by which remedies are compared: of requests where enough are seen, of the kind that is hurt most;
// else of a pool. An objective sets the quantile, and may name a pool.
func (m *maker) judge() {
	o, quantile := m.o.Objective, m.objective().Quantile
	var kinds []kindOf
	if o == nil || o.Pool == "" {
		kinds = m.l.kinds()
	}
	switch {
	case len(kinds) > 0:
		m.judgeRequests(kinds, quantile)
	case o != nil:
		m.judged(Judged{Of: OfPool, Pool: o.Pool, Quantile: quantile})
	default:
		pool := m.l.waiting()
		if pool < 0 {
			return
		}
		p := m.l.Pools[pool]
		m.judged(Judged{Of: OfPool, Pool: p.Name, Quantile: stats.Tellable(int(p.recorded.Response.Count()), m.l.window, quantile)})
		m.note("%s, so responses of pool %s are judged", noRequests(len(m.l.requests)), p.Name)
	}
	if j := m.f.Judged; o == nil && j.Quantile < quantile {
		m.note("%d samples in %v tell no %s within %v of looking, so %s is judged", j.Samples,
			m.l.window.Round(time.Second), objective.Percentile(quantile), stats.LongestLook, objective.InWords(j.Quantile))
	}
	for i := range m.f.Rows {
		if m.all[i] != nil {
			m.f.Rows[i].Meets = m.meets(m.all[i])
		}
	}
}

// noRequests says how many requests were seen, where they are too few.
func noRequests(n int) string {
	if n == 0 {
		return "no requests were seen"
	}
	return fmt.Sprintf("%d requests are too few to judge by", n)
}

func (m *maker) note(format string, args ...any) {
	m.f.Notes = append(slices.Clone(m.f.Notes), fmt.Sprintf(format, args...))
}

// judgeRequests judges the kind of requests that waits most, as explain tells it: by how many times as long as an unhindered request the
// tail took in the recording. A forecast does not decide it, since it may be wrong. Where none waits it is the kind with most requests.
// A kind with too few for a turn of a trial is judged only where all have.
//
// Worked example: 432 health checks take 2 ms unhindered, and their p95 is 9 ms; 96 inferences 400, and 900 ms: the health checks are
// judged.
func (m *maker) judgeRequests(kinds []kindOf, quantile float64) {
	hurt, most := 0, 1.0
	inTurns := slices.ContainsFunc(kinds, m.l.inTurns)
	for k, kind := range kinds {
		q := quantile
		if m.o.Objective == nil {
			q = stats.Tellable(len(kind.requests), m.l.window, quantile)
		}
		m.f.Kinds = append(m.f.Kinds, KindSeen{kind.Kind, len(kind.requests), q})
		for i, results := range m.all {
			row := &m.f.Rows[i]
			if results == nil || len(results[0].requests) == 0 {
				continue
			}
			_, answers := m.l.requestTimes(results, kind.requests)
			figures := KindFigures{P50: quantileOf(answers, 0.5), High: quantileOf(answers, q)}
			row.Kinds = append(row.Kinds, figures)
		}
		if inTurns && !m.l.inTurns(kind) {
			continue
		}
		if waits := m.l.waits(kind, q); waits > most {
			hurt, most = k, waits
		}
	}
	m.which = kinds[hurt].requests
	seen := m.f.Kinds[hurt]
	m.judged(Judged{Of: OfRequests, Kind: seen.Kind, Quantile: seen.Quantile, Samples: seen.Samples})
}

// LongestTurn is how long a turn of a trial is at most. It needs requests.Least requests to count.
const LongestTurn = 15 * time.Second

// inTurns reports whether enough requests of a kind come for the turns of a trial.
func (l *Load) inTurns(k kindOf) bool {
	return float64(len(k.requests))*LongestTurn.Seconds() >= requests.Least*l.window.Seconds()
}

// waits is how many times as long as an unhindered request, of which there is one in ten, the slowest of a kind took in the recording;
// 1: no longer by what counts.
func (l *Load) waits(k kindOf, quantile float64) float64 {
	took := make([]float64, len(k.requests))
	for i, r := range k.requests {
		took[i] = milliseconds(l.requests[r].took)
	}
	slices.Sort(took)
	unhindered, slow := stats.Rank(took, 0.1), stats.Rank(took, quantile)
	if slow-unhindered < stats.LeastGainMs {
		return 1
	}
	return slow / max(unhindered, 1e-3)
}

// judged sets the judged figure of every row.
func (m *maker) judged(j Judged) {
	if j.Of == OfPool {
		j.Samples = int(m.l.recordedResponses(j.Pool).Count())
	}
	m.f.Judged = &j
	met := FirstMet()
	for i := range m.f.Rows {
		if m.f.Rows[i].Remedy.Name == None && m.f.Rows[i].HostLoad == 0 && m.all[i] != nil {
			checked := m.all[i]
			if m.asRecorded != nil {
				checked = m.asRecorded
			}
			m.f.Check.Judged = Figure{m.recordedLatency(), m.latency(checked)}
		}
	}
	for i, results := range m.all {
		if results == nil {
			continue
		}
		row := &m.f.Rows[i]
		row.Judged, row.JudgedP50 = m.latency(results), m.latencyAt(results, 0.5)
		if !row.Remedy.Modelled() {
			row.JudgedRange = m.latencyRange(results, row.Remedy)
		}
		if j.Of == OfRequests && row.JudgedRange != nil {
			k := KnownOf(met, row.Remedy)
			row.Known = &k
		}
	}
}

// latency is the judged figure of runs, in milliseconds; nil: there is none.
func (m *maker) latency(results []result) *float64 {
	if m.f.Judged == nil {
		return nil
	}
	return m.latencyAt(results, m.f.Judged.Quantile)
}

// latencyAt is a quantile of what is judged. Runs whose threads are modelled have no requests: theirs are taken to change
// by the factor by which the responses of the pool that answers do.
func (m *maker) latencyAt(results []result, q float64) *float64 {
	j := m.f.Judged
	if j.Of == OfPool {
		return m.l.mergedTimes(results, j.Pool).Response.Quantile(q)
	}
	if len(results[0].requests) > 0 {
		_, answers := m.l.requestTimes(results, m.which)
		return new(quantileOf(answers, q))
	}
	_, answers := m.l.requestTimes(m.none, m.which)
	pool := m.answering()
	was, is := m.l.mergedTimes(m.none, pool).Response.Quantile(q), m.l.mergedTimes(results, pool).Response.Quantile(q)
	if was == nil || is == nil || *was <= 0 {
		return nil
	}
	return new(quantileOf(answers, q) * *is / *was)
}

// answering is the name of the pool that answers most of the judged requests.
func (m *maker) answering() string {
	n, most := map[string]int{}, ""
	for _, i := range m.which {
		name := m.l.requests[i].pool.Name
		if n[name]++; n[name] > n[most] {
			most = name
		}
	}
	return most
}

// recordedLatency is the judged figure as recorded.
func (m *maker) recordedLatency() *float64 {
	j := m.f.Judged
	if j.Of == OfPool {
		return m.l.recordedResponses(j.Pool).Quantile(j.Quantile)
	}
	answers := make([]answer, 0, len(m.which))
	for _, r := range m.which {
		answers = append(answers, answer{took: m.l.requests[r].took})
	}
	slowestFirst(answers)
	return new(quantileOf(answers, j.Quantile))
}

// latencyRange is the error of the judged figure: of its moments, of the self-check, and of earlier forecasts of the
// remedy. nil: there is no figure.
func (m *maker) latencyRange(results []result, r Remedy) *Range {
	j := m.f.Judged
	off := r.tested(m.o.Calibration).ifTested().at(j.Quantile)
	if j.Of == OfPool {
		return m.l.rangeOf(results, j.Pool, j.Quantile, m.f.Check.Judged, off)
	}
	if len(results[0].requests) == 0 {
		return nil
	}
	in, answers := m.l.requestTimes(results, m.which)
	times := otherTimes(in, answers, j.Quantile)
	if times == nil {
		return nil
	}
	return times.scaled(m.f.Check.Judged.ratio()+math.Max(0, off), quantileOf(answers, j.Quantile))
}

// TooFew says what was lacking where Judged is nil, and what to do.
func (f *Forecast) TooFew() string {
	const none = "no requests were seen, and "
	if f.MostResponses >= minRuns {
		return none + "too few wake-ups by clients, devices and timers were recorded to judge latency by; record for longer (--for)"
	}
	longer := "--for"
	if n := f.MostResponses; n > 0 {
		longer = fmt.Sprintf("--for %v", (f.Window*minRuns/time.Duration(n) + time.Second - 1).Truncate(time.Second))
	}
	return fmt.Sprintf("%stoo few responses were recorded to judge latency by: %d of one pool are needed, and %d is "+
		"the most; record for longer (%s)",
		none, minRuns, f.MostResponses, longer)
}

// at is the residual of a quantile.
func (r Residual) at(quantile float64) float64 {
	switch {
	case quantile > objective.P99: // beyond p99 only the longest response has been compared
		return r.Max
	case quantile <= 0.5:
		return r.P50
	}
	return r.P99
}

// The bounds of a self-check: how far a replay may be from its recording. A larger difference means that the
// replay is of something else.
const (
	failedRatio   = 2.0  // of the judged latency, of the stopped time, of the throttled periods
	failedMs      = 2.0  // and the latency differs by this at least
	failedStopped = 0.1  // and the stopped time by these seconds
	failedPeriods = 5.0  // and the throttled periods by this many
	failedCPU     = 0.25 // of the CPU time
)

// Failed says why the judged latency of the replay cannot be relied on; "": it can. A figure that differs says nothing
// against another one: a neighbour that takes all it gets changes the stopped time, and not what a request waits for.
func (c SelfCheck) Failed() string {
	switch {
	case c.Judged.far(failedMs, failedRatio):
		return "the judged latency"
	case c.CPU.Recorded != nil && c.CPU.apart() > failedCPU**c.CPU.Recorded:
		return "CPU time"
	}
	return ""
}

// StoppedTime is the name of that figure in FailedBeside.
const StoppedTime = "stopped time"

// FailedBeside says which figures beside the judged one cannot be relied on.
func (c SelfCheck) FailedBeside() (figures []string) {
	if c.Stopped.far(failedStopped, failedRatio) {
		figures = append(figures, StoppedTime)
	}
	if c.ThrottledPeriods.far(failedPeriods, failedRatio) {
		figures = append(figures, "throttled periods")
	}
	return figures
}
