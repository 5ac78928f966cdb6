package report

import (
	"encoding/json"
	"io"
	"time"
	"unicode/utf8"

	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/text"
)

// explainedItem is `explain --json`: the contract. Keys are only ever added. null is "not measured", except for
// limit_cpus (no limit; not_measured tells where it is not known), periods and what is said by them (no quota), and what the pool table does not know.
type explainedItem struct {
	Cause            *diagnose.Cause      `json:"cause"`
	Causes           []explainedCause     `json:"causes"`
	LimitCPUs        *float64             `json:"limit_cpus"`
	Periods          *uint64              `json:"periods"`
	ThrottledPeriods *uint64              `json:"throttled_periods"`
	StoppedSeconds   *float64             `json:"stopped_seconds"`
	Width            []explainedBar       `json:"width"`
	Wanted           []explainedBar       `json:"wanted"`
	Pools            []explainedPool      `json:"pools"`
	Waiting          explainedWaits       `json:"waiting"`
	Neighbours       []explainedNeighbour `json:"neighbours"`
	LostEvents       *uint64              `json:"lost_events"`
	Checks           []explainedCheck     `json:"checks"`

	Target          string          `json:"target"`
	Start           *time.Time      `json:"start"`
	WindowSeconds   *float64        `json:"window_seconds"`
	EndedEarly      *string         `json:"ended_early"` // how the target ended; null: it did not
	Verdict         string          `json:"verdict"`
	StoppedSpells   *int            `json:"stopped_spells"`
	MeanWidth       *float64        `json:"mean_width"`
	SampledWidth    []explainedBar  `json:"width_sampled_10ms"`
	Strip           []explainedRow  `json:"strip"`
	CostOfWidth     *explainedWidth `json:"cost_of_width"`
	RunnablePerCore *float64        `json:"runnable_per_reserved_core"`
	NotMeasured     []string        `json:"not_measured"`
}

type explainedCause struct {
	Cause          diagnose.Cause `json:"cause"`
	StoppedSeconds *float64       `json:"stopped_seconds"`
	Evidence       string         `json:"evidence"`
}

type explainedBar struct {
	CPUs    int     `json:"cpus"`
	Seconds float64 `json:"seconds"`
}

type explainedPool struct {
	Name                  string         `json:"name"`
	Threads               int            `json:"threads"`
	CPUSeconds            float64        `json:"cpu_seconds"`
	CPUSecondsInThrottled *float64       `json:"cpu_seconds_in_throttled_periods"`
	Widest                int            `json:"widest"`
	Library               *string        `json:"library"`
	Setting               *string        `json:"setting"`
	Advice                *string        `json:"advice"`
	DelayP99              *float64       `json:"delay_p99_ms"`
	DelayP50              *float64       `json:"delay_p50_ms"`
	DelayMax              *float64       `json:"delay_max_ms"`
	Wakeups               *int           `json:"wakeups"`
	ResponseP50           *float64       `json:"response_p50_ms"`
	ResponseP99           *float64       `json:"response_p99_ms"`
	Process               *string        `json:"process"`
	OnIOThread            *bool          `json:"application_work_on_io_threads"`
	Waiting               explainedWaits `json:"waiting"`
}

type explainedNeighbour struct {
	Name          string  `json:"name"`
	WaitedSeconds float64 `json:"waited_seconds"` // thread seconds of the container
	CPUSeconds    float64 `json:"cpu_seconds"`
	Throttled     *bool   `json:"throttled"`
	Toggling      *bool   `json:"toggling"`
}

// explainedWaits are thread seconds by reason.
type explainedWaits map[diagnose.Reason]*float64

// explainedCheck: error_ratio and ok null are "not judged", and note says why.
type explainedCheck struct {
	Name       string   `json:"name"`
	ErrorRatio *float64 `json:"error_ratio"`
	OK         *bool    `json:"ok"`
	Note       *string  `json:"note"`
}

type explainedRow struct {
	StartSeconds  float64         `json:"start_seconds"`
	LengthSeconds float64         `json:"length_seconds"`
	Throttled     bool            `json:"throttled"`
	Cells         []explainedCell `json:"cells"`
}

type explainedCell struct {
	MeanWidth float64  `json:"mean_width"`
	MostWidth int      `json:"most_width"`
	Stopped   *float64 `json:"stopped"`
	Wanted    *float64 `json:"wanted"`
}

type explainedWidth struct {
	NarrowSecondsPerRun float64 `json:"narrow_seconds_per_run"`
	WideSecondsPerRun   float64 `json:"wide_seconds_per_run"`
	NarrowRuns          int     `json:"narrow_runs"`
	WideRuns            int     `json:"wide_runs"`
}

// ExplainJSON writes an explanation as one JSON object. Names in it are as text.Sanitize made them, bytes that are
// no UTF-8 as \xNN; escaping them again would double the backslashes.
func ExplainJSON(w io.Writer, e diagnose.Explanation) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(explainedOf(e))
}

