package forecast

import (
	_ "embed"
	"encoding/json"
	"fmt"
)

// tested is the result of `make accuracy-forecast`, by remedy.
//
//go:embed calibration.json
var tested []byte

// testedBudget is the residual of Budget: make results-threads compares simulated bursts with real runs of the library.
//
//go:embed budget.json
var testedBudget []byte

// Tested returns how far forecasts were off when the remedies were applied for real. It is empty if no
// forecast was tested.
func Tested() Calibration {
	var c Calibration
	if err := json.Unmarshal(tested, &c); err != nil {
		panic(fmt.Sprintf("forecast: calibration.json: %v", err)) // the file is part of the program, and a test reads it
	}
	var budget Residual
	if err := json.Unmarshal(testedBudget, &budget); err != nil {
		panic(fmt.Sprintf("forecast: budget.json: %v", err))
	}
	c[Budget] = budget
	return c
}
