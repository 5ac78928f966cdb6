package topologytest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/topology"
)

// Shape describes a generated machine. Sizes of 0 mean 1.
type Shape struct {
	Sockets          int
	NodesPerSocket   int // NUMA nodes
	L3sPerNode       int
	NodesShareL3     bool // one L3 per socket, which its NUMA nodes share
	CoresPerL3       int  // per NUMA node where nodes share an L3
	Threads          int  // per core
	SiblingsTogether bool // threads of a core numbered one after the other, not half the machine apart
	FirstCPU         int
	Offline          cpuset.CPUSet
	Isolated         cpuset.CPUSet
	Gone             cpuset.CPUSet // not even present, for sockets of different size
	NodeStep         int           // distance between node numbers
}

// Machine makes the machine.
func (s Shape) Machine(t testing.TB) topology.Machine {
	t.Helper()
	return read(t, s.Tree())
}

// made is one CPU of a generated machine.
type made struct{ id, socket, node, l3, core int }

// Tree makes the machine's /sys.
func (s Shape) Tree() fstest.MapFS {
	tree := fstest.MapFS{}
	shown := s.cpus()
	present := listOf(shown, func(made) bool { return true })
	put(tree, "devices/system/cpu/present", present.String())
	put(tree, "devices/system/cpu/online", present.Difference(s.Offline).String())
	put(tree, "devices/system/cpu/isolated", s.Isolated.String())
	online := slices.DeleteFunc(slices.Clone(shown), func(c made) bool { return s.Offline.Contains(c.id) })
	for _, c := range shown {
		folder := "devices/system/cpu/cpu" + strconv.Itoa(c.id)
		put(tree, folder+"/uevent", "DRIVER=processor")
		if s.Offline.Contains(c.id) {
			put(tree, folder+"/online", "0")
			continue
		}
		sharing := func(same func(made) bool) string { return listOf(online, same).String() }
		core := sharing(func(o made) bool { return o.core == c.core })
		socket := sharing(func(o made) bool { return o.socket == c.socket })
		put(tree, folder+"/topology/core_cpus_list", core)
		put(tree, folder+"/topology/package_cpus_list", socket)
		put(tree, folder+"/topology/die_cpus_list", socket)
		put(tree, folder+"/topology/cluster_cpus_list", core)
		l3 := sharing(func(o made) bool { return o.l3 == c.l3 })
		for i, cache := range []struct{ level, kind, list string }{
			{"1", "Data", core}, {"1", "Instruction", core}, {"2", "Unified", core}, {"3", "Unified", l3}} {
			index := fmt.Sprintf("%s/cache/index%d/", folder, i)
			put(tree, index+"level", cache.level)
			put(tree, index+"type", cache.kind)
			put(tree, index+"shared_cpu_list", cache.list)
		}
	}
	s.putNodes(tree, online)
	return tree
}

func (s Shape) putNodes(tree fstest.MapFS, online []made) {
	step := or1(s.NodeStep)
	nodes := or1(s.Sockets) * or1(s.NodesPerSocket)
	for n := range nodes {
		folder := "devices/system/node/node" + strconv.Itoa(n*step)
		put(tree, folder+"/cpulist", listOf(online, func(c made) bool { return c.node == n }).String())
		put(tree, folder+"/meminfo", fmt.Sprintf("Node %d MemTotal:       16777216 kB", n*step))
		var distances []string
		for other := range nodes {
			switch {
			case other == n:
				distances = append(distances, "10")
			case other/or1(s.NodesPerSocket) == n/or1(s.NodesPerSocket):
				distances = append(distances, "12")
			default:
				distances = append(distances, "21")
			}
		}
		put(tree, folder+"/distance", strings.Join(distances, " "))
	}
}

// cpus lists the machine's CPUs, ascending by id.
func (s Shape) cpus() []made {
	sockets, perSocket, threads := or1(s.Sockets), or1(s.NodesPerSocket), or1(s.Threads)
	l3s, perL3 := or1(s.L3sPerNode), or1(s.CoresPerL3)
	cores := sockets * perSocket * l3s * perL3
	var shown []made
	for core := range cores {
		c := made{core: core, l3: core / perL3, node: core / perL3 / l3s}
		c.socket = c.node / perSocket
		if s.NodesShareL3 {
			c.l3 = c.socket
		}
		for thread := range threads {
			c.id = s.FirstCPU + core + thread*cores
			if s.SiblingsTogether {
				c.id = s.FirstCPU + core*threads + thread
			}
			if !s.Gone.Contains(c.id) {
				shown = append(shown, c)
			}
		}
	}
	slices.SortFunc(shown, func(a, b made) int { return a.id - b.id })
	return shown
}

func or1(n int) int { return max(n, 1) }

func listOf(cpus []made, keep func(made) bool) cpuset.CPUSet {
	var ids []int
	for _, c := range cpus {
		if keep(c) {
			ids = append(ids, c.id)
		}
	}
	return cpuset.New(ids...)
}
