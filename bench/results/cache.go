package main

import (
	"path/filepath"
	"time"

	"github.com/unthrottle/unthrottle/bench/study"
	"github.com/unthrottle/unthrottle/internal/experiment/capacity"
)

// measured is one part as it is kept: the page is made from all that are there,
// so that parts can be measured one at a time. One of its results is set.
type measured struct {
	study.Made
	Part   string           `json:"part"`
	Scale  string           `json:"scale"`
	Took   time.Duration    `json:"took_ns"`
	Failed string           `json:"failed,omitempty"` // why there is no result
	Shape  *capacity.Result `json:"shape,omitempty"`
	// Predicted has the forecasts of the shape's rows, from a recording at a load.
	// NotPredicted says why there are none.
	Recorded     float64          `json:"recorded_load_rps,omitempty"`
	Predicted    *predicted       `json:"foretold,omitempty"`
	NotPredicted string           `json:"not_foretold,omitempty"`
	Spiral       *capacity.Spiral `json:"spiral,omitempty"`
	Price        *capacity.Price  `json:"price,omitempty"`
	// Library are the shapes of libraryShapes with the library in the program.
	Library []capacity.Result `json:"library,omitempty"`
	Repeats int               `json:"repeats"`
	Steps   int               `json:"steps"`
	Step    time.Duration     `json:"step_ns"`
}

func keptName(dir, part string) string { return filepath.Join(dir, part+".json") }

// recordedName is the recording that a part's forecasts are made of.
func recordedName(dir, part string) string { return filepath.Join(dir, part+".rec") }

// kept is every part that was measured, in the parts' usual order.
func kept(dir string) ([]measured, error) {
	var all []measured
	for _, part := range parts() {
		var m measured
		found, err := study.Read(keptName(dir, part), &m)
		if err != nil {
			return nil, err
		}
		if found {
			all = append(all, m)
		}
	}
	return all, nil
}
