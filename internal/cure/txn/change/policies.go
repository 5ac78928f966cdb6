package change

import (
	"cmp"
	"slices"

	"github.com/unthrottle/unthrottle/internal/kernel/schedpolicy"
)

// splitPolicies parts the threads that leave a real-time policy, which happens before their CPUs become anybody's, from
// those that get one, once the CPUs are theirs. Children inherit it, so that the rest of a cgroup, which means all its
// threads, comes first on the way in, with its entry in the journal before anybody can inherit, and last on the way out.
func splitPolicies(policies []Change) (losing, gaining []Change) {
	for _, c := range policies {
		if p, err := schedpolicy.Parse(c.To); err == nil && p.BeforeOthers() {
			gaining = append(gaining, c)
		} else {
			losing = append(losing, c)
		}
	}
	slices.SortStableFunc(losing, func(a, b Change) int { return cmp.Compare(rest(a), rest(b)) })
	slices.SortStableFunc(gaining, func(a, b Change) int { return cmp.Compare(rest(b), rest(a)) })
	return losing, gaining
}

func rest(c Change) int {
	if c.File == schedpolicy.Rest {
		return 1
	}
	return 0
}
