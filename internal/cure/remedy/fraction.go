package remedy

import "math"

// contest is one cgroup level at which a container competes by weight.
type contest struct {
	weight float64 // of the container's side
	others float64 // of all who share CPUs with it there, together
}

// part is the part of the level's CPU time that the weights give.
func (c contest) part() float64 { return c.weight / (c.weight + c.others) }

// fractionOdds is the weight, as a multiple of the others', that a hybrid needs
// on each of levels contested levels. It then gets its own CPUs and fraction of
// the room CPUs on which the others run.
//
// The kernel keeps two rules (Linux 6.12, kernel/sched/fair.c):
//   - calc_group_shares gives the group on each CPU the part
//     shares * load / tg->load_avg of its weight: the sum over all CPUs, own ones
//     included, is the weight, W.
//   - calculate_imbalance has the balancer move threads towards
//     sds->avg_load, the same load on every CPU of the domain. With D for the
//     others' weight that is L = (W + D) / (own + room).
//
// The own CPUs carry own * L of W. What is left, W - own * L, runs in the room,
// where it shall be fraction * L. So W / L = own + fraction, which gives
//
//	W / (W + D) = (own + fraction) / (own + room)
//
// Over nested levels the parts multiply (task_h_load), so that each level takes
// the root. A weight of D * own / room or less gives nothing of the room: the
// balancer then finds the own CPUs the least loaded and leaves all threads there.
func fractionOdds(own int, fraction float64, room, levels int) float64 {
	part := math.Pow((float64(own)+fraction)/float64(own+room), 1/float64(levels))
	return part / (1 - part)
}

// fractionReached is fractionOdds read backwards: how many of the room's CPUs
// the weights give beside the own CPUs, at least 0.
func fractionReached(own, room int, contests []contest) float64 {
	part := 1.0
	for _, c := range contests {
		part *= c.part()
	}
	return max(0, part*float64(own+room)-float64(own))
}
