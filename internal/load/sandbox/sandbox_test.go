package sandbox_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/load/cgrouptest"
	"github.com/unthrottle/unthrottle/internal/load/sandbox"
	"github.com/unthrottle/unthrottle/test/lab/require"
)

const prefix = "unthrottle-testsandbox-"

// envVictim makes the test binary open a sandbox below the scope that it names,
// and hang, to be killed.
const envVictim = "UNTHROTTLE_SANDBOX_VICTIM"

func TestMain(m *testing.M) {
	if scope := os.Getenv(envVictim); scope != "" {
		h, err := cgroup.Open("/proc")
		if err == nil {
			var mine *sandbox.Sandbox
			if mine, err = sandbox.Open(sandbox.Options{Host: h, Prefix: prefix, Scope: scope}); err == nil {
				_, err = mine.Group("service")
			}
		}
		fmt.Println("made", err)
		time.Sleep(time.Minute)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func opened(t *testing.T) (*sandbox.Sandbox, *cgrouptest.Tree) {
	t.Helper()
	tree := cgrouptest.New(t)
	tree.Make("inner") // on v2: makes the top hand its controllers on
	h, err := sandbox.Open(sandbox.Options{Host: tree.Host, Prefix: prefix, Scope: tree.Top})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Remove(); err != nil {
			t.Error(err)
		}
	})
	return h, tree
}

func TestGroupsAndTheirSettings(t *testing.T) {
	require.EachCgroup(t, "the cgroups that are made")
	h, tree := opened(t)
	g, err := h.Group("service")
	if err != nil {
		t.Fatal(err)
	}
	limit := cgroup.Limit{Quota: 50 * time.Millisecond, Period: 100 * time.Millisecond}
	for _, want := range []cgroup.Limit{limit, limit, cgroup.Unlimited(), cgroup.Unlimited(),
		{Quota: 5 * time.Millisecond, Period: 10 * time.Millisecond}} {
		if err := g.SetLimit(want); err != nil {
			t.Fatal(err)
		}
		got, err := cgroup.ReadLimit(tree.Host, g.At().Path)
		if err != nil || got.Limited() != want.Limited() || want.Limited() && (got.Quota != want.Quota || got.Period != want.Period) {
			t.Errorf("set %+v, it is %+v, %v", want, got, err)
		}
	}
	if err := g.SetWeight(200); err != nil {
		t.Error(err)
	}
	child := exec.Command("sleep", "60")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = child.Process.Kill(); _ = child.Wait() }()
	if err := g.Attach(child.Process.Pid); err != nil {
		t.Fatal(err)
	}
	at := g.At()
	for c, want := range map[cgroup.Controller]string{cgroup.CPU: at.Path, cgroup.CPUSet: at.CPUSetPath, cgroup.CPUAcct: at.CPUAcctPath} {
		if in, mounted, err := tree.Host.Of(child.Process.Pid, c); err != nil || mounted && in != want {
			t.Errorf("%s: it is in %q, %v", c, in, err)
		}
	}
	if _, err := g.Stat(); err != nil {
		t.Error(err)
	}
}

func TestLeftoversOfTheKilledGoAndThoseOfTheLivingStay(t *testing.T) {
	require.EachCgroup(t, "the cgroups that are made")
	_, tree := opened(t)
	victim := exec.Command("/proc/self/exe")
	victim.Env = append(os.Environ(), envVictim+"="+tree.Top)
	out, err := victim.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	text := make([]byte, 100)
	n, _ := out.Read(text)
	if said := string(text[:n]); !strings.HasPrefix(said, "made <nil>") {
		t.Fatalf("the victim says %q", said)
	}
	count := func() int {
		t.Helper()
		all, err := tree.Host.Children(cgroup.CPU, tree.Top)
		if err != nil {
			t.Fatal(err)
		}
		return len(all) - 1 // inner
	}
	next := func() []string {
		t.Helper()
		h, err := sandbox.Open(sandbox.Options{Host: tree.Host, Prefix: prefix, Scope: tree.Top})
		if err != nil {
			t.Fatal(err)
		}
		if err := h.Remove(); err != nil {
			t.Fatal(err)
		}
		return h.Leftovers.Notes()
	}
	if notes := next(); len(notes) != 0 || count() != 2 {
		t.Errorf("beside two living owners: %q, %d sandboxes", notes, count())
	}
	_ = victim.Process.Kill()
	_ = victim.Wait()
	if notes := next(); len(notes) != 1 || !strings.Contains(notes[0], "removed") || count() != 1 {
		t.Errorf("after one was killed: %q, %d sandboxes", notes, count())
	}
}

// A group below one whose CPUs were narrowed gets the narrowed list.
func TestGroupsInheritCPUs(t *testing.T) {
	require.EachCgroup(t, "the cgroups that are made")
	box, tree := opened(t)
	set := cpuset.New(box.CPUs().List()[0])
	outer, err := box.Group("outer")
	if err != nil {
		t.Fatal(err)
	}
	if err := outer.SetCPUs(set); err != nil {
		t.Fatal(err)
	}
	inner, err := outer.Group("inner")
	if err != nil {
		t.Fatal(err)
	}
	if _, got, err := cgroup.CPUs(tree.Host, inner.At().CPUSetPath); err != nil || !got.Equals(set) {
		t.Errorf("inner has %v, %v, want %v", got, err, set)
	}
}

// Remove removes what others made in the sandbox too, and memory and pids on v1.
func TestRemoveLeavesNothing(t *testing.T) {
	require.EachCgroup(t, "the cgroups that are made")
	tree := cgrouptest.New(t)
	tree.Make("inner") // on v2: makes the top enable its controllers
	scopes := []string{tree.Top, ""}
	if v, _ := tree.Host.Version(cgroup.CPU); v == cgroup.V2 {
		scopes = scopes[:1] // the root need not enable both
	}
	for _, scope := range scopes {
		// The hierarchies of memory and pids have no cgroup of the test, but a top.
		box, err := sandbox.Open(sandbox.Options{Host: tree.Host, Prefix: prefix, Scope: scope, Accounting: scope == ""})
		if err != nil {
			t.Fatal(err)
		}
		g, err := box.Group("a")
		if err != nil {
			t.Fatal(err)
		}
		if err := tree.Host.Make(cgroup.CPU, cgroup.Join(g.At().Path, "stranger")); err != nil {
			t.Error(err)
		}
		name := cgroup.Base(box.Top().At().Path)
		mounted := found(t, name)
		if scope == "" && mounted < 2 {
			t.Errorf("%d cgroups %s: want one in each hierarchy", mounted, name)
		}
		if err := box.Remove(); err != nil {
			t.Error(err)
		}
		if n := found(t, name); n != 0 {
			t.Errorf("%d cgroups %s are left", n, name)
		}
	}
}

// found counts the hierarchies whose top has a cgroup of that name.
func found(t *testing.T, name string) int {
	t.Helper()
	all, err := filepath.Glob("/sys/fs/cgroup/*/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}
