package sandbox

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/load/cgrouptest"
)

const prefix = "unthrottle-testhome-"

// envVictim makes the test binary open a home below the scope that it names,
// and hang, to be killed.
const envVictim = "UNTHROTTLE_HOME_VICTIM"

func TestMain(m *testing.M) {
	if scope := os.Getenv(envVictim); scope != "" {
		h, err := cgroup.Open("/proc")
		if err == nil {
			var mine *Home
			if mine, err = Open(Options{Host: h, Prefix: prefix, Scope: scope}); err == nil {
				_, err = mine.Group("service")
			}
		}
		fmt.Println("made", err)
		time.Sleep(time.Minute)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func opened(t *testing.T) (*Home, *cgrouptest.Tree) {
	t.Helper()
	tree := cgrouptest.New(t)
	tree.Make("inner") // on v2: makes the top hand its controllers on
	h, err := Open(Options{Host: tree.Host, Prefix: prefix, Scope: tree.Top})
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
	h, tree := opened(t)
	g, err := h.Group("service")
	if err != nil {
		t.Fatal(err)
	}
	limit := cgroup.Limit{Quota: 50 * time.Millisecond, Period: 100 * time.Millisecond}
	for _, want := range []cgroup.Limit{limit, limit, cgroup.Unlimited(), cgroup.Unlimited(), {Quota: 5 * time.Millisecond, Period: 10 * time.Millisecond}} {
		if err := g.SetLimit(want); err != nil {
			t.Fatal(err)
		}
		got, err := cgroup.ReadLimit(tree.Host, g.at.Path)
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
	for _, c := range h.hierarchies {
		if in, _, err := tree.Host.Of(child.Process.Pid, c); err != nil || in != h.path(g, c) {
			t.Errorf("%s: it is in %q, %v", c, in, err)
		}
	}
	if _, err := g.Stat(); err != nil {
		t.Error(err)
	}
}

// path of a group in a hierarchy.
func (h *Home) path(g *Group, c cgroup.Controller) string { return in(g.at, c) }

func TestLeftoversOfTheKilledGoAndThoseOfTheLivingStay(t *testing.T) {
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
		h, err := Open(Options{Host: tree.Host, Prefix: prefix, Scope: tree.Top})
		if err != nil {
			t.Fatal(err)
		}
		if err := h.Remove(); err != nil {
			t.Fatal(err)
		}
		return h.Notes
	}
	if notes := next(); len(notes) != 0 || count() != 2 {
		t.Errorf("beside two living owners: %q, %d homes", notes, count())
	}
	_ = victim.Process.Kill()
	_ = victim.Wait()
	if notes := next(); len(notes) != 1 || !strings.Contains(notes[0], "removed") || count() != 1 {
		t.Errorf("after one was killed: %q, %d homes", notes, count())
	}
}

func TestOwnersAreToldFromStrangers(t *testing.T) {
	o, err := ourselves("/proc")
	if err != nil {
		t.Fatal(err)
	}
	if got, ok := parseOwner(prefix, o.name(prefix)); !ok || got != o {
		t.Errorf("%+v came back as %+v, %v", o, got, ok)
	}
	if o.gone("/proc", o.pidNS) || o.gone("/proc", o.pidNS+1) {
		t.Error("we are gone")
	}
	later := o
	later.started++
	if !later.gone("/proc", o.pidNS) {
		t.Error("another process of our PID counts as its earlier owner")
	}
	for _, name := range []string{"", prefix, prefix + "a.1.2", prefix + "a.-1.2.3", prefix + "a.1.2.3.4", prefix + "a.01.2.3", prefix + ".1.2.3", "other-a.1.2.3"} {
		if got, ok := parseOwner(prefix, name); ok {
			t.Errorf("%q: taken as %+v", name, got)
		}
	}
}
