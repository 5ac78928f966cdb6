package canary

import (
	"cmp"
	"slices"
)

// drawn is a prefix of the order of pods.
type drawn struct {
	below   int64
	treated int
	// fresh is how many of them had not been treated.
	fresh int
	// held is why no more pods were drawn than these; "": none was left, or the share is full.
	held string
}

// draw takes pods from the beginning of the order: at most so many, and no more than nodes and PodDisruptionBudgets allow.
func (s State) draw(p Plan, seen Seen, most int) drawn {
	order := slices.Clone(seen.Pods)
	slices.SortFunc(order, func(a, b Pod) int {
		return cmp.Or(cmp.Compare(place(s.Seed, a.UID), place(s.Seed, b.UID)), cmp.Compare(a.UID, b.UID))
	})
	touched, remaining := map[string]bool{}, map[string]int{}
	for _, pod := range order {
		if s.Treats(pod) {
			touched[pod.Node] = true
		} else {
			remaining[pod.Budget]++
		}
	}
	out, nodes, taken := drawn{}, 0, map[string]int{}
	for _, pod := range order {
		if out.treated == most {
			break
		}
		if !s.Treats(pod) {
			if b := pod.Budget; b != "" {
				if seen.Disruptions[b] <= 0 {
					out.held = "a PodDisruptionBudget allows no disruption"
					break
				}
				if taken[b] > 0 && taken[b]+1 >= remaining[b] {
					out.held = "a PodDisruptionBudget's last pod is another step's"
					break
				}
				taken[b]++
			}
			if !touched[pod.Node] {
				if p.Nodes > 0 && nodes == p.Nodes {
					out.held = "the budget of nodes is used up"
					break
				}
				touched[pod.Node] = true
				nodes++
			}
			out.fresh++
		}
		out.treated++
		out.below = place(s.Seed, pod.UID)
	}
	return out
}
