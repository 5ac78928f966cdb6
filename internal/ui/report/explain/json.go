package explain

import (
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/explain/requests"
	"github.com/unthrottle/unthrottle/internal/explain/threadpool"
	"github.com/unthrottle/unthrottle/internal/see/recording"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/figure"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/jsonout"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/rows"
)

// item is `explain --json`: the contract. Keys are only ever added. null is "not measured", except for
// limit_cpus (no limit; not_measured tells where it is not known), periods and throttled_periods (no quota), and what the
// pool table does not know.
type item struct {
	Cause     *diagnose.Cause `json:"cause"`
	Causes    []jsonCause     `json:"causes"`
	LimitCPUs *float64        `json:"limit_cpus"`
	// LimitChanges are limits that changed while it was looked at; null: none did. cause is null then.
	LimitChanges     []jsonLimitChange `json:"limit_changes"`
	Periods          *uint64           `json:"periods"`
	ThrottledPeriods *uint64           `json:"throttled_periods"`
	StoppedSeconds   *float64          `json:"stopped_seconds"`
	Width            []jsonBar         `json:"width"`
	Wanted           []jsonBar         `json:"wanted"`
	Pools            []jsonPool        `json:"pools"`
	// Budgets are what processes say that they have in force to stay within the limit; null: none says it.
	Budgets    []jsonBudget    `json:"cpu_budgets"`
	Requests   *jsonRequests   `json:"requests"`
	Waiting    jsonWaits       `json:"waiting"`
	Neighbours []jsonNeighbour `json:"neighbours"`
	LostEvents *uint64         `json:"lost_events"`
	Checks     []jsonCheck     `json:"checks"`

	// Seen says by what: "events" of the scheduler, or "counters", those of threads and cgroups.
	Seen string `json:"seen"`
	// OwnRemedies are what somebody without rights on the host can do; null: only look tells them.
	OwnRemedies []string `json:"own_remedies"`

	Target        string     `json:"target"`
	Start         *time.Time `json:"start"`
	WindowSeconds *float64   `json:"window_seconds"`
	EndedEarly    *string    `json:"ended_early"` // how the target ended; null: it did not
	Verdict       string     `json:"verdict"`
	StoppedSpells *int       `json:"stopped_intervals"`
	MeanWidth     *float64   `json:"mean_width"`
	SampledWidth  []jsonBar  `json:"width_sampled_10ms"`
	Strip         []jsonRow  `json:"timeline"`
	// Overview is the whole recording in stretches of equal length.
	Overview        []jsonStretch `json:"overview"`
	CostOfWidth     *jsonWidth    `json:"cost_of_width"`
	RunnablePerCore *float64      `json:"runnable_per_reserved_core"`
	// Startup says that it was stopped while it started; null: it was not, or it cannot be told.
	Startup *jsonStartup `json:"startup"`
	// ClosedLoop says that clients wait for answers before they ask again; null: they do not, or it cannot be told.
	ClosedLoop  *jsonClosedLoop `json:"closed_loop"`
	NotMeasured []string        `json:"not_measured"`
	// Recommended is what forecast and fix recommend too; null: nothing could be forecast.
	Recommended *rows.Recommended `json:"recommended"`
	// Judged is whose latency decides that; null: nothing could be forecast, or nothing waits.
	Judged *rows.Judged `json:"judged"`
}

// Document is `explain --json`.
type Document = item

// jsonLimitChange is a cgroup's limit before and after a change.
type jsonLimitChange struct {
	Path        string    `json:"path"`
	Before      jsonLimit `json:"before"`
	After       jsonLimit `json:"after"`
	SeenSeconds *float64  `json:"seen_seconds"` // since start; null: somewhere in the window
}

type jsonLimit struct {
	QuotaSeconds  *float64 `json:"quota_seconds"` // null: no quota
	PeriodSeconds float64  `json:"period_seconds"`
	BurstSeconds  float64  `json:"burst_seconds"`
}

func limitOf(l recording.Level) jsonLimit {
	limit := jsonLimit{PeriodSeconds: time.Duration(l.PeriodNS).Seconds(), BurstSeconds: time.Duration(l.BurstNS).Seconds()}
	if l.QuotaNS != nil {
		limit.QuotaSeconds = new(time.Duration(*l.QuotaNS).Seconds())
	}
	return limit
}

type jsonStartup struct {
	AgeSeconds     float64 `json:"age_seconds"`
	StoppedSeconds float64 `json:"stopped_seconds"`
	AfterSeconds   float64 `json:"after_seconds"`
	Over           bool    `json:"over"`
}

