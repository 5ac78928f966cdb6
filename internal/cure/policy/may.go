package policy

import (
	"fmt"
	"slices"

	"github.com/unthrottle/unthrottle/internal/cure/remedy"
)

// grantsMore are the remedies that can grant more CPU than the limit: a pin does where the limit is no whole
// number of CPUs.
var grantsMore = []remedy.Kind{remedy.Raise, remedy.Weight, remedy.Pin}

// ParseMay reads the names of remedies that may grant more CPU than the limit.
func ParseMay(names []string) ([]remedy.Kind, error) {
	var may []remedy.Kind
	for _, name := range names {
		kind := remedy.Kind(name)
		if !slices.Contains(grantsMore, kind) {
			return nil, fmt.Errorf("%.30q grants no more CPU than the limit: give some of raise, weight, pin", name)
		}
		may = append(may, kind)
	}
	return may, nil
}
