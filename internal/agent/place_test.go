package agent

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/cure/hoststate"
	"github.com/unthrottle/unthrottle/internal/cure/hoststate/gather"
	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup/cgroupmodel"
	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/internal/txn/apply"
	"github.com/unthrottle/unthrottle/internal/txn/journal"
	"github.com/unthrottle/unthrottle/topology"
)

// placing is an agent on a modelled machine of two sockets of four CPUs, with
// containers /a/0 and so on.
type placing struct {
	*agent
	t    *testing.T
	k    *cgroupmodel.Kernel
	root fstest.MapFS
	all  []container.Container
	log  bytes.Buffer
	load map[int]float64
	used map[string]float64
	gone bool // the process that judges trials
}

// twoSockets are the files of a machine of two sockets of four CPUs.
func twoSockets() fstest.MapFS {
	root := fstest.MapFS{"sys/devices/system/cpu/present": {Data: []byte("0-7\n")},
		"sys/devices/system/cpu/online": {Data: []byte("0-7\n")}}
	for id := range 8 {
		socket := []string{"0-3", "4-7"}[id/4]
		dir := fmt.Sprintf("sys/devices/system/cpu/cpu%d/topology/", id)
		root[dir+"core_cpus_list"] = &fstest.MapFile{Data: fmt.Append(nil, id)}
		root[dir+"package_cpus_list"] = &fstest.MapFile{Data: []byte(socket)}
		root[fmt.Sprintf("sys/devices/system/node/node%d/cpulist", id/4)] = &fstest.MapFile{Data: []byte(socket)}
	}
	return root
}

func newPlacing(t *testing.T, containers int) *placing {
	t.Helper()
	p := &placing{t: t, k: cgroupmodel.New(cgroupmodel.V1("0-7")), used: map[string]float64{}}
	p.root = twoSockets()
	p.make("/a")
	p.make("/slice")
	p.k.Spawn("/slice", 99)
	for i := range containers {
		path := fmt.Sprintf("/a/%d", i)
		p.make(path)
		p.k.Spawn(path, 10+i)
		p.all = append(p.all, container.Container{Name: cgroup.Base(path),
			Group: cgroup.Group{Path: path, CPUSetPath: path, CPUAcctPath: path}})
	}
	p.agent = &agent{Config: Config{
		Rules: policy.Rules{Mode: policy.Apply, Interval: time.Second, Placement: policy.Placement{MovesPerMinute: 60}},
		Env:   apply.Env{FS: p.k, StateDir: t.TempDir(), BootID: "boot", By: "test", Proc: p},
		Log:   slog.New(slog.NewTextHandler(&p.log, nil)),
		List:  func() ([]container.Container, error) { return p.all, nil },
		Facts: func(ctx context.Context, all []container.Container, _ map[string]float64) (hoststate.Facts, error) {
			return p.facts(), nil
		},
	}}
	p.chooser = newChooser(p.Rules, "")
	return p
}

func (p *placing) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *placing) make(path string) {
	p.t.Helper()
	for _, c := range []cgroup.Controller{cgroup.CPU, cgroup.CPUSet} {
		p.must(p.k.Make(c, path))
	}
	p.must(p.k.Write(cgroup.CPUSet, path, cgroup.FileCPUs, "0-7"))
	p.must(p.k.Write(cgroup.CPUSet, path, cgroup.FileMems, "0"))
}

func (p *placing) facts() hoststate.Facts {
	p.t.Helper()
	held, err := apply.Status(p.Env)
	p.must(err)
	drift, err := apply.Drift(p.Env)
	p.must(err)
	f, err := gather.From(p.t.Context(), p.k, false, p.all, gather.Options{Root: p.root, Held: held, Drift: drift, Used: p.used})
	p.must(err)
	f.Load = p.load
	return f
}

// give applies a remedy to a container, and moves it to the list.
func (p *placing) give(i int, r remedy.Request, list string) {
	p.t.Helper()
	set, err := topology.ParseList(list)
	p.must(err)
	r.CPUs = set.Size()
	plan, err := remedy.Make(p.facts(), p.all[i], r)
	p.must(err)
	done, err := apply.Apply(p.t.Context(), p.Env, plan.Purpose(), plan.Changes)
	p.must(err)
	move, err := remedy.MoveTo(p.facts(), done.ID, set)
	p.must(err)
	_, err = apply.Replace(p.t.Context(), p.Env, []txn.Part{move.Part()})
	p.must(err)
}

func (p *placing) Allowed(tid int) (cpuset.CPUSet, error) {
	set, ok := p.k.Allowed(tid)
	if !ok {
		return set, os.ErrNotExist
	}
	return set, nil
}
func (*placing) Self() (journal.Process, error)       { return journal.Process{PID: 1, Started: 1}, nil }
func (p *placing) Runs(journal.Process) (bool, error) { return !p.gone, nil }
func (*placing) KernelThread(int) (bool, error)       { return false, nil }
func (*placing) AllProcesses() (bool, error)          { return true, nil }
func (*placing) Threads(pid int) ([]int, error)       { return []int{pid}, nil }

