package main

import (
	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/sim/forecast"
	"github.com/unthrottle/unthrottle/internal/txn/apply"
)

// mostPast bounds the past changes from which a forecast learns.
const mostPast = 1000

// corrected moves the forecast of a container of this host by what came of its past remedies, as fix does, so that all
// commands recommend the same. Another user's journal is not for this one to read.
func corrected(made *forecast.Forecast) *forecast.Forecast {
	past, err := apply.History(apply.Env{StateDir: defaultStateDir()}, mostPast)
	if err != nil {
		say("the journal cannot be read, so that past outcomes do not move the forecast: %v", err)
		return made
	}
	return policy.Corrected(made, past)
}
