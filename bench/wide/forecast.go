package main

import (
	"time"

	"github.com/unthrottle/unthrottle/bench/predict"
	"github.com/unthrottle/unthrottle/internal/objective"
	"github.com/unthrottle/unthrottle/internal/sim/forecast"
)

// forecasts are what forecast says of a recording of the plain quota.
type forecasts struct {
	Load float64       `json:"load_rps"` // when it was recorded
	Rows []predict.Row `json:"rows"`
	// Why there are none.
	Why string `json:"why,omitempty"`
}

// foreSeeds is how many runs a forecast is the median of.
const foreSeeds = 2

// forecastOf forecasts the remedies from a recording.
func forecastOf(p piece, file []byte, load float64) *forecasts {
	f := &forecasts{Load: load}
	var err error
	f.Rows, _, err = predict.Rows(file, p.Shape, forecast.Options{
		Seeds: foreSeeds, CPUs: p.Limit, SchedExt: true,
		Objective: &forecast.Objective{Objective: objective.Objective{Quantile: 0.99, Bound: boundMs * time.Millisecond}},
	})
	if err != nil {
		f.Why = err.Error()
	}
	return f
}