func (p *placing) at(i int) string {
	set, _ := p.k.Allowed(10 + i)
	return set.String()
}

// metric reads one value of the figures; "" if it is not exported.
func (p *placing) metric(name string) string {
	p.t.Helper()
	r := prometheus.NewRegistry()
	r.MustRegister(&p.placer.figures)
	families, err := r.Gather()
	p.must(err)
	for _, f := range families {
		for _, m := range f.Metric {
			full := f.GetName()
			for _, l := range m.Label {
				full += " " + l.GetName() + "=" + l.GetValue()
			}
			if full == name {
				return fmt.Sprint(m.GetGauge().GetValue() + m.GetCounter().GetValue())
			}
		}
	}
	return ""
}

func (p *placing) reconcileOnce() {
	p.t.Helper()
	p.reconcile(p.t.Context())
}

// A crossing is repaired within the rate, and exported before and after.
func TestAgentRepairsCrossings(t *testing.T) {
	const crossings = "unthrottle_placement_crossings kind=avoidable level=socket"
	p := newPlacing(t, 2)
	p.reconcileOnce()
	if got := p.metric(crossings); got != "" {
		t.Errorf("no container is placed, and crossings are %q", got)
	}
	p.give(0, remedy.Request{Kind: remedy.Pin}, "3-4")
	p.Rules.Placement.MovesPerMinute = 0
	p.reconcileOnce()
	if got := p.at(0); got != "3-4" {
		t.Errorf("moved to %s though no moves are allowed", got)
	}
	if a, f := p.metric(crossings), p.metric(strings.ReplaceAll(crossings, "avoidable", "forced")); a+f != "01" && a+f != "10" {
		t.Errorf("crossings %q and %q", a, f)
	}
	p.Rules.Placement.MovesPerMinute = 60
	p.reconcileOnce()
	if got := p.at(0); got == "3-4" {
		t.Errorf("not moved: %s", p.log.String())
	}
	if a, n := p.metric(crossings), p.metric("unthrottle_placement_moves_total outcome=done"); n != "1" {
		t.Errorf("crossings %s, moves %s", a, n)
	}
	p.reconcileOnce()
	if a, f := p.metric(crossings), p.metric(strings.ReplaceAll(crossings, "avoidable", "forced")); a+f != "00" {
		t.Errorf("crossings %q and %q", a, f)
	}
}

// In observe mode nothing is moved.
func TestAgentObservesPlacement(t *testing.T) {
	p := newPlacing(t, 1)
	p.give(0, remedy.Request{Kind: remedy.Pin}, "3-4")
	p.Rules.Mode = policy.Observe
	p.reconcileOnce()
	if got := p.at(0); got != "3-4" {
		t.Errorf("moved to %s", got)
	}
	if got := p.metric("unthrottle_placement_containers class=exclusive"); got != "1" {
		t.Errorf("%q containers", got)
	}
}

// What another writer changes is set again three times, for all whose hold on
// the setting was lost; then the agent gives up and says so.
func TestAgentGivesUp(t *testing.T) {
	p := newPlacing(t, 2)
	p.give(0, remedy.Request{Kind: remedy.Pin}, "1-2")
	p.give(1, remedy.Request{Kind: remedy.Pin}, "5-6")
	for i := range maxReasserts {
		p.must(p.k.Write(cgroup.CPUSet, "/a/0", cgroup.FileCPUs, "0-7"))
		p.must(p.k.Write(cgroup.CPUSet, "/slice", cgroup.FileCPUs, "0-7"))
		p.reconcileOnce()
		rest, _ := p.k.Allowed(99)
		if p.at(0) != "1-2" || p.at(1) != "5-6" || rest.String() != "0,3-4,7" {
			t.Fatalf("conflict %d: on %s and %s, the others on %s\n%s", i, p.at(0), p.at(1), rest, p.log.String())
		}
	}
	p.must(p.k.Write(cgroup.CPUSet, "/a/0", cgroup.FileCPUs, "0-7"))
	for range 3 {
		p.reconcileOnce()
	}
	if p.at(0) != "0-7" || !strings.Contains(p.log.String(), "the agent gives up") ||
		strings.Count(p.log.String(), "the agent gives up") != 2 {
		t.Errorf("on %s\n%s", p.at(0), p.log.String())
	}
	if got := p.metric("unthrottle_placement_yielded"); got != "2" {
		t.Errorf("%q gave up: both, since the one is on the other's CPUs now", got)
	}
	// Once it is restored we forget.
	_, err := apply.Restore(t.Context(), p.Env, apply.Selector{})
	p.must(err)
	p.reconcileOnce()
	p.give(1, remedy.Request{Kind: remedy.Pin}, "5-6")
	p.reconcileOnce()
	p.reconcileOnce()
	if got := p.metric("unthrottle_placement_yielded"); got != "0" {
		t.Errorf("%q gave up", got)
	}
}

