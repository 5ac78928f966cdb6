package numa

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/test/lab/require"
)

func TestParseMappings(t *testing.T) {
	all, err := parseMappings(strings.NewReader(`55d0 default file=/usr/bin/x mapped=9 N0=9 kernelpagesize_kB=4
7f10 default anon=12 dirty=12 N0=8 N1=4 kernelpagesize_kB=4
7f20 bind:0 anon=2 dirty=2 huge N1=2 kernelpagesize_kB=2048
zz default anon=1 N0=1
7f30 default
7f40 default anon=1 Nx=1 N99999=1
`))
	if err != nil || len(all) != 2 || all[0].start != 0x7f10 || all[1].size != 2<<20 {
		t.Fatalf("%+v, %v", all, err)
	}
	bytes := map[int]uint64{}
	for _, m := range all {
		for node, n := range m.pages {
			bytes[node] += n * m.size
		}
	}
	if bytes[0] != 8*4096 || bytes[1] != 4*4096+2*2<<20 {
		t.Errorf("%v", bytes)
	}
	if r, ok := Remote(map[int]uint64{0: 1, 1: 3}, []int{1}); !ok || r != 0.25 {
		t.Errorf("remote %g", r)
	}
	if r, ok := Remote(nil, []int{1}); ok {
		t.Errorf("remote %g of nothing", r)
	}
}

func FuzzParseMapping(f *testing.F) {
	f.Add("7f10 default anon=12 dirty=12 N0=8 N1=4 kernelpagesize_kB=4")
	f.Add("7f10 default anon=1 N0=99999999999999999999 kernelpagesize_kB=99999999")
	f.Fuzz(func(t *testing.T, line string) {
		m, ok := parseMapping(line)
		if ok && (m.size == 0 || len(m.pages) == 0) {
			t.Errorf("%+v", m)
		}
		for node := range m.pages {
			if node < 0 || node >= maxNodes {
				t.Errorf("node %d", node)
			}
		}
	})
}

const childEnv = "UNTHROTTLE_TEST_PAGES"

// childBytes is how much memory the child of a test has.
const childBytes = 16 << 20

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) == "" {
		os.Exit(m.Run())
	}
	memory, err := unix.Mmap(-1, 0, childBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		os.Exit(2)
	}
	for i := 0; i < len(memory); i += 4096 {
		memory[i] = 1
	}
	os.Stdout.WriteString("ready\n")
	os.Stdin.Read(make([]byte, 1))
	memory[0]++
}

// child starts a process with its own memory.
func child(t *testing.T) int {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), childEnv+"=1")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); cmd.Wait() })
	if _, err := out.Read(make([]byte, 6)); err != nil {
		t.Fatal(err)
	}
	return cmd.Process.Pid
}

// Moves all of a child's memory to each node in turn; on a machine with one node it moves nothing.
func TestMove(t *testing.T) {
	require.Root(t)
	pid := child(t)
	bytes, err := Where(pid)
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("this kernel has no NUMA")
	}
	if remote, ok := Remote(bytes, nil); err != nil || !ok || remote != 1 {
		t.Fatalf("%v, %v", bytes, err)
	}
	nodes := []int{0}
	if _, err := os.Stat("/sys/devices/system/node/node1"); err == nil {
		nodes = []int{1, 0, 1}
	}
	for _, node := range nodes {
		r, err := Move(t.Context(), pid, []int{node})
		if err != nil {
			t.Fatal(err)
		}
		bytes, err := Where(pid)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("to node %d: %+v, now %v", node, r, bytes)
		if remote, ok := Remote(bytes, []int{node}); !ok || remote > 0.02 || bytes[node] < childBytes {
			t.Errorf("node %d: %.3f is elsewhere: %v", node, remote, bytes)
		}
	}
}

// On several nodes pages do move, and moved ones are not moved again.
func TestMoveOnManyNodes(t *testing.T) {
	require.CPUs(t, 16)
	pid := child(t)
	if _, err := Move(t.Context(), pid, []int{0}); err != nil {
		t.Fatal(err)
	}
	r, err := Move(t.Context(), pid, []int{1})
	if err != nil || r.Moved == 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	if again, err := Move(t.Context(), pid, []int{1}); err != nil || again.Moved > r.Moved/50 {
		t.Errorf("again: %+v, %v", again, err)
	}
}

func TestMoveFails(t *testing.T) {
	if _, err := Move(t.Context(), os.Getpid(), nil); err == nil {
		t.Error("no node and no error")
	}
	if _, err := Move(t.Context(), 1<<22+1, []int{0}); err == nil {
		t.Error("no process and no error")
	}
}
