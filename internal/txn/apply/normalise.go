package apply

import (
	"fmt"

	"github.com/unthrottle/unthrottle/internal/txn/change"
)

// normalise fills in what a kind implies and refuses two changes of one setting.
func (w world) normalise(changes []change.Change) ([]change.Change, error) {
	all := make([]change.Change, 0, len(changes))
	seen := map[change.Key]bool{}
	for _, c := range changes {
		if c.Op == "" {
			c.Op = change.OpSet
		}
		c, err := w.kind(c.Kind).normalise(c)
		if err != nil {
			return nil, err
		}
		if seen[c.Key()] {
			return nil, fmt.Errorf("%s is changed twice in one transaction", c.Key())
		}
		seen[c.Key()] = true
		all = append(all, c)
	}
	return all, nil
}
