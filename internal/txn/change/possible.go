package change

// Impossible is a change that cannot be ordered, and why.
type Impossible struct {
	Change Change
	Err    error
}

// OrderPossible is Order for changes of which some may have become impossible, because others wrote to the same cgroup
// since: a quota that is to come back below a burst of theirs. Where the whole cannot be ordered, the cgroups whose
// changes cannot be ordered by themselves are left out, each as a whole, so that none is half of what it was; the
// others are ordered together as ever.
func OrderPossible(s State, changes []Change) (steps []Change, left []Impossible) {
	steps, err := Order(s, changes)
	if err == nil {
		return steps, nil
	}
	byPath := map[string][]Change{}
	for _, c := range changes {
		byPath[c.Path] = append(byPath[c.Path], c)
	}
	impossible := map[string]error{}
	for path, own := range byPath {
		if _, err := Order(s, own); err != nil {
			impossible[path] = err
		}
	}
	var rest []Change
	for _, c := range changes {
		if err := impossible[c.Path]; err != nil {
			left = append(left, Impossible{c, err})
			continue
		}
		rest = append(rest, c)
	}
	if steps, err = Order(s, rest); err != nil {
		for _, c := range rest {
			left = append(left, Impossible{c, err})
		}
		return nil, left
	}
	return steps, left
}
