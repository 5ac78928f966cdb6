package change

import (
	"cmp"
	"slices"

	"github.com/unthrottle/unthrottle/internal/kernel/schedpolicy"
)

// splitPolicies separates the threads that lose a real-time policy from those that get one. Threads lose it before other
// groups get their CPUs, and get it once the CPUs are theirs. Children inherit the policy. So the rest of a cgroup (all its
// threads) comes first when the policy is given: its journal entry precedes every child. It comes last on rollback.
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
