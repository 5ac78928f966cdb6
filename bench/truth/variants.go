package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
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
	Refused string `json:"refused,omitempty"`
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

// number returns a parameter; 0: there is none.
func (r row) number(key string) float64 { return numberOf(r.Parameters[key]) }

// numberOf reads a number or the text of one.
func numberOf(v any) float64 {
	switch v := v.(type) {
	case float64:
		return v
	case string:
		if n, err := strconv.ParseFloat(v, 64); err == nil {
			return n
		}
	}
	return 0
}

// length is a parameter in seconds, as a Go duration shows it. What was measured before version 1 of the documents has it
// in milliseconds.
func (r row) length(key string) string {
	seconds := r.number(key)
	if seconds == 0 {
		seconds = r.number(strings.TrimSuffix(key, "_seconds")+"_ms") / 1e3
	}
	return time.Duration(math.Round(seconds * float64(time.Second))).String()
}

// name is the row's remedy with its parameters.
func (r row) name() string {
	switch r.Remedy {
	case "none":
		return leaveIt
	case "pin":
		return fmt.Sprintf("pin %g", r.number("cpus"))
	case "narrow":
		if r.length("burst_seconds") != "0s" {
			return "narrow, burst " + r.length("burst_seconds")
		}
	case "burst":
		if r.length("period_seconds") != "0s" {
			return fmt.Sprintf("burst %s, period %s", r.length("burst_seconds"), r.length("period_seconds"))
		}
		return "burst " + r.length("burst_seconds")
	case "period":
		return "period " + r.length("period_seconds")
	case "raise":
		return fmt.Sprintf("raise %gx", r.number("factor"))
	case "pools":
		return fmt.Sprintf("pool of %g", r.number("threads"))
	case "shards":
		return fmt.Sprintf("shards %gx", r.number("factor"))
	}
	return r.Remedy
}

// variantOf returns how a row is applied. ok is false where apply has no such remedy:
// rows at another load of the host, and of a setting of the service.
func variantOf(r row) (v variant, ok bool) {
	v = variant{Name: r.name(), Granted: r.CPUsReserved}
	if r.HostLoad != nil || r.Modelled {
		return v, false
	}
	switch r.Remedy {
	case "none":
		return v, true
	case "pin":
		v.Args = []string{"--remedy", "pin", "--cpus", fmt.Sprint(r.number("cpus"))}
	case "burst":
		v.Args = []string{"--remedy", "burst", "--burst", r.length("burst_seconds")}
		if r.length("period_seconds") != "0s" {
			v.Args = append(v.Args, "--period", r.length("period_seconds"))
		}
	case "period":
		v.Args = []string{"--remedy", "period", "--period", r.length("period_seconds")}
	case "raise":
		v.Args = []string{"--remedy", "raise", "--factor", fmt.Sprint(r.number("factor"))}
	case "narrow":
		v.Args = []string{"--remedy", r.Remedy}
		if r.length("burst_seconds") != "0s" {
			v.Args = append(v.Args, "--burst", r.length("burst_seconds"))
		}
	case "weight":
		v.Args = []string{"--remedy", r.Remedy}
	default:
		return v, false
	}
	if r.Refused != nil {
		v.Refused = *r.Refused
	}
	return v, true
}

// variantsOf returns what a forecast's rows apply, leaving it first.
func variantsOf(rows []row) []variant {
	var all []variant
	for _, r := range rows {
		if v, ok := variantOf(r); ok {
			all = append(all, v)
		}
	}
	return all
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
