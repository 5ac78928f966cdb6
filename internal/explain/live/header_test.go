package live

import (
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/explain/threadpool"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/load/cgrouptest"
	"github.com/unthrottle/unthrottle/internal/see/recording"
	"github.com/unthrottle/unthrottle/test/lab/require"
)

// A recording knows the quotas inside its container: their threads are held back by them.
func TestTheHeaderHasTheQuotasInside(t *testing.T) {
	require.Root(t)
	tree := cgrouptest.New(t)
	machine := tree.Make("machine")
	tree.Make("machine/emulator")
	inner := tree.Make("machine/vcpu0")
	tree.Limit(inner, 0.25)
	group, err := tree.Host.Group(machine)
	if err != nil {
		t.Fatal(err)
	}
	var h recording.Header
	Options{Root: fstest.MapFS{}, Host: tree.Host, Target: container.Container{Group: group}}.completeLevels(&h)
	id, err := tree.Host.ID(cgroup.CPU, inner)
	if err != nil || len(h.SubLevels) != 1 || h.SubLevels[0].Path != inner || h.SubLevels[0].ID != id || h.SubLevels[0].QuotaNS == nil {
		t.Errorf("levels below: %+v, %v", h.SubLevels, err)
	}
}

// A container's age is that at the beginning of the recording, however long the look at its processes took.
func TestTheAgeIsOfTheBeginning(t *testing.T) {
	const age, look = 25 * time.Second, 8 * time.Second
	at := time.Date(2026, 3, 4, 3, 12, 0, 0, time.UTC)
	h := recording.Header{Created: at.Add(look)}
	Options{Root: fstest.MapFS{}, age: new(age), agedAt: at}.completeProcesses(&h)
	if got := h.Target.AgeNS; got == nil || time.Duration(*got) != age+look {
		t.Errorf("%v ns, want %v", got, age+look)
	}
}

// Names of a JVM's threads that the kernel has cut are told, where several threads have one: the JVM is not asked by itself.
func TestCutNames(t *testing.T) {
	threads := func(comms ...string) *recording.Header {
		h := &recording.Header{}
		for i, comm := range comms {
			h.Threads = append(h.Threads, recording.Thread{TID: uint32(7 + i), TGID: 7, Comm: comm})
		}
		return h
	}
	const cut = "data-plane-kafk"
	for name, c := range map[string]struct {
		exe     string
		asked   bool
		threads []string
		want    string
	}{
		"several":      {"/usr/bin/java", false, []string{cut, "C2 CompilerThre", cut, cut, cut}, cut},
		"one of each":  {"/usr/bin/java", false, []string{cut, "C2 CompilerThre", "Signal Dispatch"}, ""},
		"no JVM":       {"/usr/bin/kafka", false, []string{cut, cut, cut, cut}, ""},
		"it was asked": {"/usr/bin/java", true, []string{cut, cut, cut, cut}, ""},
		"short names":  {"/usr/bin/java", false, []string{"exec-1", "exec-1", "exec-1", "exec-1"}, ""},
	} {
		o := Options{AskJVM: c.asked, processes: map[uint32]threadpool.Process{7: {Exe: c.exe}}}
		got := strings.Join(o.cutNames(threads(c.threads...)), "; ")
		if c.want == "" && got != "" || !strings.Contains(got, c.want) || c.want != "" && !strings.Contains(got, "--ask-jvm") {
			t.Errorf("%s: %q", name, got)
		}
	}
}
