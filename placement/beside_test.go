package placement

import (
	"errors"
	"testing"

	"k8s.io/utils/cpuset"
	"pgregory.net/rapid"

	"github.com/unthrottle/unthrottle/internal/kernel/topologytest"
)

// The other containers run on the reserve. Every other CPU may be exclusive, on two
// CPUs as on many, and an owner of CPUs keeps them.
func TestPlaceBeside(t *testing.T) {
	two := topologytest.Shape{CoresPerL3: 2}.Machine(t)
	eight := topologytest.Shape{CoresPerL3: 4, Threads: 2, SiblingsTogether: true}.Machine(t)
	a := Container{Name: "a", CPUs: 1, Current: cpuset.New(1)}
	for name, tc := range map[string]struct {
		s    State
		c    Container
		want string
	}{
		"the last CPU but the reserve": {State{Machine: two, Reserved: cpuset.New(0)}, Container{CPUs: 1}, "1"},
		"a whole core":                 {State{Machine: eight, Reserved: cpuset.New(0)}, Container{CPUs: 2, FullCores: true}, "2-3"},
		"all but the reserve":          {State{Machine: eight, Reserved: cpuset.New(0, 1)}, Container{CPUs: 6}, "2-7"},
		"siblings that idle": {State{Machine: eight, Reserved: cpuset.New(0, 1)},
			Container{CPUs: 3, IdleSiblings: true}, "2,4,6"},
		"beside another": {State{Machine: eight, Reserved: cpuset.New(0), Containers: []Container{a}},
			Container{CPUs: 6}, "2-7"},
		"the least busy": {State{Machine: eight, Load: map[int]float64{0: 1, 1: 1, 2: 1, 3: 1}},
			Container{CPUs: 2, Class: Floating}, "4,6"},
	} {
		got, err := PlaceBeside(tc.s, tc.s.Reserved.Size(), tc.c)
		if err != nil || got.CPUs.String() != tc.want || got.Why == "" {
			t.Errorf("%s: %s (%s), %v, want %s", name, got.CPUs, got.Why, err, tc.want)
		}
	}
	for name, tc := range map[string]struct {
		s    State
		c    Container
		free int
		odd  bool // the cores are the trouble
	}{
		"no reserve, and the pool needs one": {State{Machine: two}, Container{CPUs: 2}, 1, false},
		"more than there is":                 {State{Machine: eight, Reserved: cpuset.New(0, 1)}, Container{CPUs: 7}, 6, false},
		"no whole core": {State{Machine: eight, Reserved: cpuset.New(0, 2, 4, 6)},
			Container{CPUs: 2, FullCores: true}, 4, true},
		"an odd number of threads": {State{Machine: eight, Reserved: cpuset.New(0)},
			Container{CPUs: 3, FullCores: true}, 7, true},
		"shared ones that are not there": {State{Machine: two, Reserved: cpuset.New(0)},
			Container{CPUs: 2, Class: Floating}, 1, false},
		"not enough cores for idle siblings": {State{Machine: eight, Reserved: cpuset.New(0)},
			Container{CPUs: 5, IdleSiblings: true}, 7, true},
		"what a floating one needs is spared": {
			State{Machine: eight, Containers: []Container{{CPUs: 4, Class: Floating, Current: cpuset.New(4, 5, 6, 7)}}},
			Container{CPUs: 5}, 4, false},
	} {
		few := new(TooFewError)
		if got, err := PlaceBeside(tc.s, tc.s.Reserved.Size(), tc.c); !errors.As(err, &few) || few.Free != tc.free ||
			(few.WholeCores || few.Idle) != tc.odd {
			t.Errorf("%s: %s, %+v, %v", name, got.CPUs, few, err)
		}
	}
	if _, err := PlaceBeside(State{Machine: two}, 0, Container{CPUs: -1}); err == nil {
		t.Error("less than nothing was given")
	}
}

// What is given was free, is as much as was asked for, and leaves the pool or the
// reserve a CPU.
func TestPlaceBesideGivesWhatIsFree(t *testing.T) {
	m := topologytest.Shape{Sockets: 2, CoresPerL3: 4, Threads: 2, SiblingsTogether: true}.Machine(t)
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) cpuset.CPUSet {
			return cpuset.New(rapid.SliceOfNDistinct(rapid.IntRange(0, 15), 0, 8, rapid.ID[int]).Draw(t, name)...)
		}
		s := State{Machine: m, Reserved: draw("reserved"), Unavailable: draw("unavailable")}
		taken := s.Reserved.Union(s.Unavailable)
		other := draw("another's").Difference(taken)
		if !other.IsEmpty() {
			s.Containers = []Container{{Name: "other", CPUs: float64(other.Size()), Current: other}}
		}
		n := rapid.IntRange(1, 12).Draw(t, "n")
		c := Container{Name: "new", CPUs: float64(n), FullCores: rapid.Bool().Draw(t, "full")}
		spare := s.Reserved.Difference(s.Unavailable).Size()
		got, err := PlaceBeside(s, spare, c)
		left := m.Online().Difference(taken).Difference(other).Difference(got.Own)
		if few := new(TooFewError); err != nil && !errors.As(err, &few) {
			t.Fatal(err)
		}
		if err == nil && (got.Own.Size() != n || !got.Own.Intersection(taken.Union(other)).IsEmpty() ||
			left.IsEmpty() && spare == 0) {
			t.Fatalf("%s of %+v", got.Own, s)
		}
	})
}
