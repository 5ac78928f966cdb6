package packing

import (
	"slices"
	"testing"
)

// one is a container that always wants so many CPUs.
func one(on int, cpus float64) Container {
	return Container{On: on, Demand: []Moments{{Mean: cpus}}, MostCPUs: cpus, MemoryBytes: 1}
}

// A container comes when the one that makes room has gone; what is in a circle has no order, and comes last.
func TestRounds(t *testing.T) {
	hosts := []Host{{4, 100}, {4, 100}, {4, 100}}
	for _, c := range []struct {
		name  string
		of    []Container
		on    []int
		round []int
		tight int
	}{
		{"nothing moves", []Container{one(0, 4), one(1, 4)}, []int{0, 1}, []int{0, 0}, 0},
		{"at once", []Container{one(0, 1), one(1, 1)}, []int{2, 2}, []int{1, 1}, 0},
		{"one after the other", []Container{one(0, 4), one(1, 4)}, []int{1, 2}, []int{2, 1}, 0},
		{"in a circle", []Container{one(0, 3), one(1, 3), one(2, 4)}, []int{1, 0, 2}, []int{1, 1, 0}, 2},
		{"after the circle's way out", []Container{one(0, 3), one(1, 3), one(1, 1)}, []int{1, 0, 2}, []int{2, 2, 1}, 2},
		{"without a host", []Container{one(-1, 4), one(0, 4)}, []int{0, 1}, []int{2, 1}, 0},
	} {
		round, tight := Rounds(c.of, hosts, c.on, Options{Risk: 0.001})
		if !slices.Equal(round, c.round) || tight != c.tight {
			t.Errorf("%s: rounds %v, %d without an order; want %v, %d", c.name, round, tight, c.round, c.tight)
		}
	}
	if round, tight := Rounds([]Container{one(0, 1)}, hosts, []int{1}, Options{Risk: 0.001, Reserve: 0.8}); round[0] != 1 || tight != 1 {
		t.Errorf("the reserve does not count: %v, %d", round, tight)
	}
}

// No host holds more than it has at any moment of any round, by the plan's own rule.
func TestRoundsKeepToTheHosts(t *testing.T) {
	all, hosts := fleetOf(30, 400)
	containers := containersOf(all, func(c *levelled) Container { return c.Container })
	o := Options{Risk: 0.001, Moves: -1}
	p := Make(containers, hosts, o)
	round, tight := Rounds(containers, hosts, p.On, o)
	most, moves := slices.Max(round), 0
	for i := range containers {
		if (round[i] > 0) != (p.On[i] != containers[i].On) {
			t.Fatalf("container %d: round %d, from %d to %d", i, round[i], containers[i].On, p.On[i])
		}
		if round[i] > 0 {
			moves++
		}
	}
	if moves != p.Moves || moves < 50 || most < 2 {
		t.Errorf("%d moves in %d rounds, the plan has %d", moves, most, p.Moves)
	}
	over := newState(containers, hosts, o.Risk)
	if tight > 0 {
		most--
	}
	for no := 1; no <= most; no++ {
		for i := range containers {
			if round[i] == no {
				over.put(i, p.On[i])
			}
		}
		for i := range containers {
			if round[i] == no && over.isOver(p.On[i]) {
				t.Fatalf("round %d: host %d holds more than it has", no, p.On[i])
			}
		}
		for i := range containers {
			if round[i] == no {
				over.leave(i, containers[i].On)
			}
		}
	}
}
