package rows

import (
	"maps"
	"slices"

	"github.com/unthrottle/unthrottle/internal/cure/incode"
	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/objective"
	"github.com/unthrottle/unthrottle/internal/sim/forecast"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/next"
)

type Row struct {
	Remedy           string         `json:"remedy"`
	Parameters       map[string]any `json:"parameters"`
	HostLoad         *float64       `json:"host_load"`
	ThrottledPeriods *float64       `json:"throttled_periods"`
	StoppedSeconds   *float64       `json:"stopped_seconds"`
	P50              *float64       `json:"p50_ms"`
	P99              *float64       `json:"p99_ms"`
	Max              *float64       `json:"max_ms"`
	CPUsReserved     *float64       `json:"cpus_reserved"`
	Error            *rowError      `json:"error"`
	// Judged is the latency that decides, and its error; null: not known.
	Judged     *float64 `json:"judged_ms"`
	JudgedLow  *float64 `json:"judged_low_ms"`
	JudgedHigh *float64 `json:"judged_high_ms"`
	// JudgedP50 is the median of what is judged.
	JudgedP50 *float64 `json:"judged_p50_ms"`
	// Known is how often forecasts like this one came within a quarter, on services that no rule was made by; null: not known.
	Known *known `json:"judged_known"`
	// JudgedRange is JudgedLow and JudgedHigh; Requests and RequestsRange are the judged latency where it is the p99 of
	// requests. They are for one release more.
	JudgedRange   *bounds  `json:"judged_error_ms"`
	Requests      *float64 `json:"requests_p99_ms"`
	RequestsRange *bounds  `json:"requests_error_ms"`
	Modelled      bool     `json:"modelled"`

	// Command puts the row in force; null: `apply` cannot, or the row is of a fuller host.
	Command *string `json:"command"`
	// Refused says why the row could not be replayed, NotHere why this host cannot put it in force; null: it can, or that was
	// not looked at.
	Refused     *string             `json:"refused"`
	NotHere     *string             `json:"not_here"`
	Price       *string             `json:"price"`
	Meets       *bool               `json:"meets_objective"`
	Delay       *forecast.Quantiles `json:"delay"`
	Pools       []pool              `json:"pools"`
	Neighbours  *neighbours         `json:"neighbours"`
	BreaksAt    *float64            `json:"breaks_at_load"`
	CollapsesAt *float64            `json:"collapses_at_load"`
}

type known struct {
	Close int `json:"close"`
	Of    int `json:"of"`
}

type pool struct {
	Name     string             `json:"name"`
	Process  string             `json:"process"`
	Delay    forecast.Quantiles `json:"delay"`
	Response forecast.Quantiles `json:"response"`
}

type neighbours struct {
	LostSeconds float64  `json:"cpu_seconds_lost"`
	P99         *float64 `json:"p99_ms"`
	Before      *float64 `json:"p99_ms_before"`
}

type bounds struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

type rowError struct {
	Coverage         float64 `json:"coverage"`
	P50              *bounds `json:"p50_ms"`
	P99              *bounds `json:"p99_ms"`
	Max              *bounds `json:"max_ms"`
	ThrottledPeriods *bounds `json:"throttled_periods"`
	StoppedSeconds   *bounds `json:"stopped_seconds"`
	Tested           int     `json:"tested"`
}

// New is row i of a forecast of a container. c is what was chosen; nil: nothing was.
func New(f *forecast.Forecast, c *policy.Choice, i int, target string) Row {
	r := &f.Rows[i]
	row := Row{Remedy: r.Remedy.Name, Parameters: r.Remedy.Parameters(), Modelled: r.Remedy.Modelled(), Pools: []pool{}}
	if r.HostLoad > 0 {
		row.HostLoad = &r.HostLoad
	}
	if r.Refused != "" {
		row.Refused = &r.Refused
		return row
	}
	if c != nil && c.Refused[i] != "" {
		row.NotHere = new(c.Refused[i])
	}
	if words := remedy.WordsOf(r.Remedy); words != nil && r.HostLoad == 0 && row.NotHere == nil {
		row.Command = new(next.Line("sudo unthrottle apply", append([]string{text.Sanitize(target, 0)}, words...)...))
	}
	figures := &r.Figures
	row.ThrottledPeriods, row.StoppedSeconds = &figures.ThrottledPeriods, new(figures.Stopped.Seconds())
	row.P50, row.P99, row.Max = figures.Response.P50, figures.Response.P99, figures.Response.Max
	row.CPUsReserved, row.Price, row.Meets = r.Reserved, &r.Price, &r.Meets
	row.Delay = new(figures.Delay)
	for _, p := range figures.Pools {
		row.Pools = append(row.Pools, pool{
			text.Sanitize(p.Name, 0), text.Sanitize(p.Process, 0), p.Delay, p.Response,
		})
	}
	if n := r.Neighbours; n != nil {
		row.Neighbours = &neighbours{n.Lost.Seconds(), n.P99, n.Before}
	}
	if e := r.Error; e != nil {
		between := func(r *forecast.Range) *bounds { return (*bounds)(r) }
		row.Error = &rowError{
			forecast.Coverage, between(e.P50), between(e.P99), between(e.Max), between(e.ThrottledPeriods), between(e.Stopped), e.Tested,
		}
	}
	row.Judged, row.JudgedRange = r.Judged, (*bounds)(r.JudgedError())
	row.JudgedP50 = r.JudgedP50
	if k := r.Known; k != nil {
		row.Known = &known{k.Close, k.All}
	}
	if e := r.JudgedError(); e != nil {
		row.JudgedLow, row.JudgedHigh = &e.Low, &e.High
	}
	if j := f.Judged; j != nil && j.Of == forecast.OfRequests && j.Quantile == objective.P99 {
		row.Requests, row.RequestsRange = row.Judged, row.JudgedRange
	}
	row.BreaksAt, row.CollapsesAt = r.BreaksAt, r.CollapsesAt
	return row
}