type jsonClosedLoop struct {
	Pool       string  `json:"pool"`
	GapSeconds float64 `json:"gap_seconds"` // from an answer to the next request
}

type jsonCause struct {
	Cause          diagnose.Cause `json:"cause"`
	StoppedSeconds *float64       `json:"stopped_seconds"` // wall time
	WallSeconds    *float64       `json:"wall_seconds"`    // stopped_seconds, or the time in which at least one thread waited
	WaitedSeconds  *float64       `json:"waited_seconds"`  // thread time of that
	Evidence       string         `json:"evidence"`
	// Guilty has the pools, cgroup or program that spent the quota or held the CPUs; null where none can be named.
	Guilty []string `json:"guilty"`
	// Suffers is the pool that is stopped for them; null: all of the container, or the guilty itself.
	Suffers *string `json:"suffers"`
}

type jsonBar struct {
	CPUs    int     `json:"cpus"`
	Seconds float64 `json:"seconds"`
}

type jsonPool struct {
	Name                  string    `json:"name"`
	Threads               int       `json:"threads"`
	CPUSeconds            float64   `json:"cpu_seconds"`
	CPUSecondsInThrottled *float64  `json:"cpu_seconds_in_throttled_periods"`
	Widest                int       `json:"widest"`
	Library               *string   `json:"library"`
	Setting               *string   `json:"setting"`
	Advice                *string   `json:"advice"`
	DelayP99              *float64  `json:"delay_p99_ms"`
	DelayP50              *float64  `json:"delay_p50_ms"`
	DelayMax              *float64  `json:"delay_max_ms"`
	Wakeups               *int      `json:"wakeups"`
	ResponseP50           *float64  `json:"response_p50_ms"`
	ResponseP99           *float64  `json:"response_p99_ms"`
	Process               *string   `json:"process"`
	OnIOThread            *bool     `json:"application_work_on_io_threads"`
	Class                 *string   `json:"class"` // of its threads' last tasks, as their process says
	Waiting               jsonWaits `json:"waiting"`
}

// jsonBudget is what a process says that its library has in force. limit_cpus null: it knows of no limit. A permit of 0 is as
// many tasks as come.
type jsonBudget struct {
	PID     uint32 `json:"pid"`
	Process string `json:"process"`
	threadpool.Budget
}

// jsonRequests are requests of clients outside. seen_by null: the recording has no reads and writes of sockets. The
// times are null without any request. of_threads says why a response is that of a thread; null: there are enough
// requests.
type jsonRequests struct {
	SeenBy     *string       `json:"seen_by"`
	OfThreads  *string       `json:"of_threads"`
	Count      int           `json:"count"`
	Unanswered int           `json:"unanswered"`
	Merged     int           `json:"merged"`
	P50        *float64      `json:"p50_ms"`
	P90        *float64      `json:"p90_ms"`
	P99        *float64      `json:"p99_ms"`
	Max        *float64      `json:"max_ms"`
	Slowest    []jsonRequest `json:"slowest"`
}

type jsonRequest struct {
	BeginSeconds float64       `json:"begin_seconds"`
	TookMS       float64       `json:"took_ms"`
	Segments     []jsonSegment `json:"segments"`
}

// jsonSegment: thread and pool are null where they were not seen, quota and own_quota where none stopped it.
type jsonSegment struct {
	BeginMS  float64 `json:"begin_ms"`
	LengthMS float64 `json:"length_ms"`
	Kind     string  `json:"kind"`
	Thread   *uint32 `json:"thread"`
	Pool     *string `json:"pool"`
	Quota    *string `json:"quota"`
	OwnQuota *bool   `json:"own_quota"`
}

type jsonNeighbour struct {
	Name          string  `json:"name"`
	WaitedSeconds float64 `json:"waited_seconds"` // thread seconds of the container
	CPUSeconds    float64 `json:"cpu_seconds"`
	Throttled     *bool   `json:"throttled"`
	Toggling      *bool   `json:"toggling"`
	Client        bool    `json:"client"`
	Recorder      bool    `json:"recorder"` // it is unthrottle, which made the recording
}

// jsonWaits are thread seconds by reason.
type jsonWaits map[string]*float64

// jsonCheck: error_ratio and ok null are "not judged", and note says why.
type jsonCheck struct {
	Name       string   `json:"name"`
	ErrorRatio *float64 `json:"error_ratio"`
	OK         *bool    `json:"ok"`
	Note       *string  `json:"note"`
}

type jsonRow struct {
	StartSeconds  float64    `json:"start_seconds"`
	LengthSeconds float64    `json:"length_seconds"`
	Throttled     bool       `json:"throttled"`
	Cells         []jsonCell `json:"cells"`
}

