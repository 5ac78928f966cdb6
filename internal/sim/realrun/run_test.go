package realrun

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/load/cgrouptest"
	"github.com/unthrottle/unthrottle/internal/load/sandbox"
	"github.com/unthrottle/unthrottle/internal/scenario"
	"github.com/unthrottle/unthrottle/internal/sim/simulate"
	"github.com/unthrottle/unthrottle/test/lab/require"
)

// sandboxes are the cgroups of runs below a scope, with who is in them.
func sandboxes(t *testing.T, tree *cgrouptest.Tree) (paths []string, pids []int) {
	t.Helper()
	children, err := tree.Host.Children(cgroup.CPU, tree.Top)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(children); i++ {
		if cgroup.Base(children[i]) == "inner" {
			continue
		}
		paths = append(paths, children[i])
		below, err := tree.Host.Children(cgroup.CPU, children[i])
		if err != nil {
			t.Fatal(err)
		}
		children = append(children, below...)
		inside, err := tree.Host.Procs(cgroup.CPU, children[i])
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, inside...)
	}
	return paths, pids
}

// One run of every kind at once: each is seen by what it measured or used, the
// limits hold, and nothing is left.
func TestEveryKind(t *testing.T) {
	require.EachCgroup(t, "the cgroups that are made")
	require.CPUs(t, 2)
	o, tree := options(t)
	s := parsed(t, everything)
	r, err := Run(t.Context(), s, o)
	if err != nil {
		t.Fatal(err)
	}
	for name, w := range r.Outcome.Workloads {
		text, _ := json.Marshal(w)
		t.Logf("%s %s", name, text)
	}
	for _, name := range []string{"sleeper", "pool", "fib", "calls", "gc"} {
		if w := r.Outcome.Workloads[name]; w.Count == 0 || w.P50 == nil || *w.Max < *w.P50 {
			t.Errorf("%s measured nothing: %+v", name, w)
		}
	}
	for _, name := range []string{"burners", "fib", "neighbour"} {
		if w := r.Outcome.Workloads[name]; w.Iterations == nil || *w.CPUSeconds <= 0 {
			t.Errorf("%s did not burn: %+v", name, w)
		}
	}
	web := r.Outcome.Workloads["web"]
	if web.Count == 0 || web.Failed == nil || len(web.Classes) != 2 || r.Outcome.Workloads["gc"].CPUSeconds != nil {
		t.Errorf("web %+v", web)
	}
	// 5 at once and 20 a second are let in, however late the host is.
	if c := r.Outcome.Workloads["capped"]; c.Count == 0 || c.Refused < 3*c.Count || float64(c.Count) > 5+20*(1.5+2) {
		t.Errorf("a rate limit answered %d and refused %d of 300", c.Count, c.Refused)
	}
	pod, app := r.Outcome.Cgroups["pod"], r.Outcome.Cgroups["app"]
	if app.ThrottledPeriods == 0 || app.ThrottledPeriods > app.Periods || app.ThrottledSeconds <= 0 {
		t.Errorf("two burning threads under half a CPU, and it was not throttled: %+v", app)
	}
	// Each period's quota, one that was left over, and what CPUs overrun it by.
	if most := float64(app.Periods+2)*0.05 + 0.05; app.UsageSeconds > most || pod.UsageSeconds < app.UsageSeconds {
		t.Errorf("app used %.3f s, at most %.3f are allowed; pod %.3f", app.UsageSeconds, most, pod.UsageSeconds)
	}
	if app.Width != nil || app.ActivePeriods != nil || app.StoppedSeconds != nil {
		t.Errorf("measured without a probe: %+v", app)
	}
	if paths, pids := sandboxes(t, tree); len(paths)+len(pids) > 0 {
		t.Errorf("left: %q, processes %v", paths, pids)
	}
}

// Collections by the clock begin with their workload, not when its process does.
func TestCollectorBeginsWithItsService(t *testing.T) {
	o, _ := options(t)
	s := parsed(t, `version: 1
duration: 1200ms
host: {cpus: 1}
workloads:
  web: {kind: service, threads: 1, work: 100us, arrivals: {per_second: 20}}
  gc: {kind: gc, of: web, threads: 1, work: 100us, every: 500ms}
  late: {kind: service, start: 400ms, threads: 1, work: 100us, arrivals: {per_second: 20}}
  late-gc: {kind: gc, of: late, start: 400ms, threads: 1, work: 100us, every: 500ms}
`)
	r, err := Run(t.Context(), s, o)
	if err != nil {
		t.Fatal(err)
	}
	// At 500 and 1000 ms, and at 900 ms; the processes were there 300 ms before.
	for name, most := range map[string]uint64{"gc": 2, "late-gc": 1} {
		if w := r.Outcome.Workloads[name]; w.Count == 0 || w.Count > most {
			t.Errorf("%s: %d collections, at most %d are due", name, w.Count, most)
		}
	}
}

