package topology_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/unthrottle/unthrottle/topology"
)

func TestParseMask(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"", ""}, {"0\n", ""}, {"1", "0"}, {"ff\n", "0-7"}, {"3,0000000f", "0-3,32-33"}, {"00000000,00000011", "0,4"}, {"FF", "0-7"},
		{"80000000,00000000,00000000", "95"}, {strings.Repeat("0,", 255) + "1", "0"},
		{"8" + strings.Repeat("0", 7) + strings.Repeat(",0", 255), "8191"},
	} {
		got, err := topology.ParseMask(c.in)
		if err != nil || got.String() != c.want {
			t.Errorf("ParseMask(%.20q) = %v, %v; want %s", c.in, got, err, c.want)
		}
	}
	for _, c := range []struct{ in, names string }{
		{"g", `"g" is no hexadecimal`}, {"1,,2", `"" is no hexadecimal`}, {",", `""`}, {"100000000", `"100000000"`},
		{"0x1", `"0x1"`}, {"-1", `"-1"`}, {"1_0", `"1_0"`},
		{strings.Repeat("0,", 256) + "1", "257 words"},
	} {
		if _, err := topology.ParseMask(c.in); err == nil || !strings.Contains(err.Error(), c.names) {
			t.Errorf("ParseMask(%.20q): error %v does not name %s", c.in, err, c.names)
		}
	}
}

// inMasks puts masks in the place of all sibling lists, under the names of the kernel's release.
func inMasks(t *testing.T, f fstest.MapFS, names map[string]string) {
	t.Helper()
	for path, file := range f {
		for list, mask := range names {
			before, ok := strings.CutSuffix(path, "/"+list)
			if !ok {
				continue
			}
			cpuSet, err := topology.ParseList(string(file.Data))
			if err != nil {
				t.Fatal(err)
			}
			bits := uint64(0)
			for _, id := range cpuSet.List() {
				bits |= 1 << id
			}
			delete(f, path)
			set(f, before+"/"+mask, fmt.Sprintf("00000000,%08x\n", bits))
		}
	}
}

// TestMasks reads machines whose kernel, or whose saved tree, has masks instead of lists.
func TestMasks(t *testing.T) {
	caches := map[string]string{"shared_cpu_list": "shared_cpu_map", "cpulist": "cpumap"}
	for _, c := range []struct {
		name  string
		names map[string]string
		want  groupCounts
	}{
		{"of old kernels", map[string]string{"core_cpus_list": "thread_siblings", "package_cpus_list": "core_siblings"},
			groupCounts{8, 2, 2, 2, 2, 4, 4}},
		{"of new ones", map[string]string{"core_cpus_list": "core_cpus", "package_cpus_list": "package_cpus", "die_cpus_list": "die_cpus",
			"cluster_cpus_list": "cluster_cpus"}, groupCounts{8, 2, 2, 2, 2, 4, 4}},
		{"of caches and nodes alone", nil, groupCounts{8, 2, 2, 2, 2, 4, 4}},
	} {
		lists, masks := small(), small()
		inMasks(t, masks, c.names)
		inMasks(t, masks, caches)
		want, err := topology.Read(lists)
		if err != nil {
			t.Fatal(err)
		}
		got, err := topology.Read(masks)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if counts := countsOf(got); counts != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, counts, c.want)
		}
		for i := range want.CPUs {
			if got.CPUs[i] != want.CPUs[i] {
				t.Errorf("%s: %+v, want %+v", c.name, got.CPUs[i], want.CPUs[i])
			}
		}
	}
}

// TestListAndMaskAlikeInSpelling reads a machine in which "10" is a CPU of one file and a mask of another.
func TestListAndMaskAlikeInSpelling(t *testing.T) {
	tree := fstest.MapFS{}
	set(tree, cpus+"present", "4,10")
	set(tree, cpus+"cpu10/topology/core_cpus_list", "10")
	set(tree, cpus+"cpu4/topology/core_cpus", "10")
	m, err := topology.Read(tree)
	if err != nil {
		t.Fatal(err)
	}
	if m.CPUs[0].Core == topology.Unknown || m.CPUs[1].Core == topology.Unknown || m.CPUs[0].Core == m.CPUs[1].Core {
		t.Errorf("%+v", m.CPUs)
	}
}

// TestNodesThatTellNothing reads nodes with neither list, mask nor links: their CPUs are not known, which
// differs from none.
func TestNodesThatTellNothing(t *testing.T) {
	tree := small()
	remove(tree, "node1/cpulist")
	set(tree, "devices/system/node/node2/cpulist", "\n")
	set(tree, "devices/system/node/node3/cpumap", "0")
	m, err := topology.Read(tree)
	if err != nil {
		t.Fatal(err)
	}
	for i, unknown := range []bool{false, true, false, false} {
		if n := m.NUMANodes[i]; n.CPUsUnknown != unknown || n.CPUs.IsEmpty() == (i == 0) {
			t.Errorf("%+v", n)
		}
	}
	if c, _ := m.CPU(2); c.NUMANode != topology.Unknown {
		t.Errorf("CPU 2 is in node %d", c.NUMANode)
	}
	if c, _ := m.CPU(1); c.NUMANode != 0 {
		t.Errorf("CPU 1 is in node %d", c.NUMANode)
	}
}

func FuzzParseMask(f *testing.F) {
	for _, s := range []string{"f", "3,0000000f", "", ",", "-1", "100000000", "ffffffff,ffffffff\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		cpus, err := topology.ParseMask(s)
		if err != nil {
			return
		}
		words := make([]uint64, topology.MaxCPUs/32)
		for _, id := range cpus.List() {
			words[id/32] |= 1 << (id % 32) // beyond the last word: an id too large
		}
		var text []string
		for i := len(words) - 1; i >= 0; i-- {
			text = append(text, strconv.FormatUint(words[i], 16))
		}
		again, err := topology.ParseMask(strings.Join(text, ","))
		if err != nil || !again.Equals(cpus) {
			t.Fatalf("%q: %s reads as %s, %v", s, cpus, again, err)
		}
	})
}