type jsonCell struct {
	MeanWidth float64  `json:"mean_width"`
	MostWidth int      `json:"most_width"`
	Stopped   *float64 `json:"stopped"`
	Wanted    *float64 `json:"wanted"`
}

type jsonStretch struct {
	StartSeconds  float64 `json:"start_seconds"`
	LengthSeconds float64 `json:"length_seconds"`
	jsonCell
}

type jsonWidth struct {
	NarrowSecondsPerRun float64 `json:"narrow_seconds_per_run"`
	WideSecondsPerRun   float64 `json:"wide_seconds_per_run"`
	NarrowRuns          int     `json:"narrow_runs"`
	WideRuns            int     `json:"wide_runs"`
}

// JSON writes an explanation for programs. r is what is recommended; nil: nothing could be forecast.
func JSON(w io.Writer, e diagnose.Explanation, r *rows.Recommended) error {
	shown := itemOf(e)
	shown.Recommended = r
	if r != nil {
		shown.Judged = r.Judged
	}
	return jsonout.Write(w, "explain", shown)
}

func itemOf(e diagnose.Explanation) item {
	item := item{
		Cause: known(e.Cause), LimitCPUs: e.LimitCPUs, Periods: e.Periods,
		ThrottledPeriods: e.ThrottledPeriods, StoppedSeconds: figure.Seconds(e.Stopped),
		Width: bars(e.Width), Wanted: bars(e.Wanted), SampledWidth: bars(e.SampledWidth),
		Waiting: waitsOf(e.Waiting), LostEvents: e.LostEvents, MeanWidth: e.MeanWidth,
		Target: validText(e.Target), Verdict: validText(e.Verdict),
		EndedEarly: known(e.EndedEarly), StoppedSpells: e.StoppedIntervals, Strip: stripOf(e),
		RunnablePerCore: e.RunnablePerCore, NotMeasured: []string{}, Seen: "events",
	}
	if e.LostEvents == nil {
		item.Seen = "counters"
	}
	item.OwnRemedies = listed(e.OwnRemedies, validText)
	if s := e.Startup; s != nil {
		item.Startup = &jsonStartup{s.Age.Seconds(), s.Stopped.Seconds(), s.After.Seconds(), s.Over}
	}
	if c := e.ClosedLoop; c != nil {
		item.ClosedLoop = &jsonClosedLoop{validText(c.Pool), c.Gap.Seconds()}
	}
	if e.Window > 0 {
		item.WindowSeconds = new(e.Window.Seconds())
	}
	if !e.Start.IsZero() {
		item.Start = new(e.Start.UTC())
	}
	item.Causes = listed(e.Causes, func(c diagnose.RankedCause) jsonCause {
		return jsonCause{
			c.Cause, figure.Seconds(c.Stopped), figure.Seconds(c.Wall), figure.Seconds(c.Waited), validText(c.Evidence),
			listed(c.Guilty, validText), known(c.Suffers),
		}
	})
	item.LimitChanges = listed(e.LimitChanges, func(c recording.LimitChange) jsonLimitChange {
		return jsonLimitChange{validText(c.Before.Path), limitOf(c.Before), limitOf(c.After), figure.Seconds(c.Seen)}
	})
	item.Pools = listed(e.Pools, poolOf)
	item.Budgets = listed(e.Budgets, func(b diagnose.Budget) jsonBudget {
		return jsonBudget{b.TGID, validText(b.Process), b.Budget}
	})
	item.Requests = requestsOf(e.Requests)
	item.Neighbours = listed(e.Neighbours, func(n diagnose.NeighbourUse) jsonNeighbour {
		return jsonNeighbour{validText(n.Name), n.Waited.Seconds(), n.CPU.Seconds(), n.Throttled, n.Toggling, n.Client, n.Recorder}
	})
	item.Overview = listed(e.Overview, func(s diagnose.Stretch) jsonStretch {
		return jsonStretch{s.Start.Seconds(), s.Length.Seconds(), cellOf(&e, s.Cell)}
	})
	item.Checks = listed(e.Checks, checkOf)
	if c := e.CostOfWidth; c != nil {
		item.CostOfWidth = &jsonWidth{c.Narrow.Seconds(), c.Wide.Seconds(), c.NarrowRuns, c.WideRuns}
	}
	for _, n := range e.NotMeasured {
		item.NotMeasured = append(item.NotMeasured, validText(n))
	}
	return item
}

