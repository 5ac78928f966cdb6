package apply

import (
	"fmt"

	"github.com/unthrottle/unthrottle/internal/txn/change"
)

// resolution is one change, and what there is to change.
type resolution struct {
	change change.Change
	// current is the value as it is, original and base what it was before any of us.
	current, original, base string
	// held are what other transactions do to it.
	held []change.Hold
}

// merge makes one change of all that parts do to a setting, in the order of the parts.
type merge struct {
	order []change.Key
	at    map[change.Key]*resolution
	ops   map[change.Key][]change.Hold
}

func newMerge() *merge {
	return &merge{at: map[change.Key]*resolution{}, ops: map[change.Key][]change.Hold{}}
}

func (m *merge) has(k change.Key) bool { return m.at[k] != nil }

func (m *merge) add(r resolution) {
	k := r.change.Key()
	if !m.has(k) {
		m.order = append(m.order, k)
		m.at[k] = &r
	}
	m.ops[k] = append(m.ops[k], change.Hold{Op: r.change.Op, To: r.change.To})
}

// changes are the changes of values as they are now to those wanted; what is there already is left out.
func (m *merge) changes() ([]change.Change, error) {
	var all []change.Change
	for _, k := range m.order {
		r := m.at[k]
		to, err := change.Fold(k.File, r.original, r.base, append(r.held, m.ops[k]...))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", k, err)
		}
		if change.Same(k.File, r.current, to) {
			continue
		}
		now := r.change
		now.From, now.To, now.Op = r.current, to, change.OpSet
		all = append(all, now)
	}
	return all, nil
}
