package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/topology"
)

// writeSysfs writes what nri-plugins reads of a machine.
func writeSysfs(dir string, m topology.Machine) error {
	w := writer{root: filepath.Join(dir, "devices/system")}
	online := m.Online()
	for name, set := range map[string]cpuset.CPUSet{"online": online, "possible": m.Present(), "present": m.Present(),
		"isolated": m.Isolated()} {
		w.put(set.String(), "cpu", name)
	}
	for device, kind := range map[string]topology.Kind{"cpu_core": topology.KindPerformance, "cpu_atom": topology.KindEfficiency} {
		var of []int
		for _, c := range m.CPUs {
			if c.Online && c.Kind == kind {
				of = append(of, c.ID)
			}
		}
		if len(of) > 0 {
			w.put(cpuset.New(of...).String(), "..", device, "cpus")
		}
	}
	number := func(id topology.ID) string { return strconv.Itoa(max(0, int(id))) }
	for _, c := range m.CPUs {
		if !c.Online {
			continue
		}
		cpu := "cpu/cpu" + strconv.Itoa(c.ID)
		siblings := cpuset.New(c.ID)
		if c.Core != topology.Unknown {
			siblings = m.Group(topology.LevelCore, c.Core).Intersection(online)
		}
		w.put(number(c.Socket), cpu, "topology/physical_package_id")
		w.put(number(c.Die), cpu, "topology/die_id")
		w.put(number(c.Cluster), cpu, "topology/cluster_id")
		w.put(number(c.Core), cpu, "topology/core_id")
		w.put(siblings.String(), cpu, "topology/core_cpus_list")
		w.put(siblings.String(), cpu, "topology/thread_siblings_list")
		w.cache(cpu, 0, 1, "Data", c.Core, siblings)
		w.cache(cpu, 1, 2, "Unified", c.Core, siblings)
		if c.L3 != topology.Unknown {
			w.cache(cpu, 2, 3, "Unified", c.L3, m.Group(topology.LevelL3, c.L3).Intersection(online))
		}
		if c.NUMANode != topology.Unknown {
			w.put("", cpu, "node"+number(c.NUMANode), "online")
		}
	}
	w.nodes(m)
	return w.err
}

type writer struct {
	root string
	err  error
}

func (w *writer) put(text string, path ...string) {
	if w.err != nil {
		return
	}
	file := filepath.Join(append([]string{w.root}, path...)...)
	if w.err = os.MkdirAll(filepath.Dir(file), 0o755); w.err == nil {
		w.err = os.WriteFile(file, []byte(text+"\n"), 0o644)
	}
}

func (w *writer) cache(cpu string, index, level int, kind string, id topology.ID, set cpuset.CPUSet) {
	folder := fmt.Sprintf("%s/cache/index%d", cpu, index)
	w.put(strconv.Itoa(max(0, int(id))), folder, "id")
	w.put(strconv.Itoa(level), folder, "level")
	w.put(kind, folder, "type")
	w.put("1024K", folder, "size")
	w.put(set.String(), folder, "shared_cpu_list")
}

func (w *writer) nodes(m topology.Machine) {
	var all, cpus []int
	for _, n := range m.NUMANodes {
		all = append(all, n.ID)
		if !n.CPUs.IsEmpty() {
			cpus = append(cpus, n.ID)
		}
		folder := "node/node" + strconv.Itoa(n.ID)
		w.put(n.CPUs.String(), folder, "cpulist")
		w.put(strings.Trim(fmt.Sprint(n.Distance), "[]"), folder, "distance")
		w.put(fmt.Sprintf("Node %d MemTotal:       16777216 kB\nNode %d MemFree:        16777216 kB", n.ID, n.ID), folder, "meminfo")
	}
	for name, ids := range map[string][]int{"online": all, "has_memory": all, "has_normal_memory": all, "has_cpu": cpus} {
		w.put(cpuset.New(ids...).String(), "node", name)
	}
}
