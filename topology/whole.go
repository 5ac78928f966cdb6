package topology

// keepCoresWhole makes every level hold whole cores. The threads of a core share every wider level, so an unknown group
// is that of the siblings. A level that separates siblings is narrower than the core, and so no level of this machine.
// If the kernel knows no dies or clusters, they are the hardware thread itself (include/linux/topology.h). For NUMA
// nodes it is a fault: x86 refuses such siblings (topology_sane, arch/x86/kernel/smpboot.c).
func (m *Machine) keepCoresWhole() {
	for _, level := range []Level{LevelSocket, LevelDie, LevelNUMANode, LevelL3, LevelCluster} {
		of, cut := m.groupsOfCores(level)
		if cut && level == LevelNUMANode {
			m.forgetNodes("the threads of a core are in several NUMA nodes")
			continue
		}
		for i := range m.CPUs {
			c := &m.CPUs[i]
			id := c.at(level)
			if group, ok := of[c.Core]; cut {
				*id = Unknown
			} else if ok && c.Online && *id == Unknown {
				*id = group
			}
		}
	}
}

// groupsOfCores returns the group of each core at a level, where it is known;
// cut is true if the online threads of a core are in several.
func (m *Machine) groupsOfCores(level Level) (of map[ID]ID, cut bool) {
	of = map[ID]ID{}
	for _, c := range m.CPUs {
		id := c.At(level)
		if !c.Online || c.Core == Unknown || id == Unknown {
			continue
		}
		if other, ok := of[c.Core]; ok && other != id {
			return nil, true
		}
		of[c.Core] = id
	}
	return of, false
}
