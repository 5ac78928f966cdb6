package topology

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/utils/cpuset"
)

// levelWord is a level's name in a text of groups.
type levelWord struct {
	word  string
	level Level
}

// levelWords are the levels in a text of groups, from wide to narrow.
var levelWords = []levelWord{{"socket", LevelSocket}, {"die", LevelDie}, {"node", LevelNUMANode}, {"l3", LevelL3},
	{"cluster", LevelCluster}, {"core", LevelCore}}

// maxGroupText bounds a text of groups: 8192 cores of their own have 40 KiB.
const maxGroupText = 256 << 10

// GroupText is which online CPUs share what, in one line: small enough to be kept with each observation of a host.
// Levels that the kernel does not
// show are left out, and so are kinds of cores, distances and memory. A group has a list of CPUs at the place of its number.
//
// Worked example: two sockets of two cores of two threads are "cpus 0-7; socket 0-1,4-5|2-3,6-7; core 0,4|1,5|2,6|3,7".
func (m Machine) GroupText() string {
	online := m.Online()
	var b strings.Builder
	b.WriteString("cpus " + online.String())
	for _, l := range levelWords {
		of := map[ID][]int{}
		most := Unknown
		for _, c := range m.CPUs {
			if id := c.At(l.level); c.Online && id != Unknown {
				of[id] = append(of[id], c.ID)
				most = max(most, id)
			}
		}
		if most == Unknown {
			continue
		}
		b.WriteString("; " + l.word + " ")
		for id := range most + 1 {
			if id > 0 {
				b.WriteByte('|')
			}
			b.WriteString(cpuset.New(of[id]...).String())
		}
	}
	return b.String()
}

// ParseGroupText reads a text of [Machine.GroupText]. All its CPUs are online; a level that is not in it is [Unknown],
// and so is the group of a CPU
// that is in none. An error quotes what is wrong: a word that is no level, a CPU that is in two groups or that the
// machine lacks, too long a text.
func ParseGroupText(s string) (Machine, error) {
	if len(s) > maxGroupText {
		return Machine{}, fmt.Errorf("groups of CPUs: %d bytes, more than %d", len(s), maxGroupText)
	}
	first, rest, _ := strings.Cut(s, "; ")
	list, ok := strings.CutPrefix(first, "cpus ")
	if !ok {
		return Machine{}, fmt.Errorf("groups of CPUs %s: they begin with no list of cpus", quote(s))
	}
	online, err := ParseList(list)
	if err == nil && online.IsEmpty() {
		err = errors.New("no CPU")
	}
	if err != nil {
		return Machine{}, fmt.Errorf("groups of CPUs %s: %w", quote(s), err)
	}
	var m Machine
	at := map[int]int{}
	for i, id := range online.List() {
		m.CPUs = append(m.CPUs, CPU{ID: id, Online: true, Socket: Unknown, Die: Unknown, NUMANode: Unknown, L3: Unknown,
			Core: Unknown, Cluster: Unknown})
		at[id] = i
	}
	if rest == "" {
		return m, nil
	}
	for part := range strings.SplitSeq(rest, "; ") {
		word, lists, _ := strings.Cut(part, " ")
		i := slices.IndexFunc(levelWords, func(l levelWord) bool { return l.word == word })
		if i < 0 {
			return Machine{}, fmt.Errorf("groups of CPUs: %s is no level", quote(word))
		}
		if err := m.group(levelWords[i].level, lists, at); err != nil {
			return Machine{}, fmt.Errorf("groups of CPUs: %s: %w", word, err)
		}
	}
	return m, nil
}

// group sets the groups of one level from the lists of each. at are the places of the CPUs.
func (m *Machine) group(level Level, lists string, at map[int]int) error {
	id := ID(0)
	for list := range strings.SplitSeq(lists, "|") {
		set, err := ParseList(list)
		if err != nil {
			return err
		}
		if id >= MaxCPUs || level == LevelNUMANode && id >= MaxNUMANodes {
			return fmt.Errorf("more than %d groups", id)
		}
		for _, cpu := range set.List() {
			i, ok := at[cpu]
			if !ok {
				return fmt.Errorf("CPU %d is none of the machine's", cpu)
			}
			of := m.CPUs[i].at(level)
			if *of != Unknown {
				return fmt.Errorf("CPU %d is in two groups", cpu)
			}
			*of = id
		}
		if level == LevelNUMANode && !set.IsEmpty() {
			m.NUMANodes = append(m.NUMANodes, NUMANode{ID: int(id), CPUs: set})
		}
		id++
	}
	return nil
}
