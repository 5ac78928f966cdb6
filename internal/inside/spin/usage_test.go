package spin

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestInSight(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  []int // beside this process
	}{
		"v2": {map[string]string{"self": "0::/a\n", "7": "0::/a\n", "8": "0::/a/b\n", "9": "0::/ab\n",
			"x": "0::/a\n"}, []int{7, 8}},
		"namespace": {map[string]string{"self": "0::/\n", "7": "0::/x\n"}, []int{7}},
		"v1": {map[string]string{"self": "3:cpuset:/q\n2:cpu,cpuacct:/a\n",
			"7": "3:cpuset:/r\n2:cpu,cpuacct:/a\n", "8": "2:cpu,cpuacct:/\n"}, []int{7}},
		"mixed":      {map[string]string{"self": "1:cpu:/a\n0::/u\n", "7": "1:cpu:/a\n0::/v\n", "8": "1:cpu:/b\n0::/u\n"}, []int{7}},
		"nothing":    {map[string]string{"7": "0::/\n"}, nil},
		"no cgroups": {map[string]string{"self": "", "7": "broken"}, nil},
	} {
		proc := t.TempDir()
		for pid, text := range c.files {
			if err := os.Mkdir(filepath.Join(proc, pid), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(proc, pid, "cgroup"), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got := inSight(proc)
		if len(got) == 0 || got[0] != os.Getpid() || !slices.Equal(got[1:], c.want) && len(got[1:])+len(c.want) > 0 {
			t.Errorf("%s: %v, want this process and %v", name, got, c.want)
		}
	}
}

// An account counts from when each process was first seen, and keeps what one that has ended used.
func TestAccount(t *testing.T) {
	var a account
	a.see([]int{os.Getpid()})
	before := a.used()
	for x, began := 1, ownUsage(); ownUsage() == began; x++ {
		_ = x
	}
	if a.used() <= before {
		t.Error("this process used nothing")
	}
	const none = 1<<22 + 1 // above the highest process number
	a.see([]int{os.Getpid(), none})
	if n := len(*a.of.Load()); n != 1 {
		t.Errorf("%d processes", n)
	}
	ended := &process{pid: none, first: 5}
	ended.last.Store(12)
	only := []*process{ended}
	a.of.Store(&only)
	busy := &process{pid: none + 1, first: 5}
	busy.last.Store(20)
	both := []*process{ended, busy}
	var other account
	other.of.Store(&both)
	if got := []int{other.busiest(0), other.busiest(none + 1), a.busiest(none)}; !slices.Equal(got, []int{none + 1, none, 0}) {
		t.Errorf("busiest beside none, beside the busiest, and beside the only one: %v", got)
	}
	if used := a.used(); used != 7 {
		t.Errorf("a process that has ended: %d, want 7", used)
	}
}
