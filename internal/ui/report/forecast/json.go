package forecast

import (
	"io"

	"github.com/unthrottle/unthrottle/internal/sim/forecast"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/ui/report/jsonout"
)

// item is `forecast --json`: the contract. Keys are only ever added. null is "not measured", "none" or "not
// asked for", as docs/reference/forecast.md says of each.
type item struct {
	Target   string         `json:"target"`
	Rows     []jsonRow      `json:"rows"`
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
	SmallestNarrow *float64       `json:"smallest_narrow_cpus"`
	SelfCheck      jsonCheck      `json:"self_check"`
	Notes          []string       `json:"notes"`
}

type jsonObjective struct {
	Quantile float64 `json:"quantile"`
	BoundMS  float64 `json:"bound_ms"`
	Pool     *string `json:"pool"`
}

type jsonRow struct {
	Remedy           string         `json:"remedy"`
	Parameters       map[string]any `json:"parameters"`
	HostLoad         *float64       `json:"host_load"`
	ThrottledPeriods *float64       `json:"throttled_periods"`
	StoppedSeconds   *float64       `json:"stopped_seconds"`
	P50              *float64       `json:"p50_ms"`
	P99              *float64       `json:"p99_ms"`
	Max              *float64       `json:"max_ms"`
	CPUsReserved     *float64       `json:"cpus_reserved"`
	Error            *jsonError     `json:"error"`
	Modelled         bool           `json:"modelled"`

	Refused     *string         `json:"refused"`
	Price       *string         `json:"price"`
	Meets       *bool           `json:"meets_objective"`
	Delay       *jsonTimes      `json:"delay"`
	Pools       []jsonPool      `json:"pools"`
	Neighbours  *jsonNeighbours `json:"neighbours"`
	BreaksAt    *float64        `json:"breaks_at_load"`
	CollapsesAt *float64        `json:"collapses_at_load"`
}

type jsonTimes struct {
	Count uint64   `json:"count"`
	P50   *float64 `json:"p50_ms"`
	P90   *float64 `json:"p90_ms"`
	P99   *float64 `json:"p99_ms"`
	Max   *float64 `json:"max_ms"`
}

type jsonPool struct {
	Name     string    `json:"name"`
	Process  string    `json:"process"`
	Delay    jsonTimes `json:"delay"`
	Response jsonTimes `json:"response"`
}

type jsonNeighbours struct {
	LostSeconds float64  `json:"cpu_seconds_lost"`
	P99         *float64 `json:"p99_ms"`
	Before      *float64 `json:"p99_ms_before"`
}

type jsonRange struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

type jsonError struct {
	Coverage         float64    `json:"coverage"`
	P50              *jsonRange `json:"p50_ms"`
	P99              *jsonRange `json:"p99_ms"`
	Max              *jsonRange `json:"max_ms"`
	ThrottledPeriods *jsonRange `json:"throttled_periods"`
	StoppedSeconds   *jsonRange `json:"stopped_seconds"`
	Tested           int        `json:"tested"`
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
}

// JSON writes a forecast for programs.
func JSON(w io.Writer, f *forecast.Forecast) error {
	return jsonout.Write(w, newItem(f))
}

func newItem(f *forecast.Forecast) item {
	c := f.Check
	item := item{
		Target: text.Sanitize(f.Target, 0), Kernel: text.Sanitize(f.Kernel, 0), WindowSeconds: f.Window.Seconds(), LimitCPUs: f.Limit,
		HostCPUs: f.CPUs, Rows: []jsonRow{}, SmallestLimit: f.SmallestLimit, SmallestNarrow: f.SmallestNarrow,
		Notes: append([]string{}, f.Notes...),
		SelfCheck: jsonCheck{
			jsonFigure(c.ThrottledPeriods), jsonFigure(c.Stopped), jsonFigure(c.P50), jsonFigure(c.P99), jsonFigure(c.Max),
			jsonFigure(c.CPU),
		},
	}
	if o := f.Objective; o != nil {
		item.Objective = &jsonObjective{Quantile: o.Quantile, BoundMS: float64(o.Bound) / 1e6}
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
		item.Rows = append(item.Rows, newRow(&f.Rows[i]))
	}
	return item
}

func newRow(r *forecast.Row) jsonRow {
	row := jsonRow{Remedy: r.Remedy.Name, Parameters: r.Remedy.Parameters(), Modelled: r.Remedy.Modelled(), Pools: []jsonPool{}}
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
	row.Delay = new(jsonTimes(f.Delay))
	for _, p := range f.Pools {
		row.Pools = append(row.Pools, jsonPool{
			text.Sanitize(p.Name, 0), text.Sanitize(p.Process, 0), jsonTimes(p.Delay), jsonTimes(p.Response),
		})
	}
	if n := r.Neighbours; n != nil {
		row.Neighbours = &jsonNeighbours{n.Lost.Seconds(), n.P99, n.Before}
	}
	if e := r.Error; e != nil {
		between := func(r *forecast.Range) *jsonRange { return (*jsonRange)(r) }
		row.Error = &jsonError{
			forecast.Coverage, between(e.P50), between(e.P99), between(e.Max), between(e.ThrottledPeriods), between(e.Stopped), e.Tested,
		}
	}
	row.BreaksAt, row.CollapsesAt = r.BreaksAt, r.CollapsesAt
	return row
}

// All is `forecast --all`: every container with a limit.
type All struct {
	All []*forecast.Forecast
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

// AllJSON writes them for programs.
func AllJSON(w io.Writer, f *All) error {
	out := struct {
		Containers  []item   `json:"containers"`
		CPUsBack    *float64 `json:"cpus_back"`
		NotForecast []string `json:"not_forecast"`
	}{Containers: []item{}, NotForecast: append([]string{}, f.NotForecast...)}
	for _, one := range f.All {
		out.Containers = append(out.Containers, newItem(one))
	}
	if cpus, n := f.Back(); n > 0 {
		out.CPUsBack = &cpus
	}
	return jsonout.Write(w, out)
}
