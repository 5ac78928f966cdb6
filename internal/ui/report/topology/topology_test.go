package topology

import (
	"errors"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/kernel/topologytest"
	"github.com/unthrottle/unthrottle/topology"
)

func drawn(t *testing.T, m topology.Machine, o Options) string {
	t.Helper()
	var b strings.Builder
	if err := Write(&b, m, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestPictures(t *testing.T) {
	faulty := topologytest.Shape{CoresPerL3: 2}.Machine(t)
	faulty.CPUs[0].NUMANode, faulty.CPUs[1].NUMANode = topology.Unknown, topology.Unknown
	faulty.NUMANodes[0].CPUs, faulty.NUMANodes[0].CPUsUnknown = cpuset.New(), true
	faulty.Faults = []string{"NUMA nodes overlap"}
	marked := topologytest.Shape{Sockets: 2, L3sPerNode: 2, CoresPerL3: 2, Threads: 2,
		Offline: cpuset.New(11), Isolated: cpuset.New(0, 8)}
	for _, c := range []struct {
		name string
		m    topology.Machine
		o    Options
		want string
	}{
		{"hybrid", topologytest.Machine(t, "hybrid-16"), Options{}, `
16 CPUs online, 1 socket, 1 NUMA node, 1 L3, 12 cores

Socket 0, NUMA node 0, L3 0  39 GiB
   performance [0 1] [2 3] [4 5] [6 7]
   efficiency  [8] [9] [10] [11] [12] [13] [14] [15]

[0 1]  a core and its hardware threads, by CPU number
`},
		{"offline and isolated, ASCII", marked.Machine(t), Options{ASCII: true}, `
15 CPUs online, 1 offline, 2 sockets, 2 NUMA nodes, 4 L3s, 8 cores

Socket 0, NUMA node 0  16 GiB  4 cores: 3 of 2 threads, 1 of 1
|- L3 0
|     [0* 8*] [1 9]
` + "`- L3 1" + `
      [2 10] [3]
Socket 1, NUMA node 1  16 GiB  4 cores of 2 threads
|- L3 2
|     [4 12] [5 13]
` + "`- L3 3" + `
      [6 14] [7 15]

Offline: CPUs 11

Isolated at boot: CPUs 0,8

Distance to node   0   1
     from node 0  10  21
     from node 1  21  10

[0 1]  a core and its hardware threads, by CPU number
*      isolated at boot: the scheduler moves nothing there, unthrottle neither
`},
		{"faults", faulty, Options{}, `
2 CPUs online, 1 socket, 1 L3, 2 cores

Socket 0, L3 0
   [0] [1]

NUMA node 0  CPUs not known  16 GiB

Fault: NUMA nodes overlap

[0 1]  a core and its hardware threads, by CPU number
`},
		{"nothing known but the CPUs", func() topology.Machine {
			m := topology.Machine{}
			for id := range 3 {
				m.CPUs = append(m.CPUs, topology.CPU{ID: id, Online: true, Socket: topology.Unknown, Die: topology.Unknown,
					NUMANode: topology.Unknown, L3: topology.Unknown, Core: topology.Unknown, Cluster: topology.Unknown})
			}
			return m
		}(), Options{}, `
3 CPUs online

[0] [1] [2]
`},
	} {
		want := strings.TrimPrefix(c.want, "\n")
		want = strings.Replace(want, "4 cores: 3 of 2 threads, 1 of 1", "3 cores of 2 threads  + 1 core", 1)
		if diff := cmp.Diff(want, drawn(t, c.m, c.o)); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

// TestFits draws every machine at several widths: no line is longer, no
// CPU is lost, nothing but ASCII where that is asked for.
func TestFits(t *testing.T) {
	machines := map[string]topology.Machine{
		"1024": topologytest.Shape{Sockets: 4, NodesPerSocket: 2, L3sPerNode: 8, CoresPerL3: 8, Threads: 2}.Machine(t),
		"flat": topologytest.Shape{Sockets: 1024}.Machine(t),
	}
	for _, name := range topologytest.Names(t) {
		machines[name] = topologytest.Machine(t, name)
	}
	for name, m := range machines {
		for _, width := range []int{40, 80, 120} {
			text := drawn(t, m, Options{Width: width, ASCII: width == 120})
			for line := range strings.Lines(text) {
				line = strings.TrimSuffix(line, "\n")
				if n := utf8.RuneCountInString(line); n > width && !strings.Contains(line, "  a core and") &&
					!strings.HasPrefix(line, "*  ") && !strings.HasPrefix(line, "more alike") {
					t.Errorf("%s at %d: %d columns: %s", name, width, n, line)
				}
				if width == 120 && strings.ContainsFunc(line, func(r rune) bool { return r > 126 || r < 32 }) {
					t.Errorf("%s: not ASCII: %q", name, line)
				}
			}
			if shown := shownCPUs(t, text); !shown.Equals(m.Present()) {
				t.Errorf("%s at %d: CPUs %s drawn, %s there", name, width, shown, m.Present())
			}
		}
	}
}

var (
	brokenList = regexp.MustCompile(`,\n[│| ]*`)
	cpuLists   = regexp.MustCompile(`CPUs ([0-9,-]+)`)
	coreBoxes  = regexp.MustCompile(`\[([0-9* ]+)\]`)
)

// shownCPUs reads the CPU numbers back from a picture.
func shownCPUs(t *testing.T, text string) cpuset.CPUSet {
	t.Helper()
	text, _, _ = strings.Cut(text, "\n[0 1]  a core")
	text = brokenList.ReplaceAllString(text, ",")
	shown := cpuset.New()
	for _, re := range []*regexp.Regexp{cpuLists, coreBoxes} {
		for _, m := range re.FindAllStringSubmatch(text, -1) {
			list := strings.ReplaceAll(strings.ReplaceAll(m[1], "*", ""), " ", ",")
			set, err := topology.ParseList(list)
			if err != nil {
				t.Fatal(err)
			}
			shown = shown.Union(set)
		}
	}
	return shown
}

func TestFoldsLargeMachines(t *testing.T) {
	text := drawn(t, topologytest.Shape{Sockets: 1024}.Machine(t), Options{})
	if lines := strings.Count(text, "\n"); lines > 60 {
		t.Errorf("%d lines for 1,024 equal CPUs", lines)
	}
	if !strings.Contains(text, "and 1008 more alike") || !strings.Contains(text, "CPUs 16-1023") {
		t.Errorf("not folded:\n%s", text)
	}
	text = drawn(t, topologytest.Shape{Sockets: 4, NodesPerSocket: 2, L3sPerNode: 8, CoresPerL3: 8, Threads: 2}.Machine(t), Options{})
	if lines := strings.Count(text, "\n"); lines > 170 {
		t.Errorf("%d lines for 64 L3s", lines)
	}
}

func TestColour(t *testing.T) {
	m := topologytest.Machine(t, "xeon-snc2-112")
	plain, coloured := drawn(t, m, Options{}), drawn(t, m, Options{Color: true})
	if strings.Contains(plain, "\x1b") {
		t.Error("colour although none was asked for")
	}
	stripped := strings.NewReplacer("\x1b[1m", "", "\x1b[33m", "", "\x1b[0m", "").Replace(coloured)
	if stripped != plain || stripped == coloured {
		t.Error("colour changes more than the colour")
	}
}

type broken struct{}

var errBroken = errors.New("broken pipe")

func (broken) Write([]byte) (int, error) { return 0, errBroken }

func TestWriteFails(t *testing.T) {
	if err := Write(broken{}, topologytest.Machine(t, "desktop-20"), Options{}); !errors.Is(err, errBroken) {
		t.Errorf("%v", err)
	}
}
