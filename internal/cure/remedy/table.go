package remedy

import "slices"

// Remedy is one remedy as a value.
type Remedy struct {
	Kind Kind
	// plan adds what it changes to a plan in the making. The error is a *Refused where it cannot or must not be applied.
	plan func(*planner) error
	// parameters are those that its transactions have in the journal, needs those without which one cannot be read.
	parameters, needs []string
}

// table has every remedy, in the order in which people read them.
var table = []Remedy{pin, narrow, burst, weight, raise, secondary}

// find is the row of a kind; false: there is none.
func find(kind Kind) (Remedy, bool) {
	if kind == System {
		return system, true
	}
	i := slices.IndexFunc(table, func(r Remedy) bool { return r.Kind == kind })
	if i < 0 {
		return Remedy{}, false
	}
	return table[i], true
}
