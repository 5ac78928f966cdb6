package topology_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/kernel/topologytest"
	"github.com/unthrottle/unthrottle/topology"
)

const cpus = "devices/system/cpu/"

// groupCounts are a machine's groups per level; 0: none known.
type groupCounts struct{ online, sockets, dies, nodes, l3s, clusters, cores int }

func countsOf(m topology.Machine) groupCounts {
	known := func(l topology.Level) int {
		n := 0
		for _, id := range m.Spans(l, m.Online()) {
			if id != topology.Unknown {
				n++
			}
		}
		return n
	}
	return groupCounts{m.Online().Size(), known(topology.LevelSocket), known(topology.LevelDie), known(topology.LevelNUMANode),
		known(topology.LevelL3), known(topology.LevelCluster), known(topology.LevelCore)}
}

func TestRealMachines(t *testing.T) {
	want := map[string]groupCounts{
		"desktop-20":               {20, 1, 1, 1, 1, 0, 10},
		"epyc7402":                 {42, 1, 1, 0, 0, 0, 24},
		"hybrid-16":                {16, 1, 1, 1, 1, 6, 12},
		"rpi4":                     {4, 1, 3, 0, 0, 0, 4}, // CPU 0's die list lacks CPU 0
		"scattered-80":             {80, 2, 2, 4, 2, 0, 40},
		"single-socket-many-numas": {32, 16, 16, 0, 0, 0, 16},
		"xeon-4-sockets-144":       {144, 4, 4, 4, 4, 0, 72},
		"xeon-snc2-112":            {112, 2, 2, 4, 2, 0, 56},
	}
	for _, name := range topologytest.Names(t) {
		if got := countsOf(topologytest.Machine(t, name)); got != want[name] {
			t.Errorf("%s: %+v, want %+v", name, got, want[name])
		}
	}
}

func TestHybridKinds(t *testing.T) {
	m := topologytest.Machine(t, "hybrid-16")
	for _, c := range m.CPUs {
		want := topology.KindPerformance
		if c.ID >= 8 {
			want = topology.KindEfficiency
		}
		if c.Kind != want {
			t.Errorf("CPU %d: %q, want %q", c.ID, c.Kind, want)
		}
	}
}

func TestIsolatedAndMemoryNodesWithoutCPUs(t *testing.T) {
	m := topologytest.Machine(t, "xeon-snc2-112")
	if got := m.Isolated().String(); got != "4-7,60-63" {
		t.Errorf("isolated %s", got)
	}
	n := m.NUMANodes[4]
	if n.ID != 4 || !n.CPUs.IsEmpty() || n.MemoryBytes == nil || *n.MemoryBytes>>30 != 124 {
		t.Errorf("node 4: %+v", n)
	}
	if diff := cmp.Diff([]int{17, 28, 28, 28, 10, 28}, n.Distance); diff != "" {
		t.Error(diff)
	}
}

// small is a machine of 2 sockets of 2 cores of 2 threads: cores 0,4 1,5 2,6 3,7.
func small() fstest.MapFS {
	return topologytest.Shape{Sockets: 2, CoresPerL3: 2, Threads: 2}.Tree()
}

func set(tree fstest.MapFS, path, content string) {
	tree[path] = &fstest.MapFile{Data: []byte(content), Mode: 0o444}
}

func remove(tree fstest.MapFS, parts ...string) {
	for path := range tree {
		for _, part := range parts {
			if strings.Contains(path, part) {
				delete(tree, path)
			}
		}
	}
}

