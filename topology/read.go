package topology

import (
	"fmt"
	"io/fs"
	"strconv"

	"k8s.io/utils/cpuset"
)

const (
	cpuDir  = "devices/system/cpu"
	nodeDir = "devices/system/node"
)

// Read reads the machine from sys, the file system of /sys; it needs no rights. If a file is missing, or the kernel is
// too old to have it, the value is Unknown. A file with content that no kernel writes is an error that names it. At
// least one of cpu/present, cpu/online or the cpuN folders must exist. If files contradict each other, the machine's
// Faults say so, and all other values are valid.
func Read(sys fs.FS) (Machine, error) {
	m, err := read(&tree{sys: sys})
	if err != nil {
		return Machine{}, fmt.Errorf("topology: %w", err)
	}
	return m, nil
}

func read(t *tree) (Machine, error) {
	present, online, err := readPresent(t)
	if err != nil {
		return Machine{}, err
	}
	isolated, _, err := t.list(cpuDir + "/isolated")
	if err != nil {
		return Machine{}, err
	}
	nodes, err := readNodes(t)
	if err != nil {
		return Machine{}, err
	}
	kinds, err := readKinds(t, present)
	if err != nil {
		return Machine{}, err
	}
	m := Machine{CPUs: make([]CPU, 0, present.Size()), NUMANodes: nodes}
	groups := newGroups(t)
	for _, id := range present.List() {
		c := CPU{ID: id, Online: online.Contains(id), Isolated: isolated.Contains(id), Kind: kinds[id]}
		if err := groups.fill(&c); err != nil {
			return Machine{}, err
		}
		m.CPUs = append(m.CPUs, c)
	}
	m.placeInNodes()
	m.keepCoresWhole()
	return m, nil
}

// readPresent returns the present CPUs and those of them that are online. On a running machine the kernel's two lists
// are never missing or empty. In other trees the cpuN folders and their own online files replace them.
func readPresent(t *tree) (present, online cpuset.CPUSet, err error) {
	present, havePresent, err := t.list(cpuDir + "/present")
	if err != nil {
		return present, online, err
	}
	online, haveOnline, err := t.list(cpuDir + "/online")
	if err != nil {
		return present, online, err
	}
	if !havePresent || present.IsEmpty() {
		if present, err = t.numbered(cpuDir, "cpu", MaxCPUs); err != nil {
			return present, online, err
		}
	}
	if !haveOnline || online.IsEmpty() {
		if online, err = onlineOneByOne(t, present); err != nil {
			return present, online, err
		}
	}
	present = present.Union(online)
	if present.IsEmpty() {
		return present, online, fmt.Errorf("%s: no CPU found in present, online or as a cpuN folder: is this a copy of /sys?", cpuDir)
	}
	return present, online, nil
}

// onlineOneByOne reads each CPU's own file. A CPU without one cannot be taken offline (CPU 0 on many machines); an
// empty file means the same.
func onlineOneByOne(t *tree, present cpuset.CPUSet) (cpuset.CPUSet, error) {
	var ids []int
	for _, id := range present.List() {
		name := cpuFolder(id) + "/online"
		text, ok, err := t.text(name)
		switch {
		case err != nil:
			return cpuset.CPUSet{}, err
		case !ok || text == "" || text == "1":
			ids = append(ids, id)
		case text != "0":
			return cpuset.CPUSet{}, fmt.Errorf("%s: %s is neither 0 nor 1", name, quote(text))
		}
	}
	return cpuset.New(ids...), nil
}

func cpuFolder(id int) string { return cpuDir + "/cpu" + strconv.Itoa(id) }
