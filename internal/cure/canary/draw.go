package canary

import (
	"cmp"
	"slices"
	"time"
)

// drawn is what a draw makes of [State.Below] and [State.Newest]. Neither gets less, so that no treated pod becomes control.
type drawn struct {
	below  int64
	newest time.Time
	// treated is how many pods have the remedy, fresh how many of them had not.
	treated, fresh int
	// held is why no more pods were drawn than these; "": none was left, or the share is full.
	held string
}

// draw adds pods to those that are treated: up to so many, and no more than nodes and PodDisruptionBudgets allow.
func (s State) draw(p Plan, seen Seen, most int) drawn {
	out, step := drawn{below: s.Below, newest: s.Newest}, s.bounds(p, seen)
	youngest := s.Newest
	for _, pod := range seen.Pods {
		if s.Treats(pod) {
			out.treated++
		}
		if at := s.made(pod); at.After(youngest) {
			youngest = at
		}
	}
	for _, pod := range s.rest(seen.Pods) {
		if out.treated >= most {
			break
		}
		if out.held = step.take(pod); out.held != "" {
			break
		}
		out.treated, out.fresh, out.newest = out.treated+1, out.fresh+1, s.made(pod)
		if at := place(s.Seed, pod.UID); at > s.Below {
			out.below, out.newest = at, youngest
		}
	}
	return out
}

// rest are the pods that are not treated, in the order in which they are drawn. Those that were made since, and have a place among
// the treated, come first and by age: to go beyond them treats them all.
func (s State) rest(pods []Pod) []Pod {
	left := slices.DeleteFunc(slices.Clone(pods), s.Treats)
	slices.SortFunc(left, func(a, b Pod) int {
		at, other := place(s.Seed, a.UID), place(s.Seed, b.UID)
		if order := cmp.Compare(max(at, s.Below), max(other, s.Below)); order != 0 {
			return order
		}
		return cmp.Or(s.made(a).Compare(s.made(b)), cmp.Compare(a.UID, b.UID))
	})
	return left
}

// bounds are what a step may take of nodes and PodDisruptionBudgets, and what it took.
type bounds struct {
	disruptions      map[string]int
	touched          map[string]bool // nodes
	nodes, most      int             // that had no treated pod; most 0: any number
	remaining, taken map[string]int  // pods of each PodDisruptionBudget
}

// bounds are those of a step that has taken nothing.
func (s State) bounds(p Plan, seen Seen) *bounds {
	b := &bounds{disruptions: seen.Disruptions, touched: map[string]bool{}, most: p.Nodes, remaining: map[string]int{},
		taken: map[string]int{}}
	for _, pod := range seen.Pods {
		if s.Treats(pod) {
			b.touched[onNode(pod)] = true
		} else {
			b.remaining[pod.Budget]++
		}
	}
	return b
}

// take counts a pod, or says why the step may not have it.
func (b *bounds) take(pod Pod) (held string) {
	of, onNew := pod.Budget, !b.touched[onNode(pod)]
	switch {
	case of != "" && b.disruptions[of] <= 0:
		return "a PodDisruptionBudget allows no disruption"
	case of != "" && b.taken[of] > 0 && b.taken[of]+1 >= b.remaining[of]:
		return "a PodDisruptionBudget's last pod is another step's"
	case onNew && b.most > 0 && b.nodes == b.most:
		return "the budget of nodes is used up"
	}
	b.taken[of]++
	if onNew {
		b.touched[onNode(pod)] = true
		b.nodes++
	}
	return ""
}

// onNode is a pod's node. One that has none yet may come to a node of its own.
func onNode(p Pod) string {
	if p.Node == "" {
		return "of pod " + p.UID
	}
	return p.Node
}
