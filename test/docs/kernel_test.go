package docs

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/load/cgrouptest"
	"github.com/unthrottle/unthrottle/internal/load/provoke"
	"github.com/unthrottle/unthrottle/test/lab/require"
)

// fixCart is the command that two pages show.
const fixCart = "sudo unthrottle fix /cart"

// stage is the cgroups of one scene and what was printed in it, by command.
type stage struct {
	t    *testing.T
	tree *cgrouptest.Tree
	made map[string]printed
}

// newStage makes the cgroups that the pages show: on cgroup v1 and two CPUs or more.
func newStage(t *testing.T) *stage {
	t.Helper()
	require.CgroupV1(t)
	require.CPUs(t, 2)
	return &stage{t, cgrouptest.New(t), map[string]printed{}}
}

// run runs a command that a page shows as if the scope were the whole host. A page's
// paths are below the scope. more are arguments that a page does not show.
func (s *stage) run(command string, c call, more ...string) {
	s.t.Helper()
	if c.args == nil {
		c.args = words(command)
		for i, arg := range c.args {
			if strings.HasPrefix(arg, "/") {
				c.args[i] = s.tree.Top + arg
			}
		}
	}
	c.args = append(c.args, more...)
	begun := time.Now()
	s.made[command] = printed{c.output(s.t), s.tree.Top}
	s.t.Logf("%.1f s: %s", time.Since(begun).Seconds(), command)
}

// scope are the flags that keep a command within the scene.
func (s *stage) scope() []string {
	return []string{"--scope", s.tree.Top, "--state-dir", s.tree.StateDir}
}

// shorter are arguments of a run that is only compared; a page gets the whole run.
func shorter(args ...string) []string {
	if *update {
		return nil
	}
	return args
}

// A shop: one container that its parent's quota stops, one that its own does, and one
// at rest. From the first look to the last restore.
func TestShop(t *testing.T) {
	require.Alone(t, "which container is stopped for longest")
	s := newStage(t)
	search, index := s.tree.Make("shop/search"), s.tree.Make("shop/search/index")
	checkout, mail := s.tree.Make("shop/checkout"), s.tree.Make("shop/mail")
	s.tree.Limit(search, 0.3)
	s.tree.Limit(checkout, 0.5)
	s.tree.Limit(mail, 0.5)
	s.tree.Work(index, 4)
	s.tree.Work(checkout, 6)
	s.tree.Work(mail, 0)

	s.run("unthrottle ls", call{columns: wide}, "--below", s.tree.Top)
	s.run("sudo unthrottle apply /shop/checkout --remedy pin --dry-run", call{columns: wide}, s.scope()...)
	call{args: append([]string{"apply", checkout, "--remedy", "pin"}, s.scope()...)}.output(t)
	s.run("sudo unthrottle status", call{columns: wide}, "--state-dir", s.tree.StateDir)
	s.run("sudo unthrottle restore /shop/checkout", call{columns: wide}, s.scope()...)
	hold(t, shop, s.made)
}

// A cart whose pool is woken together, for more than its quota.
func TestCart(t *testing.T) {
	require.CheckAll(t, "it tries remedies for two minutes; internal/cure/fix does so on a modelled kernel, and TestFix applies one on this")
	require.Alone(t, "latencies with each remedy")
	require.BPF(t)
	s := newStage(t)
	path := s.tree.Make("cart")
	s.tree.Weigh(s.tree.Top, cgroup.MaxShares)
	s.tree.Limit(path, 0.6)
	p, err := provoke.Start("", provoke.Spec{Deadline: 5 * time.Minute, Pools: []provoke.Pool{
		{Name: "http-worker", Threads: 8, Work: 10 * time.Millisecond, Every: 250 * time.Millisecond, Together: true},
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		s.tree.Limit(path, 1000) // under a quota even an exit takes periods
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
	}()
	for _, c := range cgroup.Controllers() {
		if err := s.tree.Host.Attach(c, path, p.Pid()); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Go(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(300 * time.Millisecond) // the first wake-ups and the first quota are not like the rest
	// Where the host disturbs a recording, events are missing, its replay differs from it, or the responses do not tell
	// better from before: explain and fix say so, and fix leaves nothing in force.
	const explainCart = "sudo unthrottle explain /cart --for 2s"
	for range 3 {
		s.run(explainCart, call{dataOnly: true})
		if !slices.ContainsFunc(s.made[explainCart].lines, func(line string) bool { return strings.Contains(line, "reported no event") }) {
			break
		}
	}
	s.run("unthrottle explain /cart --for 2s", call{unprivileged: true, dataOnly: true})
	for range 3 {
		s.run(fixCart, call{answer: "y"}, append(shorter("--for", "10s"), s.scope()...)...) // it would record for so long after 5 s
		if slices.ContainsFunc(s.made[fixCart].lines, func(line string) bool { return strings.HasPrefix(line, "in force as ") }) {
			break
		}
	}
	hold(t, cart, s.made)
}

// The host's own slices, played by a subtree.
func TestSystem(t *testing.T) {
	s := newStage(t)
	for _, slice := range []string{"system.slice", "user.slice", "init.scope"} {
		s.tree.Work(s.tree.Make(slice), 0)
	}
	s.run("sudo unthrottle apply --system", call{columns: wide}, s.scope()...)
	call{args: append([]string{"restore"}, s.scope()...)}.output(t)
	hold(t, system, s.made)
}

// What the host offers, without cgroups of ours.
func TestHostOffers(t *testing.T) {
	require.Root(t)
	require.CgroupV1(t)
	hold(t, host, map[string]printed{"unthrottle check": {lines: call{args: []string{"check"}}.output(t)}})
}

// Commands that make cgroups of their own, one after the other.
func TestAlone(t *testing.T) {
	require.BPF(t)
	s := newStage(t)
	below := []string{"--parent", s.tree.Top}
	config := filepath.Join(t.TempDir(), "unthrottle.yaml")
	if err := os.WriteFile(config, []byte("version: 1\nlisten: 127.0.0.1:0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.run("sudo unthrottle agent --config /etc/unthrottle.yaml",
		call{args: []string{"agent", "--config", config}, until: "mode observe"}, s.scope()...)
	s.run("sudo unthrottle simulate --real examples/scenarios/lat-small.yaml --for 4s", call{columns: wide},
		append(below, shorter("--for", "1s")...)...)
	hold(t, alone, s.made)
}

// Those that measure.
func TestMeasure(t *testing.T) {
	require.Alone(t, "latencies with each remedy")
	require.TestAll(t, "it shows what the tests of demo, latency and fibtest measure")
	require.BPF(t)
	s := newStage(t)
	below := []string{"--parent", s.tree.Top}
	s.run("sudo unthrottle demo", call{}, append(below, shorter("--for", "1s")...)...)
	s.run("sudo unthrottle bench latency --repeat 2 --for 3s", call{columns: wide},
		append(below, shorter("--for", "1s", "--repeat", "1")...)...)
	s.run("sudo unthrottle bench fibtest --repeat 2 --for 3s", call{columns: wide},
		append(below, shorter("--for", "1s", "--repeat", "1")...)...)
	hold(t, measure, s.made)
}