// Judged is whose latency decides, as JSON shows it.
type Judged struct {
	// Of is "requests" or "pool".
	Of string `json:"of"`
	// Pool is null for requests, and for all pools together.
	Pool *string `json:"pool"`
	// Kind tells the judged requests from others; null: they are all, or a pool is judged.
	Kind     *string `json:"kind"`
	Quantile float64 `json:"quantile"`
	Samples  int     `json:"samples"`
}

// NewJudged shows whose latency a forecast judges; nil: nobody's.
func NewJudged(f *forecast.Forecast) *Judged {
	if f == nil || f.Judged == nil {
		return nil
	}
	j := &Judged{Of: f.Judged.Of, Quantile: f.Judged.Quantile, Samples: f.Judged.Samples}
	if pool := f.Judged.Pool; pool != "" {
		j.Pool = new(text.Sanitize(pool, 0))
	}
	if kind := f.Judged.Kind.String(); kind != "" {
		j.Kind = &kind
	}
	return j
}

// Recommended is what a forecast recommends, as JSON shows it.
type Recommended struct {
	// Answer is "remedy", "leave", "more-cpu", "setting" or "unknown".
	Answer string `json:"answer"`
	// Row is the index in rows; null: there is none.
	Row        *int           `json:"row"`
	Remedy     *string        `json:"remedy"`
	Parameters map[string]any `json:"parameters"`
	Why        string         `json:"why"`
	// WithinError: the whole interval is better than leaving it, or within the objective.
	WithinError bool    `json:"within_error"`
	Advice      *string `json:"advice"`
	// Write is what to write into the program, by language, where the row or the advice is a change of its code.
	Write []incode.Language `json:"write"`
	// NotHere are the rows that this host cannot do. HostUnseen says why it was not looked at what this host can do; null: it was.
	// Notes say what else limits the choice.
	NotHere    []NotHereRow `json:"not_here"`
	HostUnseen *string      `json:"host_unseen"`
	Notes      []string     `json:"notes"`
	// Judged is beside it in the documents.
	Judged *Judged `json:"-"`
}

// NotHereRow is a row that this host cannot put in force, and why.
type NotHereRow struct {
	Row        int            `json:"row"`
	Remedy     string         `json:"remedy"`
	Parameters map[string]any `json:"parameters"`
	Why        string         `json:"why"`
}

// NewRecommended shows a choice.
func NewRecommended(f *forecast.Forecast, c *policy.Choice) *Recommended {
	r := &Recommended{Answer: string(c.Answer), Why: c.Why, WithinError: c.Certain, Judged: NewJudged(f),
		Write: append([]incode.Language{}, c.Write...)}
	if c.Row >= 0 {
		found := f.Rows[c.Row].Remedy
		r.Row, r.Remedy, r.Parameters = &c.Row, &found.Name, found.Parameters()
	}
	if c.Advice != "" {
		r.Advice = &c.Advice
	}
	r.NotHere, r.Notes = []NotHereRow{}, append([]string{}, c.Notes...)
	for _, i := range slices.Sorted(maps.Keys(c.Refused)) {
		found := f.Rows[i].Remedy
		r.NotHere = append(r.NotHere, NotHereRow{i, found.Name, found.Parameters(), c.Refused[i]})
	}
	if c.Unseen != "" {
		r.HostUnseen = &c.Unseen
	}
	return r
}
