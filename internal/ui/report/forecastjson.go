package report

import (
	"encoding/json"
	"io"

	"github.com/unthrottle/unthrottle/internal/sim/forecast"
	"github.com/unthrottle/unthrottle/internal/text"
)

// forecastItem is `forecast --json`: the contract. Keys are only ever added. null is "not measured", "none" or "not
// asked for", as docs/reference/forecast.md says of each.
type forecastItem struct {
	Target   string         `json:"target"`
	Rows     []forecastRow  `json:"rows"`
	Cheapest *string        `json:"cheapest"`
	Of       map[string]any `json:"cheapest_parameters"`
	Row      *int           `json:"cheapest_row"`
	Sure     *bool          `json:"cheapest_within_error"`

	Kernel         string             `json:"kernel"`
	WindowSeconds  float64            `json:"window_seconds"`
	LimitCPUs      float64            `json:"limit_cpus"`
	HostCPUs       int                `json:"host_cpus"`
	Objective      *forecastObjective `json:"objective"`
	SmallestLimit  *float64           `json:"smallest_limit_cpus"`
	SmallestNarrow *float64           `json:"smallest_narrow_cpus"`
	SelfCheck      forecastCheck      `json:"self_check"`
	Notes          []string           `json:"notes"`
}

type forecastObjective struct {
	Quantile float64 `json:"quantile"`
	BoundMS  float64 `json:"bound_ms"`
	Pool     *string `json:"pool"`
}

type forecastRow struct {
	Remedy           string         `json:"remedy"`
	Parameters       map[string]any `json:"parameters"`
	HostLoad         *float64       `json:"host_load"`
	ThrottledPeriods *float64       `json:"throttled_periods"`
	StoppedSeconds   *float64       `json:"stopped_seconds"`
	P50              *float64       `json:"p50_ms"`
	P99              *float64       `json:"p99_ms"`
	Max              *float64       `json:"max_ms"`
	CPUsReserved     *float64       `json:"cpus_reserved"`
	Error            *forecastError `json:"error"`
	Modelled         bool           `json:"modelled"`

	Refused     *string             `json:"refused"`
	Price       *string             `json:"price"`
	Meets       *bool               `json:"meets_objective"`
	Delay       *forecastTimes      `json:"delay"`
	Pools       []forecastPool      `json:"pools"`
	Neighbours  *forecastNeighbours `json:"neighbours"`
	BreaksAt    *float64            `json:"breaks_at_load"`
	CollapsesAt *float64            `json:"collapses_at_load"`
}

type forecastTimes struct {
	Count uint64   `json:"count"`
	P50   *float64 `json:"p50_ms"`
	P90   *float64 `json:"p90_ms"`
	P99   *float64 `json:"p99_ms"`
	Max   *float64 `json:"max_ms"`
}

type forecastPool struct {
	Name     string        `json:"name"`
	Process  string        `json:"process"`
	Delay    forecastTimes `json:"delay"`
	Response forecastTimes `json:"response"`
}

type forecastNeighbours struct {
	LostSeconds float64  `json:"cpu_seconds_lost"`
	P99         *float64 `json:"p99_ms"`
	Before      *float64 `json:"p99_ms_before"`
}

type forecastRange struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

type forecastError struct {
	Coverage         float64        `json:"coverage"`
	P50              *forecastRange `json:"p50_ms"`
	P99              *forecastRange `json:"p99_ms"`
	Max              *forecastRange `json:"max_ms"`
	ThrottledPeriods *forecastRange `json:"throttled_periods"`
	StoppedSeconds   *forecastRange `json:"stopped_seconds"`
	Tested           int            `json:"tested"`
}

type forecastFigure struct {
	Recorded *float64 `json:"recorded"`
	Replayed *float64 `json:"replayed"`
}

type forecastCheck struct {
	ThrottledPeriods forecastFigure `json:"throttled_periods"`
	StoppedSeconds   forecastFigure `json:"stopped_seconds"`
	P50              forecastFigure `json:"p50_ms"`
	P99              forecastFigure `json:"p99_ms"`
	Max              forecastFigure `json:"max_ms"`
	CPUSeconds       forecastFigure `json:"cpu_seconds"`
}

// ForecastJSON writes a forecast for programs.
func ForecastJSON(w io.Writer, f *forecast.Forecast) error {
	return writeForecastJSON(w, newForecastItem(f))
}

func writeForecastJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

