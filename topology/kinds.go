package topology

import (
	"strconv"

	"k8s.io/utils/cpuset"
)

// readKinds tells performance from efficiency CPUs; CPUs not in the map are of
// unknown kind. x86 names them by the performance counters of each
// (devices/cpu_core, cpu_atom, cpu_lowpower: arch/x86/events/intel/core.c);
// elsewhere unequal cpu_capacity tells, the least being efficiency.
func readKinds(t *tree, present cpuset.CPUSet) (map[int]Kind, error) {
	kinds := map[int]Kind{}
	for _, by := range []struct {
		device string
		kind   Kind
	}{{"cpu_core", KindPerformance}, {"cpu_atom", KindEfficiency}, {"cpu_lowpower", KindEfficiency}} {
		cpus, _, err := t.list("devices/"+by.device+"/cpus", MaxCPUs)
		if err != nil {
			return nil, err
		}
		for _, id := range cpus.UnsortedList() {
			kinds[id] = by.kind
		}
	}
	if len(kinds) > 0 {
		return kinds, nil
	}
	return kindsByCapacity(t, present)
}

func kindsByCapacity(t *tree, present cpuset.CPUSet) (map[int]Kind, error) {
	capacity := map[int]int{}
	least, most := 0, 0
	for _, id := range present.List() {
		text, ok, err := t.text(cpuFolder(id) + "/cpu_capacity")
		if err != nil {
			return nil, err
		}
		c, err := strconv.Atoi(text)
		if !ok || err != nil || c <= 0 {
			continue // not said, or nothing that a kind can rest on
		}
		if len(capacity) == 0 || c < least {
			least = c
		}
		most = max(most, c)
		capacity[id] = c
	}
	kinds := map[int]Kind{}
	if least == most {
		return kinds, nil
	}
	for id, c := range capacity {
		kinds[id] = KindPerformance
		if c == least {
			kinds[id] = KindEfficiency
		}
	}
	return kinds, nil
}
