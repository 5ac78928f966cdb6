package remedy

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup/cgroupmodel"
	"github.com/unthrottle/unthrottle/internal/kernel/systemd/unitprop"
	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/internal/txn/change"
	"github.com/unthrottle/unthrottle/test/lab/require"
)

// systemHost is a host with the three slices, services in them, and a pod.
func systemHost(t *testing.T, version, cpus string, used float64) *host {
	h := newHost(t, configs(cpus)[version], inMemory(t))
	h.hand("/", cgroup.CPU)
	for _, path := range []string{"/system.slice", "/user.slice", "/init.scope", "/pods"} {
		h.make(path)
	}
	for _, path := range []string{"/system.slice", "/user.slice", "/pods"} {
		h.hand(path, cgroup.CPU)
	}
	for i, path := range []string{"/system.slice/sshd.service", "/user.slice/user-1.slice", "/pods/web"} {
		h.make(path)
		h.run(path, 10+i)
	}
	h.k.Spawn("/init.scope", 1)
	h.contain("/init.scope")
	h.limit("/pods/web", 2)
	h.options.Used = map[string]float64{"/system.slice/sshd.service": used, "/user.slice/user-1.slice": 0, "/init.scope": 0, "/pods/web": 1}
	return h
}

// inMemory is a folder that no disk has to wait for, where there is one.
func inMemory(t *testing.T) string {
	dir, err := os.MkdirTemp("/dev/shm", "unthrottle-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func eachSystem(t *testing.T, used float64, f func(t *testing.T, h *host)) {
	for _, version := range []string{"v1", "v2"} {
		t.Run(version, func(t *testing.T) { f(t, systemHost(t, version, "0-31", used)) })
	}
}

// allowed is where a process may run.
func (h *host) allowed(pid int) string {
	set, _ := h.k.Allowed(pid)
	return set.String()
}

// The slices run on the reserve, and no other cgroup is touched. The reserve follows their
// use, up at once and down late. After the restore all is as it was.
func TestSystemOnTheReserve(t *testing.T) {
	require.EachCgroup(t, "the cpusets and limits that are written")
	eachSystem(t, 0.5, func(t *testing.T, h *host) {
		before := h.k.Snapshot()
		confine := func(used float64) Plan {
			h.options.Used["/system.slice/sshd.service"] = used
			p, err := ConfineSystem(h.facts(), Request{})
			if err != nil {
				t.Fatal(err)
			}
			if len(p.Changes) > 0 {
				h.replace(p)
			}
			return p
		}
		p := confine(0.5)
		for _, pid := range []int{1, 10, 11} {
			if got := h.allowed(pid); got != "0-1" {
				t.Errorf("process %d runs on %s", pid, got)
			}
		}
		if got := h.allowed(12); got != "0-31" {
			t.Errorf("the pod runs on %s", got)
		}
		if len(p.Warnings) == 0 || !strings.Contains(strings.Join(p.Warnings, " "), "used 0.5") {
			t.Errorf("what they used is not said: %v", p.Warnings)
		}
		if again := confine(0.5); len(again.Changes) > 0 {
			t.Errorf("the same again: %+v", again.Changes)
		}
		for _, step := range []struct {
			used float64
			want string
		}{{3, "0-5"}, {2.2, "0-5"}, {0.6, "0-1"}} {
			confine(step.used)
			if got := h.allowed(10); got != step.want {
				t.Errorf("using %g they run on %s, want %s", step.used, got, step.want)
			}
			if held := h.facts().Held; len(held) != 1 {
				t.Errorf("%d transactions are in force", len(held))
			}
		}
		h.restore("")
		if diff := before.Diff(h.k.Snapshot()); len(diff) > 0 {
			t.Error(diff)
		}
	})
}

// Containers, limited units and placed ones stay out of it: of their slice the
// rest is confined unit by unit; one that comes later makes the slice be divided.
func TestSystemLeavesWorkloadsAlone(t *testing.T) {
	eachSystem(t, 0.5, func(t *testing.T, h *host) {
		h.make("/system.slice/db.service")
		h.run("/system.slice/db.service", 20)
		h.limit("/system.slice/db.service", 4)
		before := h.k.Snapshot()
		p, err := ConfineSystem(h.facts(), Request{})
		if err != nil {
			t.Fatal(err)
		}
		h.replace(p)
		if h.allowed(20) != "0-31" || h.allowed(10) != "0-1" || h.allowed(11) != "0-1" {
			t.Errorf("the limited unit runs on %s, the others on %s and %s", h.allowed(20), h.allowed(10), h.allowed(11))
		}
		if !slices.ContainsFunc(p.Skipped, func(s txn.Skip) bool {
			return s.Path == "/system.slice/db.service" && strings.Contains(s.Why, "a limit")
		}) {
			t.Errorf("skipped %+v", p.Skipped)
		}
		h.make("/user.slice/docker-x.scope")
		docker := h.run("/user.slice/docker-x.scope", 21)
		h.containers[len(h.containers)-1].Runtime = container.Docker
		due := h.reconcile()
		if len(due) != 1 || len(due[0].Plan.Replaces) != 1 {
			t.Fatalf("plans %+v", due)
		}
		h.replace(due[0].Plan)
		if v2 := h.v == cgroup.V2; v2 && h.allowed(21) != "0-31" || h.allowed(11) != "0-1" {
			t.Errorf("%s runs on %s, its neighbour on %s", docker.Name, h.allowed(21), h.allowed(11))
		}
		if again := h.reconcile(); len(again) > 0 {
			t.Errorf("and again: %+v", again)
		}
		h.k.Exit(21)
		for _, c := range []cgroup.Controller{cgroup.CPU, cgroup.CPUSet} {
			if err := h.k.Remove(c, "/user.slice/docker-x.scope"); err != nil && !errors.Is(err, cgroup.ErrNoCgroup) {
				t.Fatal(err)
			}
		}
		h.containers = h.containers[:len(h.containers)-1]
		h.restore("")
		if diff := before.Diff(h.k.Snapshot()); len(diff) > 0 {
			t.Error(diff)
		}
	})
}

// Pins and the reserve keep off each other, whichever comes first and goes first.
func TestSystemBesidePins(t *testing.T) {
	eachSystem(t, 0.5, func(t *testing.T, h *host) {
		web := h.containers[2]
		for _, systemFirst := range []bool{true, false} {
			for _, systemBackFirst := range []bool{true, false} {
				t.Run(fmt.Sprintf("first %v, back first %v", systemFirst, systemBackFirst), func(t *testing.T) {
					before := h.k.Snapshot()
					steps := []func(){
						func() {
							p, err := ConfineSystem(h.facts(), Request{})
							if err != nil {
								t.Fatal(err)
							}
							h.replace(p)
						},
						func() {
							p, err := Make(h.facts(), web, Request{Kind: Pin})
							if err != nil {
								t.Fatal(err)
							}
							h.apply(p)
						},
					}
					if !systemFirst {
						slices.Reverse(steps)
					}
					for _, step := range steps {
						step()
					}
					if got := parse(t, h.allowed(12)); got.Size() != 2 ||
						!got.Intersection(cpuset.New(0, 1)).IsEmpty() || h.allowed(10) != "0-1" {
						t.Errorf("web on %s, the system on %s", got, h.allowed(10))
					}
					if systemBackFirst {
						h.restore("/")
						if got := parse(t, h.allowed(10)); !got.Intersection(parse(t, h.allowed(12))).IsEmpty() || got.Size() != 30 {
							t.Errorf("the system on %s, web on %s", got, h.allowed(12))
						}
					} else {
						h.restore("/pods/web")
						if h.allowed(10) != "0-1" {
							t.Errorf("the system on %s", h.allowed(10))
						}
					}
					h.restore("")
					if diff := before.Diff(h.k.Snapshot()); len(diff) > 0 {
						t.Error(diff)
					}
				})
			}
		}
	})
}

func TestSystemRefused(t *testing.T) {
	list := func(text string) *cpuset.CPUSet { set := parse(t, text); return &set }
	for name, tc := range map[string]struct {
		arrange func(h *host)
		request Request
		says    string
	}{
		"the reserve is too small": {func(h *host) { h.options.Used["/user.slice/user-1.slice"] = 2 },
			Request{Reserve: list("3")}, "use 2.5 CPUs"},
		"more than a quarter is used": {func(h *host) { h.options.Used["/user.slice/user-1.slice"] = 9 }, Request{}, "--reserve"},
		"not there":                   {func(h *host) {}, Request{Reserve: list("40")}, "not there or offline"},
		"isolated": {func(h *host) {
			h.root["sys/devices/system/cpu/isolated"] = &fstest.MapFile{Data: []byte("4-5\n")}
		}, Request{Reserve: list("4-6")}, "CPUs 4-5 are isolated"},
		"not measured": {func(h *host) { h.options.Used = nil }, Request{}, "could not be measured"},
		"pinned": {func(h *host) {
			reserve := cpuset.New(0)
			p, err := Make(h.facts(), h.containers[2], Request{Kind: Pin, CPUs: 2, Reserve: &reserve})
			if err != nil {
				h.t.Fatal(err)
			}
			h.apply(p)
		}, Request{Reserve: list("0-7")}, "the pin of /pods/web"},
		"nothing but workloads": {func(h *host) {
			for i, c := range h.containers {
				if c.Group.Path != "/pods/web" {
					h.containers[i].Runtime = container.Docker
				}
			}
		}, Request{Reserve: list("0")}, "all that the host's slices hold"},
		"a scope without slices": {func(h *host) { h.options.Scope = "/pods" }, Request{Reserve: list("0")}, "there is none of"},
	} {
		for _, version := range []string{"v1", "v2"} {
			t.Run(name+" "+version, func(t *testing.T) {
				h := systemHost(t, version, "0-15", 0.5)
				tc.arrange(h)
				var no *Refused
				if _, err := ConfineSystem(h.facts(), tc.request); !errors.As(err, &no) || !strings.Contains(err.Error(), tc.says) {
					t.Errorf("%v, want %q in it", err, tc.says)
				}
			})
		}
	}
	t.Run("v1 without cpusets", func(t *testing.T) {
		h := newHost(t, configs("0-7")["v1"], t.TempDir())
		h.makeIn(cgroup.CPU, "/system.slice")
		h.k.Spawn("/system.slice", 10)
		h.contain("/system.slice")
		if _, err := ConfineSystem(h.facts(), Request{}); err == nil || !strings.Contains(err.Error(), "have no cpusets") {
			t.Error(err)
		}
	})
	t.Run("everybody in the root", func(t *testing.T) {
		h := newHost(t, configs("0-7")["v1"], t.TempDir())
		h.k.Spawn("/", 10)
		if _, err := ConfineSystem(h.facts(), Request{}); err == nil ||
			!strings.Contains(err.Error(), "1 process in / itself cannot be confined") {
			t.Error(err)
		}
	})
}

// Where systemd owns the slices their properties are set, once more when the
// reserve follows, and what is no longer confined is let go the same way.
func TestSystemThroughUnits(t *testing.T) {
	h := systemHost(t, "v2", "0-31", 0.5)
	h.options.Systemd = slicesOf{}
	plan := func() []string {
		t.Helper()
		p, err := ConfineSystem(h.facts(), Request{})
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, c := range p.Changes {
			if c.Kind == change.KindSystemd {
				all = append(all, c.Unit+" "+c.File+" "+string(c.Op)+" "+c.To)
			}
		}
		slices.Sort(all)
		return all
	}
	want := []string{"init.scope AllowedCPUs set 0-1", "system.slice AllowedCPUs set 0-1", "user.slice AllowedCPUs set 0-1"}
	if got := plan(); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	held := txn.InForce{ID: "a", Target: "/", Remedy: string(System), Parameters: map[string]string{paramCPUs: "0-1"}}
	for _, path := range []string{"/init.scope", "/system.slice", "/user.slice"} {
		held.Changes = append(held.Changes, change.Change{Kind: change.KindSystemd, Op: change.OpSet, Path: path,
			File: unitprop.AllowedCPUs, To: "0-1"})
	}
	h.make("/user.slice/docker-x.scope")
	h.run("/user.slice/docker-x.scope", 21)
	h.containers[len(h.containers)-1].Runtime = container.Docker
	f := h.facts()
	f.Held = []txn.InForce{held}
	p, err := ConfineSystem(f, Request{})
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(p.Changes, func(c change.Change) bool { return c.Path == "/user.slice" && isCPUs(c.File) })
	if i < 0 || p.Changes[i].Kind != change.KindSystemd || p.Changes[i].Op != change.OpAddCPUs ||
		p.Changes[i].To != "" || len(p.Replaces) != 1 {
		t.Errorf("the slice that is divided: %+v", p.Changes)
	}
}

// slicesOf is a systemd that owns every slice, service and scope.
type slicesOf struct{}

func (slicesOf) Owns(path string) (string, bool) { return cgroup.Base(path), looksLikeUnit(path) }

// Killed at any write, one restore brings everything back.
func TestSystemKilledAtEveryPoint(t *testing.T) {
	for _, version := range []string{"v1", "v2"} {
		t.Run(version, func(t *testing.T) {
			h := systemHost(t, version, "0-7", 0.5)
			before := h.k.Snapshot()
			for n := 1; ; n++ {
				count, crashed := 0, false
				h.k.Before = func(op cgroupmodel.Op) error {
					if op.Changes() {
						count++
					}
					if count == n {
						panic("killed")
					}
					return nil
				}
				func() {
					defer func() { crashed = recover() != nil }()
					for _, list := range []string{"0-1", "1-3"} {
						reserve := parse(t, list)
						p, err := ConfineSystem(h.facts(), Request{Reserve: &reserve})
						if err != nil {
							panic(err)
						}
						h.replace(p)
					}
				}()
				h.k.Before = nil
				h.restore("")
				if diff := before.Diff(h.k.Snapshot()); len(diff) > 0 {
					t.Fatalf("killed at point %d: %v", n, diff)
				}
				if !crashed {
					if n < 10 {
						t.Errorf("only %d points", n)
					}
					return
				}
			}
		})
	}
}