func newForecastItem(f *forecast.Forecast) forecastItem {
	c := f.Check
	item := forecastItem{
		Target: text.Sanitize(f.Target, 0), Kernel: text.Sanitize(f.Kernel, 0), WindowSeconds: f.Window.Seconds(), LimitCPUs: f.Limit,
		HostCPUs: f.CPUs, Rows: []forecastRow{}, SmallestLimit: f.SmallestLimit, SmallestNarrow: f.SmallestNarrow,
		Notes: append([]string{}, f.Notes...),
		SelfCheck: forecastCheck{
			forecastFigure(c.ThrottledPeriods), forecastFigure(c.Stopped), forecastFigure(c.P50), forecastFigure(c.P99), forecastFigure(c.Max),
			forecastFigure(c.CPU),
		},
	}
	if o := f.Objective; o != nil {
		item.Objective = &forecastObjective{Quantile: o.Quantile, BoundMS: float64(o.Bound) / 1e6}
		if o.Pool != "" {
			item.Objective.Pool = new(text.Sanitize(o.Pool, 0))
		}
	}
	if f.Cheapest >= 0 {
		r := f.Rows[f.Cheapest].Remedy
		item.Cheapest, item.Of, item.Row = &r.Name, r.Parameters(), &f.Cheapest
		if f.Objective != nil {
			item.Sure = &f.Sure
		}
	}
	for i := range f.Rows {
		item.Rows = append(item.Rows, newForecastRow(&f.Rows[i]))
	}
	return item
}

func newForecastRow(r *forecast.Row) forecastRow {
	row := forecastRow{Remedy: r.Remedy.Name, Parameters: r.Remedy.Parameters(), Modelled: r.Remedy.Modelled(), Pools: []forecastPool{}}
	if r.HostLoad > 0 {
		row.HostLoad = &r.HostLoad
	}
	if r.Refused != "" {
		row.Refused = &r.Refused
		return row
	}
	f := &r.Figures
	row.ThrottledPeriods, row.StoppedSeconds = &f.ThrottledPeriods, new(f.Stopped.Seconds())
	row.P50, row.P99, row.Max = f.Response.P50, f.Response.P99, f.Response.Max
	row.CPUsReserved, row.Price, row.Meets = r.Reserved, &r.Price, &r.Meets
	row.Delay = new(forecastTimes(f.Delay))
	for _, p := range f.Pools {
		row.Pools = append(row.Pools, forecastPool{
			text.Sanitize(p.Name, 0), text.Sanitize(p.Process, 0), forecastTimes(p.Delay), forecastTimes(p.Response),
		})
	}
	if n := r.Neighbours; n != nil {
		row.Neighbours = &forecastNeighbours{n.Lost.Seconds(), n.P99, n.Before}
	}
	if e := r.Error; e != nil {
		between := func(r *forecast.Range) *forecastRange { return (*forecastRange)(r) }
		row.Error = &forecastError{
			forecast.Coverage, between(e.P50), between(e.P99), between(e.Max), between(e.ThrottledPeriods), between(e.Stopped), e.Tested,
		}
	}
	row.BreaksAt, row.CollapsesAt = r.BreaksAt, r.CollapsesAt
	return row
}

// Forecasts is `forecast --all`: every container with a limit.
type Forecasts struct {
	All []*forecast.Forecast
	// NotForecast are the containers that could not be, and why.
	NotForecast []string
}

// Back is how many CPUs of limit the host gets back if every container had the smallest limit that keeps what it has, and
// for how many of them that is known.
func (f *Forecasts) Back() (cpus float64, of int) {
	for _, one := range f.All {
		if one.SmallestLimit != nil {
			cpus += one.Limit - *one.SmallestLimit
			of++
		}
	}
	return cpus, of
}

// ForecastsJSON writes them for programs.
func ForecastsJSON(w io.Writer, f *Forecasts) error {
	out := struct {
		Containers  []forecastItem `json:"containers"`
		CPUsBack    *float64       `json:"cpus_back"`
		NotForecast []string       `json:"not_forecast"`
	}{Containers: []forecastItem{}, NotForecast: append([]string{}, f.NotForecast...)}
	for _, one := range f.All {
		out.Containers = append(out.Containers, newForecastItem(one))
	}
	if cpus, n := f.Back(); n > 0 {
		out.CPUsBack = &cpus
	}
	return writeForecastJSON(w, out)
}
