package forecast

import (
	_ "embed"
	"encoding/json"
	"fmt"
)

// tested is what `make accuracy-forecast` found, by remedy.
//
//go:embed calibration.json
var tested []byte

// Tested is how far forecasts were off when the remedies were applied for real; empty: none was tested yet.
func Tested() Calibration {
	var c Calibration
	if err := json.Unmarshal(tested, &c); err != nil {
		panic(fmt.Sprintf("forecast: calibration.json: %v", err)) // part of the program, and tested
	}
	return c
}
