package forecast

import (
	"io"
	"time"

	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/sim/forecast"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/jsonout"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/rows"
)

// item is `forecast --json`: the contract. Keys are only ever added. null is "not measured", "none" or "not
// asked for", as docs/reference/forecast.md says of each.
type item struct {
	Target      string            `json:"target"`
	Rows        []rows.Row        `json:"rows"`
	Recommended *rows.Recommended `json:"recommended"`
	// Judged is whose latency decides; null: no requests were seen, and no thread pool has enough responses.
	Judged *rows.Judged `json:"judged"`
	// Requests are those of the rows' requests_p99_ms; null: no row has it. It is for one release more.
	Requests *jsonRequests  `json:"requests"`
	Cheapest *string        `json:"cheapest"`
	Of       map[string]any `json:"cheapest_parameters"`
	Row      *int           `json:"cheapest_row"`
	Sure     *bool          `json:"cheapest_within_error"`

	Kernel         string         `json:"kernel"`
	WindowSeconds  float64        `json:"window_seconds"`
	LimitCPUs      float64        `json:"limit_cpus"`
	HostCPUs       int            `json:"host_cpus"`
	Objective      *jsonObjective `json:"objective"`
	SmallestLimit  *float64       `json:"smallest_limit_cpus"`
	SmallestRange  *jsonRange     `json:"smallest_limit_range_cpus"`
	SmallestNarrow *float64       `json:"smallest_narrow_cpus"`
	// Priced has the least CPUs of each remedy; null: not asked for, or the self-check failed.
	Priced     []jsonPriced `json:"priced"`
	RecordedAt *time.Time   `json:"recorded_at"`
	SelfCheck  jsonCheck    `json:"self_check"`
	Notes      []string     `json:"notes"`
}

// Document is `forecast --json`.
type Document = item

// jsonRange is a range of figures.
type jsonRange struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

type jsonPriced struct {
	Remedy     string         `json:"remedy"`
	Parameters map[string]any `json:"parameters"`
	CPUs       *float64       `json:"cpus"`
	Low        *float64       `json:"cpus_low"`
	High       *float64       `json:"cpus_high"`
	JudgedMS   *float64       `json:"judged_ms"`
	BoundMS    *float64       `json:"bound_ms"`
	Why        *string        `json:"why_none"`
}

func newPriced(of forecast.Priced) jsonPriced {
	p := jsonPriced{Remedy: of.Remedy.Name, Parameters: of.Remedy.Parameters(), CPUs: of.CPUs, Low: of.Low, High: of.High,
		JudgedMS: of.Judged, BoundMS: of.Bound}
	if of.Why != "" {
		p.Why = new(text.Sanitize(of.Why, 0))
	}
	return p
}

type jsonRequests struct {
	Pool  *string `json:"pool"` // of the threads that answer; null: any
	Count int     `json:"count"`
}

type jsonObjective struct {
	Quantile float64 `json:"quantile"`
	BoundMS  float64 `json:"bound_ms"`
	Pool     *string `json:"pool"`
}

type jsonFigure struct {
	Recorded *float64 `json:"recorded"`
	Replayed *float64 `json:"replayed"`
}

type jsonCheck struct {
	ThrottledPeriods jsonFigure `json:"throttled_periods"`
	StoppedSeconds   jsonFigure `json:"stopped_seconds"`
	P50              jsonFigure `json:"p50_ms"`
	P99              jsonFigure `json:"p99_ms"`
	Max              jsonFigure `json:"max_ms"`
	CPUSeconds       jsonFigure `json:"cpu_seconds"`
	Judged           jsonFigure `json:"judged_ms"`
}

// JSON writes a forecast for programs.
func JSON(w io.Writer, f *forecast.Forecast, c *policy.Choice) error {
	return jsonout.Write(w, "forecast", newItem(f, c))
}

func newItem(f *forecast.Forecast, choice *policy.Choice) item {
	c := f.Check
	item := item{
		Target: text.Sanitize(f.Target, 0), Kernel: text.Sanitize(f.Kernel, 0), WindowSeconds: f.Window.Seconds(), LimitCPUs: f.Limit,
		HostCPUs: f.CPUs, Rows: []rows.Row{}, SmallestLimit: f.SmallestLimit, SmallestRange: (*jsonRange)(f.SmallestRange),
		SmallestNarrow: f.SmallestNarrow,
		Notes:          append([]string{}, f.Notes...),
		SelfCheck: jsonCheck{
			jsonFigure(c.ThrottledPeriods), jsonFigure(c.Stopped), jsonFigure(c.P50), jsonFigure(c.P99), jsonFigure(c.Max),
			jsonFigure(c.CPU), jsonFigure(c.Judged),
		},
	}
	if o := f.Objective; o != nil {
		item.Objective = &jsonObjective{Quantile: o.Quantile, BoundMS: float64(o.Bound) / 1e6}
		if o.Pool != "" {
			item.Objective.Pool = new(text.Sanitize(o.Pool, 0))
		}
	}
	item.Recommended = rows.NewRecommended(f, choice)
	item.Judged = rows.NewJudged(f)
	if j := f.Judged; j != nil && j.Of == forecast.OfRequests {
		item.Requests = &jsonRequests{Count: j.Samples}
		if j.Kind.Pool != "" {
			item.Requests.Pool = new(text.Sanitize(j.Kind.Pool, 0))
		}
	}
	if f.Cheapest >= 0 {
		r := f.Rows[f.Cheapest].Remedy
		item.Cheapest, item.Of, item.Row = &r.Name, r.Parameters(), &f.Cheapest
		if f.Objective != nil {
			item.Sure = &f.Sure
		}
	}
	if !f.Recorded.IsZero() {
		item.RecordedAt = &f.Recorded
	}
	for _, p := range f.Priced {
		item.Priced = append(item.Priced, newPriced(p))
	}
	for i := range f.Rows {
		item.Rows = append(item.Rows, rows.New(f, choice, i, f.Target))
	}
	return item
}

// All is `forecast --all`: every container with a limit.
type All struct {
	All []*forecast.Forecast
	// Choices are what is recommended for each of them.
	Choices []policy.Choice
	// NotForecast are the containers that could not be, and why.
	NotForecast []string
}

// Back is how many CPUs of limit the host gets back if every container had the smallest limit that keeps what it has, and
// for how many of them that is known.
func (f *All) Back() (cpus float64, of int) {
	for _, one := range f.All {
		if one.SmallestLimit != nil {
			cpus += one.Limit - *one.SmallestLimit
			of++
		}
	}
	return cpus, of
}

// AllDocument is `forecast --all --json`.
type AllDocument struct {
	Containers []Document `json:"containers"`
	// CPUsBack is null if no smallest limit is known.
	CPUsBack    *float64 `json:"cpus_back"`
	NotForecast []string `json:"not_forecast"`
}

// AllJSON writes them for programs.
func AllJSON(w io.Writer, f *All) error {
	out := AllDocument{Containers: []Document{}, NotForecast: append([]string{}, f.NotForecast...)}
	for i, one := range f.All {
		out.Containers = append(out.Containers, newItem(one, &f.Choices[i]))
	}
	if cpus, n := f.Back(); n > 0 {
		out.CPUsBack = &cpus
	}
	return jsonout.Write(w, "forecast_all", out)
}