func explainedOf(e diagnose.Explanation) explainedItem {
	item := explainedItem{
		Cause: known(e.Cause), LimitCPUs: e.LimitCPUs, Periods: e.Periods,
		ThrottledPeriods: e.ThrottledPeriods, StoppedSeconds: lsSeconds(e.Stopped),
		Width: explainedBars(e.Width), Wanted: explainedBars(e.Wanted), SampledWidth: explainedBars(e.SampledWidth),
		Waiting: explainedWaiting(e.Waiting), LostEvents: e.LostEvents, MeanWidth: e.MeanWidth,
		Target: explainedText(e.Target), Verdict: explainedText(e.Verdict),
		EndedEarly: known(e.EndedEarly), StoppedSpells: e.StoppedIntervals, Strip: explainedRows(e), RunnablePerCore: e.RunnablePerCore, NotMeasured: []string{},
	}
	if e.Window > 0 {
		item.WindowSeconds = new(e.Window.Seconds())
	}
	if !e.Start.IsZero() {
		item.Start = new(e.Start.UTC())
	}
	item.Causes = listed(e.Causes, func(c diagnose.RankedCause) explainedCause {
		return explainedCause{c.Cause, lsSeconds(c.Stopped), explainedText(c.Evidence)}
	})
	item.Pools = listed(e.Pools, explainedPoolOf)
	item.Neighbours = listed(e.Neighbours, func(n diagnose.NeighbourUse) explainedNeighbour {
		return explainedNeighbour{explainedText(n.Name), n.Waited.Seconds(), n.CPU.Seconds(), n.Throttled, n.Toggling}
	})
	item.Checks = listed(e.Checks, explainedCheckOf)
	if c := e.CostOfWidth; c != nil {
		item.CostOfWidth = &explainedWidth{c.Narrow.Seconds(), c.Wide.Seconds(), c.NarrowRuns, c.WideRuns}
	}
	for _, n := range e.NotMeasured {
		item.NotMeasured = append(item.NotMeasured, explainedText(n))
	}
	return item
}

// listed keeps nil, which is "not measured", apart from an empty list.
func listed[T, U any](all []T, of func(T) U) []U {
	if all == nil {
		return nil
	}
	out := make([]U, 0, len(all))
	for _, one := range all {
		out = append(out, of(one))
	}
	return out
}

// known is nil for an empty text.
func known[T ~string](s T) *T {
	if s == "" {
		return nil
	}
	return new(T(explainedText(string(s))))
}

func explainedCheckOf(c diagnose.Check) explainedCheck {
	check := explainedCheck{Name: c.Name, ErrorRatio: c.ErrorRatio, Note: known(c.Note)}
	if c.ErrorRatio != nil {
		check.OK = &c.OK
	}
	return check
}

func explainedPoolOf(p diagnose.PoolUse) explainedPool {
	millis := func(d time.Duration) *float64 { return new(float64(d) / 1e6) }
	item := explainedPool{
		Name: explainedText(p.Name), Threads: p.Threads, CPUSeconds: p.CPU.Seconds(),
		CPUSecondsInThrottled: lsSeconds(p.CPUThrottled), Widest: p.Widest,
		Library: known(p.Library), Setting: known(p.Setting), Advice: known(p.Advice),
		Process: known(p.Process), Waiting: explainedWaiting(p.Waiting),
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

// explainedText is UTF-8 in any case, also of text that nobody made safe before.
func explainedText(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return text.EscapePath(s)
}

func explainedBars(bars []diagnose.Bar) []explainedBar {
	return listed(bars, func(b diagnose.Bar) explainedBar { return explainedBar{b.CPUs, b.Time.Seconds()} })
}

// explainedWaiting has all reasons, those that were not measured as null, so that a reader need not know which to expect.
func explainedWaiting(waiting map[diagnose.Reason]time.Duration) explainedWaits {
	if waiting == nil {
		return nil
	}
	all := explainedWaits{}
	for _, r := range explainReasons {
		all[r.Reason] = nil
	}
	for r, d := range waiting {
		all[r] = new(d.Seconds())
	}
	return all
}

func explainedRows(e diagnose.Explanation) []explainedRow {
	return listed(e.Timeline, func(r diagnose.Row) explainedRow {
		row := explainedRow{r.Start.Seconds(), r.Length.Seconds(), r.Throttled, []explainedCell{}}
		for _, c := range r.Cells {
			cell := explainedCell{MeanWidth: c.MeanWidth, MostWidth: c.MostWidth}
			if e.Stopped != nil {
				cell.Stopped = new(c.Stopped)
			}
			if e.Wanted != nil {
				cell.Wanted = new(c.Wanted)
			}
			row.Cells = append(row.Cells, cell)
		}
		return row
	})
}