// CPUs of a pinned cgroup are its own, also before workloads of the cgroup above it.
func TestPinnedBelowOthers(t *testing.T) {
	require.CPUs(t, 2)
	require.CgroupV1(t)
	o, tree := options(t)
	s := parsed(t, `version: 1
duration: 1s
host: {cpus: 2}
cgroups:
  p: {quota: 200ms}
  a: {parent: p, quota: 100ms, remedy: {kind: pin, cpus: 1}}
workloads:
  own: {kind: sleeper, cgroup: a}
  beside: {kind: burn, cgroup: p, threads: 2}
  pinned: {kind: fib, cgroup: p, threads: 2, fast: 2}
`)
	r, err := Run(t.Context(), s, o)
	if err != nil {
		t.Fatal(err)
	}
	a, p := r.Outcome.Cgroups["a"].UsageSeconds, r.Outcome.Cgroups["p"].UsageSeconds
	if beside := p - a; beside > 1.1*r.Outcome.Seconds || beside <= 0 {
		t.Errorf("four threads beside an idle pinned cgroup used %.2f s of one CPU in %.2f s", beside, r.Outcome.Seconds)
	}
	if paths, pids := sandboxes(t, tree); len(paths)+len(pids) > 0 {
		t.Errorf("left: %q, processes %v", paths, pids)
	}
}

// A real run and a simulated one have the same keys.
func TestSameKeysAsSimulated(t *testing.T) {
	o, _ := options(t)
	s := parsed(t, `version: 1
duration: 300ms
host: {cpus: 1}
cgroups: {app: {quota: 50ms}}
workloads:
  sleeper: {kind: sleeper, cgroup: app}
  web: {kind: service, cgroup: app, threads: 1, work: 1ms, arrivals: {per_second: 50}}
`)
	real, err := Run(t.Context(), s, o)
	if err != nil {
		t.Fatal(err)
	}
	simulated, err := simulate.Run(s, simulate.Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	if a, b := keys(t, real.Outcome), keys(t, simulated.Outcome); !slices.Equal(a, b) {
		t.Errorf("real %q\nsimulated %q", a, b)
	}
}

// keys are all paths of an outcome as JSON, but for what a width has.
func keys(t *testing.T, o scenario.Outcome) []string {
	t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	all := map[string]bool{}
	var walk func(path string, v any)
	walk = func(path string, v any) {
		all[path] = true
		if object, ok := v.(map[string]any); ok {
			for key, inner := range object {
				walk(path+"."+key, inner)
			}
		}
	}
	walk("", v)
	return slices.Sorted(maps.Keys(all))
}

// What a probe measures enters the outcome.
type fakeProbe struct {
	watched []string
	calls   string
}

func (p *fakeProbe) Watch(groups map[string]cgroup.Group) (Watching, error) {
	p.watched = slices.Sorted(maps.Keys(groups))
	return p, nil
}
func (p *fakeProbe) Begin() error { p.calls += "begin "; return nil }
func (p *fakeProbe) End() (map[string]Measured, error) {
	p.calls += "end "
	active := uint64(3)
	return map[string]Measured{"a": {ActivePeriods: &active, Width: []scenario.Width{{CPUs: 1, Seconds: 0.2}}}}, nil
}
func (p *fakeProbe) Close() { p.calls += "close" }

func TestProbe(t *testing.T) {
	o, _ := options(t)
	p := &fakeProbe{}
	o.Probe = p
	r, err := Run(t.Context(), parsed(t, "version: 1\nduration: 200ms\nhost: {cpus: 1}\ncgroups: {a: {}}\nworkloads: "+
		"{w: {kind: burn, cgroup: a}}\n"), o)
	if err != nil {
		t.Fatal(err)
	}
	if p.calls != "begin end close" {
		t.Errorf("calls: %s", p.calls)
	}
	if a := r.Outcome.Cgroups["a"]; !slices.Equal(p.watched, []string{"a"}) || *a.ActivePeriods != 3 ||
		len(a.Width) != 1 || a.StoppedSeconds != nil {
		t.Errorf("%q %+v", p.watched, a)
	}
}

// Width as the kernel's scheduling events tell it: a cgroup's includes that of those below it.
func TestProbed(t *testing.T) {
	require.BPF(t)
	o, _ := options(t)
	o.Probe = Probed{o.Host}
	r, err := Run(t.Context(), parsed(t, `version: 1
duration: 2s
host: {cpus: 1}
cgroups: {pod: {quota: 30ms}, app: {parent: pod}}
workloads: {w: {kind: burn, cgroup: app, threads: 2}}
`), o)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"pod", "app"} {
		c := r.Outcome.Cgroups[name]
		window, used := 0.0, 0.0
		for _, w := range c.Width {
			window += w.Seconds
			used += float64(w.CPUs) * w.Seconds
		}
		if window < 1.9 || used < 0.9*c.UsageSeconds || used > 1.1*c.UsageSeconds {
			t.Errorf("%s: width over %.2f s is %.3f CPU-s, its counter says %.3f", name, window, used, c.UsageSeconds)
		}
		if c.StoppedSeconds == nil || *c.StoppedSeconds < 0.5 || *c.StoppedSeconds > window {
			t.Errorf("%s: stopped for %v s of %.2f under 0.3 CPUs for 2 threads", name, c.StoppedSeconds, window)
		}
	}
}

