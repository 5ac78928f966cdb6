package main

import "math/rand/v2"

// mix is a way in which the sizes of containers are spread.
type mix struct {
	name  string
	sizes []int // each as likely as the others
}

var mixes = []mix{
	{"small", []int{1, 1, 2, 2, 2, 3, 4}},
	{"mixed", []int{1, 2, 2, 3, 4, 4, 4, 6, 8, 8, 12, 16}},
	{"databases", []int{1, 2, 2, 4, 4, 8, 8, 16, 16, 24, 32}},
}

// request is one step of a stream: containers leave, then one arrives.
type request struct {
	size  int
	leave []int // numbers of requests whose containers leave first
	warm  bool  // the node is as full as it is to be
}

// stream makes requests that keep a node about so full. It knows sizes only, so
// that all allocators get the same.
func stream(m mix, cpus, percent, length int, seed uint64) []request {
	rng := rand.New(rand.NewPCG(seed, uint64(percent)))
	most := min(cpus*percent/100, cpus-1) // the shared pool keeps one
	var live []int
	size := map[int]int{}
	var out []request
	taken, warm := 0, false
	for counted := 0; counted < length; {
		r := request{size: min(m.sizes[rng.IntN(len(m.sizes))], most)}
		for taken+r.size > most {
			warm = true
			i := rng.IntN(len(live))
			taken -= size[live[i]]
			r.leave = append(r.leave, live[i])
			live[i] = live[len(live)-1]
			live = live[:len(live)-1]
		}
		if r.warm = warm; warm {
			counted++
		}
		size[len(out)] = r.size
		live = append(live, len(out))
		taken += r.size
		out = append(out, r)
	}
	return out
}