// TestOddTrees reads trees that a real kernel, container or copy can show.
func TestOddTrees(t *testing.T) {
	whole := groupCounts{8, 2, 2, 2, 2, 4, 4}
	for _, c := range []struct {
		name   string
		change func(fstest.MapFS)
		want   groupCounts
	}{
		{"unchanged", func(fstest.MapFS) {}, whole},
		{"no present file", func(f fstest.MapFS) { delete(f, cpus+"present") }, whole},
		{"no online file", func(f fstest.MapFS) { delete(f, cpus+"online") }, whole},
		{"no online file, one offline", func(f fstest.MapFS) {
			delete(f, cpus+"online")
			set(f, cpus+"cpu7/online", "0\n")
			remove(f, "cpu7/topology", "cpu7/cache")
			set(f, "devices/system/node/node1/cpulist", "2-3,6\n")
		}, groupCounts{7, 2, 2, 2, 2, 4, 4}},
		{"old names of lists", func(f fstest.MapFS) {
			for id := range 8 {
				folder := cpus + "cpu" + string(rune('0'+id)) + "/topology/"
				f[folder+"core_siblings_list"], f[folder+"thread_siblings_list"] = f[folder+"package_cpus_list"], f[folder+"core_cpus_list"]
			}
			remove(f, "package_cpus_list", "core_cpus_list", "die_cpus_list", "cluster_cpus_list")
		}, groupCounts{8, 2, 0, 2, 2, 0, 4}},
		{"no caches", func(f fstest.MapFS) { remove(f, "/cache/") }, groupCounts{8, 2, 2, 2, 0, 4, 4}},
		{"level 3 not unified", func(f fstest.MapFS) {
			for id := range 8 {
				set(f, cpus+"cpu"+string(rune('0'+id))+"/cache/index3/type", "Instruction\n")
			}
		}, groupCounts{8, 2, 2, 2, 0, 4, 4}},
		{"caches in another order on one CPU", func(f fstest.MapFS) {
			for _, file := range []string{"level", "type", "shared_cpu_list"} {
				a, b := cpus+"cpu5/cache/index0/"+file, cpus+"cpu5/cache/index3/"+file
				f[a], f[b] = f[b], f[a]
			}
		}, whole},
		{"no topology", func(f fstest.MapFS) { remove(f, "/topology/") }, groupCounts{8, 0, 0, 2, 2, 0, 0}},
		{"no NUMA", func(f fstest.MapFS) { remove(f, "/node/") }, groupCounts{8, 2, 2, 0, 2, 4, 4}},
		{"only present", func(f fstest.MapFS) {
			remove(f, "/cpu0/", "/cpu1/", "/cpu2/", "/cpu3/", "/cpu4/", "/cpu5/", "/cpu6/", "/cpu7/", "/node/")
		},
			groupCounts{8, 0, 0, 0, 0, 0, 0}},
		{"node links instead of a list", func(f fstest.MapFS) {
			remove(f, "cpulist")
			for _, link := range []string{"node0/cpu0", "node0/cpu1", "node0/cpu4", "node0/cpu5", "node1/cpu2",
				"node1/cpu3", "node1/cpu6", "node1/cpu7"} {
				set(f, "devices/system/node/"+link+"/uevent", "")
			}
		}, whole},
		{"empty sibling list", func(f fstest.MapFS) { set(f, cpus+"cpu7/topology/core_cpus_list", "\n") }, whole},
		{"a list in another spelling", func(f fstest.MapFS) { set(f, cpus+"cpu4/topology/package_cpus_list", "4,5,0,1") }, whole},
		{"unreadable distance and memory", func(f fstest.MapFS) {
			set(f, "devices/system/node/node0/distance", "ten")
			set(f, "devices/system/node/node0/meminfo", "\x00")
		}, whole},
		{"a folder for a list", func(f fstest.MapFS) {
			delete(f, cpus+"isolated")
			set(f, cpus+"isolated/x", "")
		}, whole},
		{"a file for a folder", func(f fstest.MapFS) {
			remove(f, "cpu7/cache")
			set(f, cpus+"cpu7/cache", "")
		}, whole},
		{"strange neighbours", func(f fstest.MapFS) {
			delete(f, cpus+"present")
			delete(f, cpus+"online")
			for _, n := range []string{"cpu", "cpu-1", "cpu08", "cpu99999", "cpux", "cpufreq", "cpu1 "} {
				set(f, cpus+n+"/uevent", "")
			}
		}, whole},
	} {
		tree := small()
		c.change(tree)
		m, err := topology.Read(tree)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got := countsOf(m); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

func TestGarbageIsNamed(t *testing.T) {
	for _, file := range []string{cpus + "present", cpus + "online", cpus + "isolated", cpus + "cpu3/topology/core_cpus_list",
		cpus + "cpu3/cache/index3/shared_cpu_list", "devices/system/node/node1/cpulist", "devices/cpu_core/cpus"} {
		for _, garbage := range []string{"0-", "hello", "99999", "\x00\xff", strings.Repeat("1,", 50_000)} {
			tree := small()
			set(tree, file, garbage)
			_, err := topology.Read(tree)
			if err == nil || !strings.Contains(err.Error(), file) {
				t.Errorf("%s with %.10q: error %v does not name it", file, garbage, err)
			}
		}
	}
	if _, err := topology.Read(fstest.MapFS{}); err == nil || !strings.Contains(err.Error(), "is this a copy of /sys?") {
		t.Errorf("an empty tree: %v", err)
	}
}

func TestKindsByCapacity(t *testing.T) {
	for _, c := range []struct {
		capacity [8]string
		want     string // P, E or - per CPU
	}{
		{[8]string{"446", "446", "1024", "1024", "446", "446", "1024", "1024"}, "EEPPEEPP"},
		{[8]string{"1024", "1024", "1024", "1024", "1024", "1024", "1024", "1024"}, "--------"},
		{[8]string{"300", "300", "700", "700", "300", "300", "1024", "1024"}, "EEPPEEPP"},
		{[8]string{"446", "x", "1024", "", "446", "-3", "1024", "0"}, "E-P-E-P-"},
		{[8]string{"718", "731", "997", "1024", "718", "731", "1000", "1024"}, "EEPPEEPP"},
		{[8]string{"1024", "1009", "1018", "1000", "1024", "1024", "1021", "997"}, "--------"},
		{[8]string{"300", "320", "620", "1024", "300", "310", "640", "1024"}, "EEPPEEPP"},
		{[8]string{"820", "1024", "820", "1024", "820", "1024", "820", "1024"}, "--------"},
		{[8]string{"819", "1024", "819", "1024", "819", "1024", "819", "1024"}, "EPEPEPEP"},
		{[8]string{}, "--------"},
	} {
		tree := small()
		for id, text := range c.capacity {
			set(tree, cpus+"cpu"+string(rune('0'+id))+"/cpu_capacity", text)
		}
		m, err := topology.Read(tree)
		if err != nil {
			t.Fatal(err)
		}
		if got := kindsOf(m); got != c.want {
			t.Errorf("%v: %s, want %s", c.capacity, got, c.want)
		}
	}
}

// kindsOf shows a machine's kinds as P, E or - per CPU.
func kindsOf(m topology.Machine) string {
	kinds := ""
	for _, cpu := range m.CPUs {
		kinds += map[topology.Kind]string{topology.KindPerformance: "P", topology.KindEfficiency: "E", topology.KindUnknown: "-"}[cpu.Kind]
	}
	return kinds
}

// TestKindsByModel reads machines whose CPUs name their models.
func TestKindsByModel(t *testing.T) {
	const (
		x925     = "0x00000000410fd850\n"
		x925r1   = "0x00000000411fd851\n"
		a725     = "0x00000000410fd870\n"
		a520     = "0x00000000410fd800\n"
		atFault  = "0xg"
		notThere = ""
	)
	for _, c := range []struct {
		name     string
		capacity [8]int
		model    [8]string
		want     string
	}{
		{"GB10", [8]int{718, 731, 997, 1024, 718, 718, 1009, 1024}, [8]string{a725, a725, x925, x925, a725, a725, x925, x925}, "EEPPEEPP"},
		{"models closer than clocks", [8]int{600, 800, 850, 900, 600, 800, 850, 900},
			[8]string{a725, a725, x925, x925, a725, a725, x925, x925}, "EEPPEEPP"},
		{"a revision is no model", [8]int{1000, 1024, 1000, 1024, 1000, 1024, 1000, 1024},
			[8]string{x925, x925r1, x925, x925r1, x925, x925r1, x925, x925r1}, "--------"},
		{"one model, two clocks", [8]int{512, 1024, 512, 1024, 512, 1024, 512, 1024},
			[8]string{a520, a520, a520, a520, a520, a520, a520, a520}, "EPEPEPEP"},
		{"three models", [8]int{300, 300, 700, 1024, 300, 300, 690, 1024},
			[8]string{a520, a520, a725, x925, a520, a520, a725, x925}, "EEPPEEPP"},
		{"models of one speed", [8]int{1024, 1024, 1024, 1024, 1024, 1024, 1024, 1024},
			[8]string{a725, x925, a725, x925, a725, x925, a725, x925}, "--------"},
		{"some unreadable", [8]int{718, 731, 997, 1024, 718, 731, 997, 1024},
			[8]string{a725, a725, x925, x925, notThere, atFault, notThere, atFault}, "EEPPEEPP"},
	} {
		tree := small()
		eachCPU(tree, "cpu_capacity", func(id int) string { return strconv.Itoa(c.capacity[id]) })
		eachCPU(tree, "regs/identification/midr_el1", func(id int) string { return c.model[id] })
		m, err := topology.Read(tree)
		if err != nil {
			t.Fatal(err)
		}
		if got := kindsOf(m); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestUnusualNumbers(t *testing.T) {
	m := topologytest.Shape{Sockets: 2, NodesPerSocket: 2, CoresPerL3: 3, Threads: 2, FirstCPU: 5, NodeStep: 4,
		Offline: cpuset.New(7, 19), Gone: cpuset.New(28)}.Machine(t)
	if m.CPUs[0].ID != 5 || m.CPUs[len(m.CPUs)-1].ID != 27 {
		t.Errorf("CPUs %s", m.Present())
	}
	if got := m.Online().String(); got != "5-6,8-18,20-27" {
		t.Errorf("online %s", got)
	}
	for _, c := range m.CPUs {
		if !c.Online && (c.Socket != topology.Unknown || c.Core != topology.Unknown || c.NUMANode != topology.Unknown) {
			t.Errorf("offline CPU %d: %+v", c.ID, c)
		}
		if c.Online && c.NUMANode%4 != 0 {
			t.Errorf("CPU %d: node %d", c.ID, c.NUMANode)
		}
	}
	if c, _ := m.CPU(27); c.NUMANode != 12 || c.Socket != 1 {
		t.Errorf("CPU 27: %+v", c)
	}
	if _, ok := m.CPU(28); ok {
		t.Error("CPU 28 is present")
	}
}

// counted counts the files opened.
type counted struct {
	fs.FS
	opened map[string]int
}

func (c counted) Open(name string) (fs.File, error)     { c.opened[name]++; return c.FS.Open(name) }
func (c counted) Stat(name string) (fs.FileInfo, error) { return fs.Stat(c.FS, name) }

// Test1024CPUs reads a large machine, each file at most once.
func Test1024CPUs(t *testing.T) {
	tree := counted{topologytest.Shape{Sockets: 4, NodesPerSocket: 2, L3sPerNode: 8, CoresPerL3: 8, Threads: 2}.Tree(), map[string]int{}}
	m, err := topology.Read(tree)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := countsOf(m), (groupCounts{1024, 4, 4, 8, 64, 512, 512}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	total := 0
	for name, n := range tree.opened {
		if n > 1 {
			t.Errorf("%s opened %d times", name, n)
		}
		total += n
	}
	if most := 8 * 1024; total > most {
		t.Errorf("%d files opened, at most %d expected", total, most)
	}
}

func TestThisMachine(t *testing.T) {
	m, err := topology.Read(os.DirFS("/sys"))
	if err != nil {
		t.Skip(err)
	}
	text, err := os.ReadFile("/sys/devices/system/cpu/online")
	if err != nil {
		t.Skip(err)
	}
	if want := strings.TrimSpace(string(text)); m.Online().String() != want {
		t.Errorf("online %s, the kernel says %s", m.Online(), want)
	}
}

func FuzzRead(f *testing.F) {
	var files []string
	for path := range small() {
		files = append(files, path)
	}
	for _, file := range []string{"topology/die_id", "topology/core_cpus", "topology/core_siblings",
		"cache/index3/shared_cpu_map", "cpu_capacity",
		"regs/identification/midr_el1"} {
		files = append(files, cpus+"cpu3/"+file)
	}
	files = append(files, "devices/system/node/node1/cpumap")
	f.Add(0, 1, []byte("0-3"), []byte("garbage"))
	f.Add(5, 9, []byte(""), []byte("0-8191"))
	f.Fuzz(func(t *testing.T, a, b int, contentA, contentB []byte) {
		tree := small()
		paths := sorted(files)
		set(tree, paths[abs(a)%len(paths)], string(contentA))
		set(tree, paths[abs(b)%len(paths)], string(contentB))
		m, err := topology.Read(tree)
		if err != nil {
			return
		}
		if len(m.CPUs) > topology.MaxCPUs || len(m.NUMANodes) > topology.MaxNUMANodes {
			t.Fatalf("%d CPUs, %d nodes", len(m.CPUs), len(m.NUMANodes))
		}
		text, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		var again topology.Machine
		if err := json.Unmarshal(text, &again); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	})
}
