package demo

import (
	"testing"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/topology"
)

// eight is one socket of four cores with two threads each: 0+4, 1+5, 2+6, 3+7.
func eight() topology.Machine {
	var m topology.Machine
	for i := range 8 {
		m.CPUs = append(m.CPUs, topology.CPU{ID: i, Online: true, Core: topology.ID(i % 4), Cluster: topology.Unknown})
	}
	return m
}

func TestChoosePinned(t *testing.T) {
	set := cpuset.New(0, 1, 2, 3, 4, 5, 6, 7)
	for name, c := range map[string]struct {
		allowed cpuset.CPUSet
		busy    map[int]float64
		want    string
	}{
		"a whole core, of equally idle ones": {set, map[int]float64{}, "0,4"},
		"a quiet core":                       {set, map[int]float64{0: 1, 1: 0.5, 5: 0.9, 3: 1}, "2,6"},
		"the quietest, though on two cores":  {set, map[int]float64{0: 1, 1: 1, 2: 1, 3: 1}, "4-5"},
		"of what is allowed":                 {cpuset.New(3, 5, 7), map[int]float64{}, "3,7"},
	} {
		got, err := choosePinned(eight(), c.allowed, c.busy, 2)
		if err != nil || got.String() != c.want {
			t.Errorf("%s: %v, %v, want %s", name, got, err, c.want)
		}
	}
	if _, err := choosePinned(eight(), cpuset.New(1), nil, 2); err == nil {
		t.Error("2 of 1 CPU were chosen")
	}
}

func TestSizes(t *testing.T) {
	for _, c := range []struct{ online, quota, burners int }{{1, 1, 32}, {2, 1, 32}, {3, 1, 32}, {4, 2, 32}, {16, 2, 32}, {64, 2, 128}} {
		if quotaCPUs(c.online) != c.quota || burners(c.online) != c.burners {
			t.Errorf("%d CPUs: quota %d, burners %d", c.online, quotaCPUs(c.online), burners(c.online))
		}
	}
}
