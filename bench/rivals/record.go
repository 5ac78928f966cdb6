package main

import (
	"fmt"
	"strings"

	"github.com/unthrottle/unthrottle/test/study"
)

// piece is one variant of one service in one round. Round 0 is the service without a limit, which the objective and the day of use are
// made of.
type piece struct {
	study.Made
	Service string  `json:"service"`
	Limit   float64 `json:"limit_cpus"` // of all its containers
	Variant string  `json:"variant"`
	Round   int     `json:"round"`
	Points  []point `json:"points"`
	// Objective is the bound of p99 by which the steps ended, in ms; 0 in round 0.
	Objective float64 `json:"objective_ms"`
	// Decided is how long after its start a variant last changed what was in force, at the usual load, in seconds; null: it decides
	// from a history, or nothing at all.
	Decided *float64 `json:"decided_seconds"`
	// Set is what was in force at the end, in words.
	Set string `json:"set"`
	// Writes and Refusals count what was written to the cgroup, and what the kernel refused, FirstRefusal.
	Writes       int    `json:"writes"`
	Refusals     int    `json:"refusals,omitempty"`
	FirstRefusal string `json:"first_refusal,omitempty"`
	// NotApplied is why the variant cannot be applied to this service; "": it was.
	NotApplied string `json:"not_applied,omitempty"`
}

// point is one step. Load is a multiple of the service's usual load. Latencies are in ms.
type point struct {
	Load     float64  `json:"load"`
	P50      *float64 `json:"p50_ms"`
	P99      *float64 `json:"p99_ms"`
	P999     *float64 `json:"p999_ms"`
	Requests uint64   `json:"requests"`
	Errors   uint64   `json:"errors"`
	// UsedCPUs is the mean, MostCPUs the most in a tenth of a second, GrantedCPUs what the limit was on average, or the CPUs that it
	// may run on.
	UsedCPUs    float64 `json:"used_cpus"`
	MostCPUs    float64 `json:"most_cpus"`
	GrantedCPUs float64 `json:"granted_cpus"`
	OthersCPUs  float64 `json:"others_cpus"`
	// UsedBy is UsedCPUs by container.
	UsedBy    map[string]float64 `json:"used_by"`
	Periods   uint64             `json:"periods"`
	Throttled uint64             `json:"throttled_periods"`
	// Neighbour is the p99 of the service beside it.
	Neighbour *float64 `json:"neighbour_p99_ms"`
}

// measured tells whether a piece is there.
func measured(all []piece, service, variant string, round int) bool {
	for _, p := range all {
		if p.Service == service && p.Variant == variant && p.Round == round {
			return true
		}
	}
	return false
}

// baseOf is what a service is without a limit, from round 0; nil: it was not measured.
func baseOf(all []piece, service string) *base {
	for _, p := range all {
		if p.Service == service && p.Round == 0 {
			half, whole := p.at(halfLoad), p.at(1)
			if half == nil || whole == nil || half.P99 == nil {
				return nil
			}
			return &base{objective: objectiveTimes * *half.P99, used: whole.UsedBy}
		}
	}
	return nil
}

// base is a service without a limit: the objective in ms, and the CPUs that its containers use at its usual load.
type base struct {
	objective float64
	used      map[string]float64
}

// at is the step of a load; nil: there is none.
func (p *piece) at(load float64) *point {
	for i := range p.Points {
		if p.Points[i].Load == load {
			return &p.Points[i]
		}
	}
	return nil
}

// text is a piece in a line.
func (p *piece) text() string {
	if p.NotApplied != "" {
		return p.Variant + ": not applied: " + p.NotApplied
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%s):", p.Variant, p.Set)
	for _, at := range p.Points {
		if at.P99 == nil {
			fmt.Fprintf(&b, " %g: nothing measured,", at.Load)
			continue
		}
		fmt.Fprintf(&b, " %g: %.1f ms at %.2f CPUs,", at.Load, *at.P99, at.UsedCPUs)
	}
	if p.Refusals > 0 {
		fmt.Fprintf(&b, " refused %d of %d: %s", p.Refusals, p.Writes, p.FirstRefusal)
	}
	return strings.TrimSuffix(b.String(), ",")
}