func TestInterrupted(t *testing.T) {
	o, tree := options(t)
	ctx, cancel := context.WithTimeout(t.Context(), 700*time.Millisecond)
	defer cancel()
	long := parsed(t, "version: 1\nduration: 10m\nhost: {cpus: 1}\ncgroups: {a: {quota: 10ms}}\nworkloads:\n  w: "+
		"{kind: burn, cgroup: a, threads: 20}\n  web: {kind: service, cgroup: a, threads: 1, work: 1ms, arrivals: {per_second: 50}}\n")
	if _, err := Run(ctx, long, o); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("interrupted: %v", err)
	}
	if paths, pids := sandboxes(t, tree); len(paths)+len(pids) > 0 {
		t.Errorf("left: %q, processes %v", paths, pids)
	}
}

// kill -9 in the middle: the processes end by themselves, and the next one who
// looks removes the cgroups.
func TestKilled(t *testing.T) {
	require.CPUs(t, 2)
	_, tree := options(t)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe)
	cmd.Env = append(os.Environ(), envVictim+"="+tree.Top)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	if !lines.Scan() || lines.Text() != "under way" {
		_ = cmd.Process.Kill()
		t.Fatalf("the victim said %q", lines.Text())
	}
	if _, pids := sandboxes(t, tree); len(pids) == 0 {
		t.Error("the victim runs nothing")
	}
	if left, err := sandbox.RemoveLeftovers(tree.Host, tree.Top, Prefix); err != nil || left.Removed != 0 {
		t.Errorf("the cgroups of a running one were removed: %+v, %v", left, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	deadline := time.Now().Add(30 * time.Second)
	for {
		_, pids := sandboxes(t, tree)
		if len(pids) == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("processes %v have outlived their parent", pids)
		}
		time.Sleep(50 * time.Millisecond)
	}
	left, err := sandbox.RemoveLeftovers(tree.Host, tree.Top, Prefix)
	if err != nil || left.Removed != 1 || len(left.Stay) > 0 {
		t.Errorf("%+v, %v", left, err)
	}
	if paths, _ := sandboxes(t, tree); len(paths) > 0 {
		t.Errorf("left: %q", paths)
	}
}

func TestRefused(t *testing.T) {
	o, tree := options(t)
	for want, text := range map[string]string{
		"needs 1024 CPUs, and": "version: 1\nhost: {cpus: 1024}\nworkloads: {w: {kind: burn}}\n",
		"MiB of memory, and":   "version: 1\nhost: {cpus: 1}\nworkloads:\n" + manyJVMs(200),
		"at least 1": "version: 1\nhost: {cpus: 1}\nworkloads: {w: {kind: service, threads: 1, queue: 0, " +
			"work: 1ms, arrivals: {per_second: 1}}}\n",
		"more than 4096": "version: 1\nhost: {cpus: 1}\nworkloads: {w: {kind: burn, threads: 5000}}\n",
	} {
		_, err := Run(t.Context(), parsed(t, text), o)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
	if paths, _ := sandboxes(t, tree); len(paths) > 0 {
		t.Errorf("left: %q", paths)
	}
}

func manyJVMs(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString("  j" + strings.Repeat("x", i%50) + string(rune('a'+i/50)) + ": {kind: jvm, heap: 4GiB}\n")
	}
	return b.String()
}
