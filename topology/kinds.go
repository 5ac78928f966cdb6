package topology

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/utils/cpuset"
)

// readKinds distinguishes performance from efficiency CPUs; CPUs not in the map are of unknown kind. x86 names them by
// the performance counters of each (devices/cpu_core, cpu_atom, cpu_lowpower: arch/x86/events/intel/core.c). Elsewhere
// cpu_capacity and the models of Arm CPUs decide.
func readKinds(t *tree, present cpuset.CPUSet) (map[int]Kind, error) {
	kinds := map[int]Kind{}
	for _, by := range []struct {
		device string
		kind   Kind
	}{{"cpu_core", KindPerformance}, {"cpu_atom", KindEfficiency}, {"cpu_lowpower", KindEfficiency}} {
		cpus, _, err := t.list("devices/" + by.device + "/cpus")
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

// kindsByCapacity cuts the CPUs at the widest gap between their capacities: those below are the efficient ones. If the
// CPUs are of several models, all CPUs of a model count with its greatest capacity, because their clocks differ.
func kindsByCapacity(t *tree, present cpuset.CPUSet) (map[int]Kind, error) {
	capacity, err := readCapacities(t, present)
	if err != nil {
		return nil, err
	}
	models, err := readModels(t, capacity)
	if err != nil {
		return nil, err
	}
	speeds, least := slices.Collect(maps.Values(capacity)), leastGap
	if greatest := greatestOf(models, capacity); len(greatest) > 1 {
		speeds, least = slices.Collect(maps.Values(greatest)), 1
		for id, model := range models {
			capacity[id] = greatest[model]
		}
	}
	kinds := map[int]Kind{}
	below, ok := widestGap(speeds, least)
	if !ok {
		return kinds, nil
	}
	for id, c := range capacity {
		kinds[id] = KindPerformance
		if c <= below {
			kinds[id] = KindEfficiency
		}
	}
	return kinds, nil
}

// leastGap is the ratio of capacities above which CPUs of one model, or of unknown models, are of two kinds. From this
// ratio on, the scheduler considers a task that fills the slower CPU to fit the faster one (fits_capacity,
// kernel/sched/fair.c).
const leastGap = 1.25

// widestGap returns the number below the widest gap between neighbours, the
// lowest of equals; ok is false if no ratio of neighbours is above least.
func widestGap(numbers []int, least float64) (below int, ok bool) {
	slices.Sort(numbers)
	for i := 1; i < len(numbers); i++ {
		if ratio := float64(numbers[i]) / float64(numbers[i-1]); ratio > least {
			below, ok, least = numbers[i-1], true, ratio
		}
	}
	return below, ok
}

// readCapacities reads the capacity of each CPU, at most 1,024 (cpu_capacity_show, drivers/base/arch_topology.c). It
// leaves out missing ones and those that are not above 0.
func readCapacities(t *tree, present cpuset.CPUSet) (map[int]int, error) {
	capacity := map[int]int{}
	for _, id := range present.List() {
		text, _, err := t.text(cpuFolder(id) + "/cpu_capacity")
		if err != nil {
			return nil, err
		}
		if c, err := strconv.Atoi(text); err == nil && c > 0 {
			capacity[id] = c
		}
	}
	return capacity, nil
}

// modelMask takes implementer, architecture and part number from an Arm CPU's
// main id register (MIDR_CPU_MODEL_MASK, arch/arm64/include/asm/cputype.h).
const modelMask = 0xff0ffff0

// readModels reads the model of each CPU that has a capacity, if the kernel shows it: on arm64, of online CPUs
// (arch/arm64/kernel/cpuinfo.c).
func readModels(t *tree, capacity map[int]int) (map[int]uint64, error) {
	models := map[int]uint64{}
	for _, id := range slices.Sorted(maps.Keys(capacity)) {
		text, _, err := t.text(cpuFolder(id) + "/regs/identification/midr_el1")
		if err != nil {
			return nil, err
		}
		digits, hex := strings.CutPrefix(text, "0x")
		if midr, err := strconv.ParseUint(digits, 16, 64); hex && err == nil {
			models[id] = midr & modelMask
		}
	}
	return models, nil
}

// greatestOf returns the greatest capacity among the CPUs of each model.
func greatestOf(models map[int]uint64, capacity map[int]int) map[uint64]int {
	greatest := map[uint64]int{}
	for id, model := range models {
		greatest[model] = max(greatest[model], capacity[id])
	}
	return greatest
}
