package topology_test

import (
	"fmt"
	"testing/fstest"

	"github.com/unthrottle/unthrottle/topology"
)

// sysfs is /sys of a machine with one core of two threads in each of two sockets;
// on a real machine it is os.DirFS("/sys").
func sysfs() fstest.MapFS {
	tree := fstest.MapFS{}
	put := func(name, text string) { tree["devices/system/cpu/"+name] = &fstest.MapFile{Data: []byte(text + "\n")} }
	for _, list := range []string{"present", "online"} {
		put(list, "0-3")
	}
	for cpu, siblings := range []string{"0,2", "1,3", "0,2", "1,3"} {
		for _, file := range []string{"core_cpus_list", "package_cpus_list"} {
			put(fmt.Sprintf("cpu%d/topology/%s", cpu, file), siblings)
		}
	}
	return tree
}

func ExampleRead() {
	m, err := topology.Read(sysfs())
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, cpu := range m.CPUs {
		fmt.Printf("CPU %d: socket %d, core %d\n", cpu.ID, cpu.Socket, cpu.Core)
	}
	fmt.Println("the threads of core 1:", m.Group(topology.LevelCore, 1))
	// Output:
	// CPU 0: socket 0, core 0
	// CPU 1: socket 1, core 1
	// CPU 2: socket 0, core 0
	// CPU 3: socket 1, core 1
	// the threads of core 1: 1,3
}

func ExampleParseList() {
	cpus, err := topology.ParseList("0-3,8")
	fmt.Println(cpus.Size(), err)
	_, err = topology.ParseList("3-0")
	fmt.Println(err)
	// Output:
	// 5 <nil>
	// list "3-0": "3-0" runs backwards: write the smaller number first
}
