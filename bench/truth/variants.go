package main

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/sim/forecast"
)

// leaveIt is the variant in which nothing is applied.
const leaveIt = "leave it"

// variant is one thing to apply.
type variant struct {
	// Name is the remedy with its parameters, such as "burst 50ms".
	Name string `json:"name"`
	// Args are those of 'unthrottle apply', after the target; none: nothing is applied.
	Args []string `json:"args"`
	// Granted is how many CPUs it grants; null: nothing bounds its use.
	Granted *float64 `json:"granted_cpus"`
	// Refused says why apply did not do it when it last refused; "": it never has.
	Refused string        `json:"refused,omitempty"`
	period  time.Duration // that it brings; 0: the period stays
}

// between is an interval.
type between struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// row is a row of a forecast, as forecast --json and fix --json show it.
type row struct {
	Remedy     string         `json:"remedy"`
	Parameters map[string]any `json:"parameters"`
	HostLoad   *float64       `json:"host_load"`
	Judged     *float64       `json:"judged_ms"`
	Range      *between       `json:"judged_error_ms"`
	// Requests is the p99 of requests, where the forecast tells it apart from the judged responses; null: it does not.
	Requests      *float64 `json:"requests_p99_ms"`
	RequestsRange *between `json:"requests_error_ms"`
	CPUsReserved  *float64 `json:"cpus_reserved"`
	Modelled      bool     `json:"modelled"`
	Refused       *string  `json:"refused"`
}

// client is the p99 that a client outside sees by the forecast, and its interval: of requests, where the row has it.
func (r *row) client() (p99 *float64, in *between) {
	if r.Requests != nil {
		return r.Requests, r.RequestsRange
	}
	return r.Judged, r.Range
}

// length is a parameter in seconds, as a Go duration shows it; "": there is none.
func (r row) length(key string) string {
	seconds, ok := r.Parameters[key].(float64)
	if !ok {
		return ""
	}
	return time.Duration(math.Round(seconds * float64(time.Second))).String()
}

// flags are those of 'unthrottle apply' that have the parameters of a row, in the order of a variant's name.
var flags = []struct{ parameter, flag string }{
	{"cpus", "cpus"}, {"factor", "factor"}, {"burst_seconds", "burst"}, {"period_seconds", "period"},
}

// applied is the row's remedy with its parameters, such as "burst 50ms", and the arguments of 'unthrottle apply' after the target;
// none: it applies nothing.
func (r row) applied() (name string, args []string) {
	if r.Remedy == forecast.None {
		return leaveIt, nil
	}
	if _, ok := remedy.Find(remedy.Kind(r.Remedy)); !ok {
		return r.Remedy, nil
	}
	name, args = r.Remedy, []string{"--remedy", r.Remedy}
	for _, f := range flags {
		value, ok := r.Parameters[f.parameter]
		if !ok {
			continue
		}
		shown := fmt.Sprint(value)
		if strings.HasSuffix(f.parameter, "_seconds") {
			shown = r.length(f.parameter)
		}
		args = append(args, "--"+f.flag, shown)
		switch f.flag {
		case r.Remedy, "cpus":
			name += " " + shown
		case "factor":
			name += " " + shown + "x"
		default:
			name += ", " + f.flag + " " + shown
		}
	}
	return name, args
}

// name is the row's remedy with its parameters.
func (r row) name() string {
	name, _ := r.applied()
	return name
}

// variantOf returns what a row applies; false: nothing that apply can do, such as rows of another load of the
// host, and of a setting of the service.
func variantOf(r row) (v variant, ok bool) {
	name, args := r.applied()
	v = variant{Name: name, Args: args, Granted: r.CPUsReserved}
	v.period, _ = time.ParseDuration(r.length("period_seconds")) // "" is none
	if r.Refused != nil && len(args) > 0 {
		v.Refused = *r.Refused
	}
	return v, r.HostLoad == nil && !r.Modelled && (len(args) > 0 || r.Remedy == forecast.None)
}

// variantsOf returns what a forecast's rows apply, leaving it first.
func variantsOf(rows []row) []variant {
	var variants []variant
	for _, r := range rows {
		if v, ok := variantOf(r); ok {
			variants = append(variants, v)
		}
	}
	return variants
}

// rowOf returns the row of a variant at the recorded load of the host; nil: there is none.
func rowOf(rows []row, name string) *row {
	for i := range rows {
		if rows[i].HostLoad == nil && !rows[i].Modelled && rows[i].name() == name {
			return &rows[i]
		}
	}
	return nil
}

// caps is the cap of a sibling that a trial kept: no forecast has a row of one. Together they may use as much as before.
func (f *fixed) caps(limit float64) []variant {
	if f.Trial == nil {
		return nil
	}
	for _, r := range f.Trial.Rows {
		if r.Kept && remedy.Kind(r.Remedy) == remedy.Cap {
			return []variant{{Name: r.Remedy, Args: []string{"--remedy", r.Remedy, "--to", r.Parameters["to"]}, Granted: &limit}}
		}
	}
	return nil
}