// listed keeps nil, which is "not measured", apart from an empty list.
func listed[T, U any](all []T, pick func(T) U) []U {
	if all == nil {
		return nil
	}
	out := make([]U, 0, len(all))
	for _, one := range all {
		out = append(out, pick(one))
	}
	return out
}

// known is nil for an empty text.
func known[T ~string](s T) *T {
	if s == "" {
		return nil
	}
	return new(T(validText(string(s))))
}

func checkOf(c diagnose.Check) jsonCheck {
	check := jsonCheck{Name: c.Name, ErrorRatio: c.ErrorRatio, Note: known(c.Note)}
	if c.ErrorRatio != nil {
		check.OK = &c.OK
	}
	return check
}

func millis(d time.Duration) *float64 { return new(float64(d) / 1e6) }

func requestsOf(r *requests.Requests) *jsonRequests {
	if r == nil {
		return nil
	}
	all := &jsonRequests{OfThreads: known(ofThreads(r)), Count: r.Count, Unanswered: r.Unanswered, Merged: r.Merged,
		Slowest: []jsonRequest{}}
	if r.Seen {
		all.SeenBy = new("sockets")
	}
	if r.Count > 0 {
		all.P50, all.P90, all.P99, all.Max = millis(r.P50), millis(r.P90), millis(r.P99), millis(r.Max)
	}
	for _, q := range r.Slowest {
		request := jsonRequest{q.Begin.Seconds(), *millis(q.Took), []jsonSegment{}}
		for _, s := range q.Segments {
			segment := jsonSegment{BeginMS: *millis(s.Begin), LengthMS: *millis(s.Length), Kind: string(s.Kind),
				Pool: known(s.Pool), Quota: known(s.Quota)}
			if s.Thread != 0 {
				segment.Thread = &s.Thread
			}
			if s.Kind == requests.Stopped {
				segment.OwnQuota = &s.Own
			}
			request.Segments = append(request.Segments, segment)
		}
		all.Slowest = append(all.Slowest, request)
	}
	return all
}

func poolOf(p diagnose.PoolUse) jsonPool {
	item := jsonPool{
		Name: validText(p.Name), Threads: p.Threads, CPUSeconds: p.CPU.Seconds(),
		CPUSecondsInThrottled: figure.Seconds(p.CPUThrottled), Widest: p.Widest,
		Library: known(p.Library), Setting: known(p.Setting), Advice: known(p.Advice),
		Process: known(p.Process), Class: known(p.Class), Waiting: waitsOf(p.Waiting),
	}
	if p.Library != "" {
		item.OnIOThread = &p.OnIOThread
	}
	if d := p.Delay; d != nil {
		item.Wakeups = new(d.Count)
		item.DelayP50, item.DelayP99, item.DelayMax = millis(d.P50), millis(d.P99), millis(d.Max)
	}
	if r := p.Response; r != nil {
		item.ResponseP50, item.ResponseP99 = millis(r.P50), millis(r.P99)
	}
	return item
}

// validText is UTF-8 in any case, also where no other package made the text safe.
func validText(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return text.EscapePath(s)
}

func bars(bars []diagnose.Bar) []jsonBar {
	return listed(bars, func(b diagnose.Bar) jsonBar { return jsonBar{b.CPUs, b.Time.Seconds()} })
}

// reasonKey is the key of a reason: "own_quota".
func reasonKey(r diagnose.Reason) string { return strings.ReplaceAll(string(r), "-", "_") }

// waitsOf has all reasons, those that were not measured as null, so that a reader need not know which to expect.
func waitsOf(waiting map[diagnose.Reason]time.Duration) jsonWaits {
	if waiting == nil {
		return nil
	}
	waits := jsonWaits{}
	for _, r := range reasons {
		waits[reasonKey(r.Reason)] = nil
	}
	for r, d := range waiting {
		waits[reasonKey(r)] = new(d.Seconds())
	}
	return waits
}

func stripOf(e diagnose.Explanation) []jsonRow {
	return listed(e.Timeline, func(r diagnose.Row) jsonRow {
		row := jsonRow{r.Start.Seconds(), r.Length.Seconds(), r.Throttled, []jsonCell{}}
		for _, c := range r.Cells {
			row.Cells = append(row.Cells, cellOf(&e, c))
		}
		return row
	})
}

func cellOf(e *diagnose.Explanation, c diagnose.Cell) jsonCell {
	cell := jsonCell{MeanWidth: c.MeanWidth, MostWidth: c.MostWidth}
	if e.Stopped != nil {
		cell.Stopped = new(c.Stopped)
	}
	if e.Wanted != nil {
		cell.Wanted = new(c.Wanted)
	}
	return cell
}
