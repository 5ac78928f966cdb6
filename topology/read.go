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

// Read reads the machine from sys, which stands for /sys; it needs no rights.
// A file that is missing, or whose kernel is too old to have it, leaves what it
// would have told Unknown. A file that holds what no kernel writes there is an
// error that names it, and so are the files without which nothing is known:
// one of cpu/present, cpu/online or the cpuN folders must be there. Where files
// contradict each other, the machine's Faults tell it, and the rest holds.
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

// readPresent returns the CPUs that are there and those of them that are
// online. Where the kernel's two lists are missing or empty, which no running
// machine's are, the cpuN folders and their own online files stand in.
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

// onlineOneByOne asks each CPU's own file. A CPU without one cannot be taken
// offline (CPU 0 on many machines); an empty one says no more.
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
