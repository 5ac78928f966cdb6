package placement_test

import (
	"fmt"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/placement"
	"github.com/unthrottle/unthrottle/topology"
)

// twoSockets has 2 sockets of 10 cores each: the machine of the package comment.
func twoSockets() topology.Machine {
	var m topology.Machine
	for cpu := range 20 {
		id := topology.ID(cpu)
		m.CPUs = append(m.CPUs, topology.CPU{
			ID: cpu, Online: true, Core: id, Socket: id / 10, NUMANode: id / 10, L3: id / 10,
			Die: topology.Unknown, Cluster: topology.Unknown,
		})
	}
	return m
}

// Socket 1 has room for 4 CPUs, so nothing is spread over both.
func ExamplePlace() {
	state := placement.State{
		Machine:     twoSockets(),
		Reserved:    cpuset.New(0),
		Unavailable: cpuset.New(1, 2, 3, 4, 5, 6, 7),
	}
	placed, err := placement.Place(state, placement.Container{Name: "db", CPUs: 4})
	fmt.Println(placed.Own, err)
	fmt.Println(placed.Why)
	_, err = placement.Place(state, placement.Container{Name: "big", CPUs: 16})
	fmt.Println(err)
	// Output:
	// 10-13 <nil>
	// in L3 1
	// placement: 16 CPUs wanted, 11 free of 20 online, beside 1 that the shared pool keeps: ask for fewer, or give exclusive CPUs back first
}

// A node keeps what it knows between arrivals and departures.
func ExampleNode() {
	node, _, err := placement.NewNode(placement.State{Machine: twoSockets(), Reserved: cpuset.New(0)})
	if err != nil {
		fmt.Println(err)
		return
	}
	web, _ := node.Arrive(placement.Container{Name: "web", CPUs: 6})
	node.Arrive(placement.Container{Name: "db", CPUs: 6})
	for _, c := range node.Containers() {
		fmt.Println(c.Name, c.Own, c.Why)
	}
	node.Leave(web)
	fmt.Println("shared pool:", node.Pool())
	// Output:
	// web 1-6 in L3 0
	// db 10-15 in L3 1
	// shared pool: 1-9,16-19
}