// A try that another moment may not refuse, as one while the journal is locked, is none of the three: the CPUs are set again afterwards.
func TestAgentSetsAgainAfterALock(t *testing.T) {
	p := newPlacing(t, 1)
	p.Env.LockWait = -1 // not at all
	p.give(0, remedy.Request{Kind: remedy.Pin}, "1-2")
	p.must(p.k.Write(cgroup.CPUSet, "/a/0", cgroup.FileCPUs, "0-7"))
	other, err := journal.Open(t.Context(), p.Env.StateDir, journal.Options{Wait: -1})
	p.must(err)
	for range maxReasserts + 1 {
		p.reconcileOnce()
	}
	other.Close()
	if p.at(0) != "0-7" || strings.Contains(p.log.String(), "could not be set again") {
		t.Fatalf("the journal is locked, and it is on %s\n%s", p.at(0), p.log.String())
	}
	p.reconcileOnce()
	if p.at(0) != "1-2" || strings.Contains(p.log.String(), "gives up") {
		t.Errorf("it is on %s\n%s", p.at(0), p.log.String())
	}
}

// A container whose CPUs cannot be set again, since another program confined its neighbour to them, does not keep a third from its own.
func TestAgentSetsAgainOneByOne(t *testing.T) {
	p := newPlacing(t, 3)
	p.Rules.Placement.MovesPerMinute = 0
	p.must(p.k.Write(cgroup.CPUSet, "/a/2", cgroup.FileCPUs, "4-7")) // so that the pin takes nothing from it
	p.give(0, remedy.Request{Kind: remedy.Pin}, "1-2")
	p.give(2, remedy.Request{Kind: remedy.Narrow}, "5-6")
	p.must(p.k.Write(cgroup.CPUSet, "/a/1", cgroup.FileCPUs, "1-2"))
	p.must(p.k.Write(cgroup.CPUSet, "/a/2", cgroup.FileCPUs, "4-7"))
	p.reconcileOnce()
	if p.at(1) != "1-2" || p.at(2) != "5-6" {
		t.Errorf("they are on %s and %s\n%s", p.at(1), p.at(2), p.log.String())
	}
	for range maxReasserts {
		p.reconcileOnce()
	}
	if got := strings.Count(p.log.String(), "the agent gives up"); got != 1 || p.at(2) != "5-6" {
		t.Errorf("it gave up %d times, and the third is on %s\n%s", got, p.at(2), p.log.String())
	}
}

// A CPU that went offline: who had it gets another one.
func TestAgentReplacesOfflineCPUs(t *testing.T) {
	p := newPlacing(t, 1)
	p.give(0, remedy.Request{Kind: remedy.Pin}, "5-6")
	p.root["sys/devices/system/cpu/online"] = &fstest.MapFile{Data: []byte("0-5,7\n")}
	delete(p.root, "sys/devices/system/cpu/cpu6/topology/core_cpus_list")
	delete(p.root, "sys/devices/system/cpu/cpu6/topology/package_cpus_list")
	p.reconcileOnce()
	held := p.facts().Held
	read, err := remedy.Decode(held[0], "")
	p.must(err)
	if set := read.Placed(); set.Size() != 2 || set.Contains(6) || !set.Contains(5) {
		t.Errorf("it has %s\n%s", set, p.log.String())
	}
}

// A narrowed container whose CPUs are busy with others' work goes where they
// are not, after a while.
func TestAgentSpreads(t *testing.T) {
	p := newPlacing(t, 1)
	p.give(0, remedy.Request{Kind: remedy.Narrow}, "1-2")
	p.used["/a/0"] = 0.2
	p.load = map[int]float64{0: 1, 1: 1, 2: 1, 3: 1, 4: 1, 5: 0.1, 6: 0.1, 7: 1}
	for range persistSpread - 1 {
		p.reconcileOnce()
	}
	if p.at(0) != "1-2" {
		t.Errorf("moved to %s at once", p.at(0))
	}
	p.reconcileOnce()
	if p.at(0) != "5-6" {
		t.Errorf("it is on %s\n%s", p.at(0), p.log.String())
	}
	p.used["/a/0"] = 2
	p.load = map[int]float64{0: 0, 1: 0, 2: 0, 3: 0, 4: 0, 5: 1, 6: 1, 7: 0}
	for range 2 * persistSpread {
		p.reconcileOnce()
	}
	if p.at(0) != "5-6" {
		t.Errorf("only its own work is there, and it was moved to %s", p.at(0))
	}
}

func TestMovesAreRationed(t *testing.T) {
	var p placer
	now := time.Now()
	if p.mayMove(0, now) {
		t.Error("moves at a rate of none")
	}
	if !p.mayMove(2, now) || p.moves != 2 {
		t.Errorf("%g moves at first", p.moves)
	}
	p.moves = -1
	if p.mayMove(2, now.Add(30*time.Second)) {
		t.Errorf("%g moves after half a minute", p.moves)
	}
	if !p.mayMove(2, now.Add(60*time.Second)) {
		t.Errorf("%g moves after a minute", p.moves)
	}
	if p.mayMove(2, now.Add(time.Hour)); p.moves != movesAtOnce {
		t.Errorf("%g moves saved up", p.moves)
	}
}
