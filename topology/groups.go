package topology

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/utils/cpuset"
)

// maxCaches bounds the cache folders looked at per CPU. Real CPUs have 3 to 5.
const maxCaches = 16

// groups turns sibling sets into ids: equal sets, equal ids. The kernel's own
// ids are of no use here: core ids repeat in each socket, package ids may be
// -1, and one L3 can appear under several cache ids.
type groups struct {
	tree               *tree
	sockets, dies, l3s interner
	cores, clusters    interner
	l3Index            int // index of the previous CPU's L3: the same on nearly all machines
}

func newGroups(t *tree) *groups {
	return &groups{tree: t, sockets: newInterner(), dies: newInterner(), l3s: newInterner(),
		cores: newInterner(), clusters: newInterner()}
}

// fill sets the groups of one CPU from its own files.
func (g *groups) fill(c *CPU) error {
	folder := cpuFolder(c.ID) + "/topology/"
	for _, level := range []struct {
		id     *ID
		in     *interner
		number string   // the kernel's own number of the group; negative where the machine has no such level
		files  []string // the masks, the newest name first: older kernels have the later ones; lists end in _list
	}{
		{&c.Socket, &g.sockets, "", []string{"package_cpus", "core_siblings"}}, // 5.3
		{&c.Die, &g.dies, "die_id", []string{"die_cpus"}},                      // 5.2
		{&c.Cluster, &g.clusters, "cluster_id", []string{"cluster_cpus"}},      // 5.16
		{&c.Core, &g.cores, "", []string{"core_cpus", "thread_siblings"}},      // 5.3
	} {
		*level.id = Unknown
		if absent, err := g.absent(folder, level.number); err != nil {
			return err
		} else if absent {
			continue
		}
		for _, file := range level.files {
			id, err := g.siblings(level.in, c.ID, folder+file+"_list", folder+file)
			if err != nil {
				return err
			}
			if id != Unknown {
				*level.id = id
				break
			}
		}
	}
	var err error
	c.L3, err = g.l3(c.ID)
	return err
}

// absent reports whether the kernel's number of a group is negative. A machine without dies, or without clusters, has
// -1 there, and a list of the CPU alone. These are the defaults of topology_die_id and topology_die_cpumask
// (include/linux/topology.h), and of update_siblings_masks (drivers/base/arch_topology.c).
func (g *groups) absent(folder, number string) (bool, error) {
	if number == "" {
		return false, nil
	}
	text, _, err := g.tree.text(folder + number)
	return strings.HasPrefix(text, "-"), err
}

// l3 finds the CPU's unified level 3 cache.
func (g *groups) l3(cpu int) (ID, error) {
	if id, found, err := g.l3At(cpu, g.l3Index); found || err != nil {
		return id, err
	}
	for index := range maxCaches {
		if index == g.l3Index {
			continue
		}
		id, found, err := g.l3At(cpu, index)
		if err != nil {
			return Unknown, err
		}
		if found {
			g.l3Index = index
			return id, nil
		}
	}
	return Unknown, nil
}

// l3At reads one cache; found reports that it is a unified one of level 3.
func (g *groups) l3At(cpu, index int) (id ID, found bool, err error) {
	folder := cpuFolder(cpu) + "/cache/index" + strconv.Itoa(index)
	level, ok, err := g.tree.text(folder + "/level")
	if err != nil || !ok || level != "3" {
		return Unknown, false, err
	}
	kind, ok, err := g.tree.text(folder + "/type")
	if err != nil || !ok || kind != "Unified" {
		return Unknown, false, err
	}
	id, err = g.siblings(&g.l3s, cpu, folder+"/shared_cpu_list", folder+"/shared_cpu_map")
	return id, true, err
}

// siblings returns the id of the set in two files, a list and a mask. Kernels write both (define_siblings_read_func,
// drivers/base/topology.c); old ones and saved trees may have the mask alone. A set that lacks the CPU of its file,
// such as an empty one, counts as missing.
func (g *groups) siblings(in *interner, cpu int, list, mask string) (ID, error) {
	for _, file := range []struct {
		name  string
		parse func(string) (cpuset.CPUSet, error)
		in    map[string]group
	}{{list, ParseList, in.byList}, {mask, ParseMask, in.byMask}} {
		text, ok, err := g.tree.text(file.name)
		if err != nil {
			return Unknown, err
		}
		if !ok {
			continue
		}
		found, ok := file.in[text]
		if !ok {
			cpus, err := file.parse(text)
			if err != nil {
				return Unknown, fmt.Errorf("%s: %w", file.name, err)
			}
			found = in.group(cpus)
			file.in[text] = found
		}
		if found.cpus.Contains(cpu) {
			return found.id, nil
		}
	}
	return Unknown, nil
}

// group is a set of CPUs and the id given to it.
type group struct {
	id   ID
	cpus cpuset.CPUSet
}

// interner gives ids to sets. It parses each text once: 1,024 CPUs of two sockets hold the same two lists.
type interner struct {
	byList, byMask map[string]group
	byCPUs         map[string]ID // by the canonical text
}

func newInterner() interner {
	return interner{byList: map[string]group{}, byMask: map[string]group{}, byCPUs: map[string]ID{}}
}

func (in *interner) group(cpus cpuset.CPUSet) group {
	canonical := cpus.String()
	id, ok := in.byCPUs[canonical]
	if !ok {
		id = ID(len(in.byCPUs))
		in.byCPUs[canonical] = id
	}
	return group{id: id, cpus: cpus}
}
