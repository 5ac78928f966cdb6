package main

import (
	"fmt"
	"math"
	"strings"

	"github.com/unthrottle/unthrottle/internal/experiment/capacity"
	"github.com/unthrottle/unthrottle/test/study"
)

// What the page's second part shows of a shape: each repeat, what made it noisy, and the latencies at the same load.

// Loads are the rows of a shape's remedies.
func (m measured) Loads() (rows []string) {
	for _, r := range m.Shape.Remedies {
		load := "none met"
		if r.MaxLoad != nil {
			load = fmt.Sprintf("%.0f", *r.MaxLoad)
		}
		var repeats []string
		for _, l := range r.Loads {
			repeats = append(repeats, fmt.Sprintf("%.0f", l))
		}
		between, predicted := "-", "-"
		if r.RatioLow != nil {
			between = fmt.Sprintf("%.2f to %.2f", *r.RatioLow, *r.RatioHigh)
		}
		if ratio := m.Predicted.ratio(r.Remedy); ratio != nil && r.Remedy != capacity.Quota {
			predicted = fmt.Sprintf("%.2f", *ratio)
		}
		rows = append(rows, study.Row(r.Remedy, study.Decimals(r.CPUsGranted, 1), fmt.Sprintf("%s (%s)", load, strings.Join(repeats, ", ")),
			study.Decimals(r.Ratio, 2), between, predicted, strings.Join(r.Why, "; ")))
	}
	return rows
}

// Hold says what a shape's figures hold at equal CPUs.
func (m measured) Hold() string {
	said := []string{"carried more load than the plain quota", "carried less", "made no difference that these repeats could tell"}
	names := make([][]string, len(said))
	for _, r := range m.Shape.Remedies {
		if r.Ratio == nil || *r.CPUsGranted != *m.Shape.Remedies[0].CPUsGranted {
			continue
		}
		which := 2
		if *r.RatioLow > 1 {
			which = 0
		} else if *r.RatioHigh < 1 {
			which = 1
		}
		names[which] = append(names[which], fmt.Sprintf("%s (%.2f)", r.Remedy, *r.Ratio))
	}
	var parts []string
	for i, group := range names {
		if len(group) > 0 {
			parts = append(parts, strings.Join(group, ", ")+" "+said[i])
		}
	}
	if len(parts) == 0 {
		return "No remedy could be compared at equal CPUs."
	}
	return "At equal CPUs " + strings.Join(parts, "; ") + "."
}

// PredictedWithin says how many predictions came true; "": there are none.
func (m measured) PredictedWithin() string {
	const close = 0.15
	within, compared := 0, 0
	for _, r := range m.Shape.Remedies {
		if told := m.Predicted.ratio(r.Remedy); told != nil && r.Ratio != nil {
			compared++
			if *told >= *r.RatioLow && *told <= *r.RatioHigh || math.Abs(*told / *r.Ratio - 1) <= close {
				within++
			}
		}
	}
	if compared == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d", within, compared)
}

// Points are the rows of the latencies at each share of the best load.
func (m measured) Points() (rows []string) {
	most := 0
	for _, r := range m.Shape.Remedies {
		most = max(most, len(r.Points))
	}
	for i := range most {
		for _, r := range m.Shape.Remedies {
			if i >= len(r.Points) {
				continue
			}
			at, throttled, stopped := r.Points[i], "-", "-"
			if at.ThrottledPeriods != nil && at.Periods != nil {
				throttled = fmt.Sprintf("%d of %d", *at.ThrottledPeriods, *at.Periods)
			}
			if at.StoppedLow != nil && at.StoppedHigh != nil {
				stopped = fmt.Sprintf("%.1f to %.1f", 100**at.StoppedLow, 100**at.StoppedHigh)
			}
			rows = append(rows, study.Row(fmt.Sprintf("%.0f %%", 100*at.OfBest), fmt.Sprintf("%.0f", at.Load), r.Remedy,
				study.Decimals(at.P50, 1), study.Decimals(at.P90, 1), study.Decimals(at.P99, 1), at.Failed,
				study.Decimals(at.CPUUsed, 2), throttled, stopped))
		}
	}
	return rows
}
