package packing

// Rounds orders the moves of a placement. Of each round all containers may move at once: their hosts hold them beside
// what is there then, and what leaves in the same round is still there. round is the number of each container's round,
// from 1; 0: it stays.
//
// tight is how many moves have no such order, as where two full hosts exchange containers. They come one round after
// the others, and their hosts hold more than they should until it is over.
func Rounds(containers []Container, hosts []Host, on []int, o Options) (round []int, tight int) {
	s := newState(containers, reserved(hosts, o.Reserve), o.Risk)
	round = make([]int, len(containers))
	var left []int
	for i := range containers {
		if on[i] >= 0 && on[i] != s.on[i] {
			left = append(left, i)
		}
	}
	for no := 1; len(left) > 0; no++ {
		var waits, moved []int
		for _, i := range left {
			if !s.fits(i, on[i]) {
				waits = append(waits, i)
				continue
			}
			round[i], moved = no, append(moved, i)
			s.put(i, on[i]) // beside where it is
		}
		if len(moved) == 0 {
			for _, i := range waits {
				round[i] = no
			}
			return round, len(waits)
		}
		for _, i := range moved {
			s.leave(i, containers[i].On)
		}
		left = waits
	}
	return round, 0
}

// leave removes a container from one of its two hosts.
func (s *state) leave(i, host int) {
	to := s.on[i]
	if host < 0 { // it had none
		return
	}
	s.on[i] = host
	s.take(i)
	s.on[i] = to
}
