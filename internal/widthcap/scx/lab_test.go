package scx_test

import (
	"bufio"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/load/cgrouptest"
	"github.com/unthrottle/unthrottle/internal/load/workload"
	"github.com/unthrottle/unthrottle/internal/load/workload/service"
	"github.com/unthrottle/unthrottle/internal/scenario"
	"github.com/unthrottle/unthrottle/internal/see/probe"
	"github.com/unthrottle/unthrottle/internal/widthcap/scx"
	"github.com/unthrottle/unthrottle/test/lab/require"
)

// needs states what every test of the scheduler needs.
func needs(t *testing.T) {
	t.Helper()
	require.Root(t)
	require.CPUs(t, 8)
	require.CgroupV2(t)
	require.SchedExt(t)
	require.Slow(t) // at the pace of a host of two CPUs, a guest of 16 loses CPUs for longer than these bounds allow
}

func load(t *testing.T, o scx.Options) *scx.Scheduler {
	t.Helper()
	s, err := scx.Load(o)
	if err != nil {
		var refused *ebpf.VerifierError
		if errors.As(err, &refused) {
			t.Fatalf("%+v", refused)
		}
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Err(); err != nil {
			t.Errorf("thrown out: %v", err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if state := state(t); state != "disabled" {
			t.Errorf("after Close sched_ext is %q", state)
		}
	})
	return s
}

func state(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("/sys/kernel/sched_ext/state")
	must(t, err)
	return string(text[:len(text)-1])
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// group is a cgroup of a test.
type group struct {
	tr   *cgrouptest.Tree
	path string
	id   uint64
}

func newGroup(t *testing.T, tr *cgrouptest.Tree, rel string) group {
	t.Helper()
	path := tr.Make(rel)
	id, err := tr.Host.ID(cgroup.CPU, path)
	must(t, err)
	return group{tr, path, id}
}

// used is the CPU time that the group has used.
func (g group) used(t *testing.T) time.Duration {
	t.Helper()
	var usec int64
	text, err := os.ReadFile(g.tr.Host.Dir(cgroup.CPU, g.path) + "/cpu.stat")
	must(t, err)
	if _, err := fmt.Sscanf(string(text), "usage_usec %d", &usec); err != nil {
		t.Fatal(err)
	}
	return time.Duration(usec) * time.Microsecond
}

// mean is how many CPUs the group uses on average for some time.
func (g group) mean(t *testing.T, d time.Duration) float64 {
	t.Helper()
	at, was := time.Now(), g.used(t)
	time.Sleep(d)
	return (g.used(t) - was).Seconds() / time.Since(at).Seconds()
}

// settled waits until the group runs nothing, and checks that no slot is left.
func settled(t *testing.T, s *scx.Scheduler, g group) scx.Stats {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		stats, err := s.Stats(g.id)
		must(t, err)
		slots, err := s.Slots(g.id)
		must(t, err)
		if stats.Now == 0 && slots == 0 {
			return stats
		}
		if time.Now().After(end) {
			t.Fatalf("%s: %d threads run and %d slots are taken, and it has no thread", g.path, stats.Now, slots)
		}
	}
}

// work runs burners and a sleeper in the group until stop is called.
func (g group) work(t *testing.T, burners int, sleep time.Duration) (p *workload.Process, stop func()) {
	t.Helper()
	p, err := workload.Start("", workload.Spec{Burners: burners, Sleep: sleep, Deadline: 5 * time.Minute})
	must(t, err)
	stop = sync.OnceFunc(func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	must(t, g.tr.Host.Attach(cgroup.CPU, g.path, p.Pid()))
	must(t, p.Go())
	return p, stop
}

// burn runs burners until stop is called.
func (g group) burn(t *testing.T, burners int) (stop func()) {
	t.Helper()
	p, stop := g.work(t, burners, time.Second)
	go func() {
		for range p.Records() {
		}
	}()
	return stop
}

// TestScheduler loads once, which takes seconds in the lab.
func TestScheduler(t *testing.T) {
	needs(t)
	tr := cgrouptest.New(t)
	s := load(t, scx.Options{})
	for name, test := range map[string]func(*testing.T, *scx.Scheduler, *cgrouptest.Tree){
		"width": neverWider, "mean": meanUse, "credit": creditIsSpent, "rests": restsBeforeItRuns, "nested": nestedCaps,
		"limits":  limitsOfOthers,
		"weights": weightsHold, "neighbour": besideNeighbours, "sleeper": sleeperBesideBurners,
		"changes": changesUnderLoad, "many": manyCgroups, "yield": yieldsToThoseThatWait, "wakes": wakesBesideNeighbours,
	} {
		t.Run(name, func(t *testing.T) {
			test(t, s, tr)
			if err := s.Err(); err != nil {
				t.Fatal(err)
			}
			noFaults(t, s, tr)
		})
	}
}

// noFaults checks that nothing happened that must not, and that this is counted.
func noFaults(t *testing.T, s *scx.Scheduler, tr *cgrouptest.Tree) {
	t.Helper()
	g := newGroup(t, tr, "faults-"+filepath.Base(t.Name()))
	must(t, s.Set(g.id, scx.Cap{CPUs: 1}))
	defer g.burn(t, 1)()
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		stats, err := s.Stats(g.id)
		must(t, err)
		if stats.Faults == nil && time.Now().Before(end) {
			continue // until one of its threads has run
		}
		for fault, n := range stats.Faults {
			if n > 0 {
				t.Errorf("%s: %d", fault, n)
			}
		}
		if len(stats.Faults) == 0 {
			t.Error("faults are not counted")
		}
		return
	}
}

func neverWider(t *testing.T, s *scx.Scheduler, tr *cgrouptest.Tree) {
	g := newGroup(t, tr, "width")
	must(t, s.Set(g.id, scx.Cap{CPUs: 2}))
	p, err := probe.Open(probe.Options{WidthOnly: true})
	must(t, err)
	defer p.Close()
	must(t, p.Watch(probe.Container{ID: g.id, Path: g.path}))
	stop := g.burn(t, 32)
	mean := g.mean(t, 2*time.Second)
	counts, err := p.Read(g.id)
	must(t, err)
	stop()
	stats := settled(t, s, g)
	t.Logf("mean %.2f, width %v, stats %+v", mean, counts.WidthNS, stats)
	if stats.Widest > 2+int(stats.Joined) {
		t.Errorf("%d ran at one moment, %d joined, above a cap of 2", stats.Widest, stats.Joined)
	}
	var wider, all int64
	for level, ns := range counts.WidthNS {
		if level > 2 {
			wider += ns
		}
		all += ns
	}
	// A slot is free a moment before the switch that the probe sees. A guest's CPU may lose its host's CPU in between.
	if float64(wider) > 0.2*float64(all) {
		t.Errorf("wider than 2 for %v of %v", time.Duration(wider), time.Duration(all))
	}
	if mean > 2.2 || mean < 1 {
		t.Errorf("it uses %.2f CPUs, want nearly 2", mean)
	}
}

func meanUse(t *testing.T, s *scx.Scheduler, tr *cgrouptest.Tree) {
	for i, limit := range []float64{0.5, 1, 2.5} {
		g := newGroup(t, tr, fmt.Sprint("mean", i))
		must(t, s.Set(g.id, scx.Cap{CPUs: limit}))
		stop := g.burn(t, 16)
		mean := g.mean(t, 2*time.Second)
		stop()
		stats := settled(t, s, g)
		t.Logf("limit %g: mean %.3f, stats %+v", limit, mean, stats)
		if mean > limit*1.25 || mean < limit*0.5 {
			t.Errorf("a limit of %g: it uses %.2f CPUs", limit, mean)
		}
		if stats.Widest > int(math.Ceil(limit))+int(stats.Joined) {
			t.Errorf("a limit of %g: %d ran at one moment, %d joined", limit, stats.Widest, stats.Joined)
		}
	}
}

// creditIsSpent lets a group save while it sleeps. It may then be wide until the credit is spent, and no longer.
func creditIsSpent(t *testing.T, s *scx.Scheduler, tr *cgrouptest.Tree) {
	const limit, credit, widest = 2, 2 * time.Second, 6
	g := newGroup(t, tr, "credit")
	must(t, s.Set(g.id, scx.Cap{CPUs: limit, Credit: credit, Widest: widest}))
	rest := g.burn(t, 0)
	for end := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		stats, err := s.Stats(g.id)
		must(t, err)
		if stats.Credit > credit {
			t.Fatalf("it has saved %v of at most %v", stats.Credit, credit)
		}
		if stats.Credit > credit*9/10 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("a group at rest has saved %v in a minute", stats.Credit)
		}
	}
	at, was := time.Now(), g.used(t)
	stop := g.burn(t, 16)
	time.Sleep(2 * time.Second)
	used, passed := g.used(t)-was, time.Since(at)
	stats, err := s.Stats(g.id)
	must(t, err)
	allowance := time.Duration(limit*float64(passed)) + credit
	t.Logf("used %v of %v in %v, stats %+v", used, allowance, passed, stats)
	if stats.Widest <= limit || stats.Widest > widest+int(stats.Joined) {
		t.Errorf("%d ran at one moment, want more than %d and at most %d", stats.Widest, limit, widest)
	}
	if used > allowance*5/4 || used < allowance/2 {
		t.Errorf("it has used %v, its allowance was %v", used, allowance)
	}
	stop()
	rest()
	settled(t, s, g)
}

// restsBeforeItRuns checks that a group saves while it has a cap and no thread.
func restsBeforeItRuns(t *testing.T, s *scx.Scheduler, tr *cgrouptest.Tree) {
	const limit, credit = 2, 2 * time.Second
	g := newGroup(t, tr, "rests")
	must(t, s.Set(g.id, scx.Cap{CPUs: limit, Credit: credit}))
	time.Sleep(credit / limit / 2)
	must(t, s.Set(g.id, scx.Cap{CPUs: limit, Credit: credit})) // again: it keeps what it has saved
	stop := g.burn(t, 16)
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		stats, err := s.Stats(g.id)
		must(t, err)
		if stats.Widest > limit+int(stats.Joined) {
			t.Logf("%+v", stats)
			break
		}
		if time.Now().After(end) {
			t.Fatalf("it has never been wide: %+v", stats)
		}
	}
	stop()
	settled(t, s, g)
}

// nestedCaps holds two groups to their parent's cap.
func nestedCaps(t *testing.T, s *scx.Scheduler, tr *cgrouptest.Tree) {
	pod, a, b := newGroup(t, tr, "pod"), newGroup(t, tr, "pod/a"), newGroup(t, tr, "pod/b")
	must(t, s.Set(pod.id, scx.Cap{CPUs: 3}))
	must(t, s.Set(a.id, scx.Cap{CPUs: 2}))
	stopA, stopB := a.burn(t, 8), b.burn(t, 8)
	mean := pod.mean(t, 2*time.Second)
	podStats, err := s.Stats(pod.id)
	must(t, err)
	aStats, err := s.Stats(a.id)
	must(t, err)
	stopA()
	stopB()
	settled(t, s, pod)
	settled(t, s, a)
	t.Logf("mean %.2f, pod %+v, a %+v", mean, podStats, aStats)
	if mean > 3.3 || podStats.Widest > 3+int(podStats.Joined) || aStats.Widest > 2+int(aStats.Joined) {
		t.Errorf("mean %.2f, pod %+v, a %+v", mean, podStats, aStats)
	}
	if aStats.Widest == 0 {
		t.Error("nothing of a has run")
	}
}

// limitsOfOthers checks that a cpu.max holds on, although the kernel's own scheduler does not enforce it now.
func limitsOfOthers(t *testing.T, _ *scx.Scheduler, tr *cgrouptest.Tree) {
	g := newGroup(t, tr, "limited")
	tr.Limit(g.path, 1)
	stop := g.burn(t, 8)
	defer stop()
	if mean := g.mean(t, 2*time.Second); mean > 1.6 || mean < 0.3 {
		t.Errorf("a cpu.max of 1 CPU: it uses %.2f", mean)
	}
}

// weightsHold checks cpu.weight of groups without caps, on two levels.
func weightsHold(t *testing.T, _ *scx.Scheduler, tr *cgrouptest.Tree) {
	light, heavy := newGroup(t, tr, "weights/light"), newGroup(t, tr, "weights/heavy")
	tr.Weigh(heavy.path, 4*cgroup.DefaultShares)
	defer light.burn(t, 32)()
	defer heavy.burn(t, 16)()
	time.Sleep(time.Second)
	wasLight, wasHeavy := light.used(t), heavy.used(t)
	time.Sleep(3 * time.Second)
	ratio := float64(heavy.used(t)-wasHeavy) / float64(light.used(t)-wasLight)
	t.Logf("weights 4 to 1: CPU time %.2f to 1", ratio)
	if ratio < 1.7 || ratio > 9 {
		t.Errorf("weights 4 to 1: CPU time %.2f to 1", ratio)
	}
}

// besideNeighbours checks that a capped group gets its cap beside others that want every CPU, and they the rest.
func besideNeighbours(t *testing.T, s *scx.Scheduler, tr *cgrouptest.Tree) {
	g, other := newGroup(t, tr, "beside/capped"), newGroup(t, tr, "beside/other")
	must(t, s.Set(g.id, scx.Cap{CPUs: 2}))
	stop := g.burn(t, 16)
	stopOther := other.burn(t, 32)
	wasOther := other.used(t)
	mean := g.mean(t, 3*time.Second)
	t.Logf("capped %.2f CPUs, its neighbour %.2f", mean, (other.used(t)-wasOther).Seconds()/3)
	if mean > 2.2 || mean < 0.8 {
		t.Errorf("a cap of 2 beside 32 threads without: %.2f CPUs", mean)
	}
	stop()
	stopOther()
	settled(t, s, g)
}

// wakesBesideNeighbours checks that a thread of a capped group which wakes up where a thread without a cap runs does
// not wait for the end of that one's slice.
func wakesBesideNeighbours(t *testing.T, s *scx.Scheduler, tr *cgrouptest.Tree) {
	const sleep, slice = 10 * time.Millisecond, 3 * time.Millisecond
	g, other := newGroup(t, tr, "wakes/capped"), newGroup(t, tr, "wakes/other")
	must(t, s.Set(g.id, scx.Cap{CPUs: 2}))
	defer other.burn(t, 32)()
	p, stop := g.work(t, 0, sleep)
	// On one CPU: among all, some slice ends soon. Waits are the kernel's count: in an emulator timers are late, too.
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", p.Pid()))
	must(t, err)
	var set unix.CPUSet
	set.Set(1)
	waits := func() (sum time.Duration, runs int64) {
		for _, thread := range threads {
			text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/schedstat", p.Pid(), thread.Name()))
			must(t, err)
			var ran, waited, n int64
			if _, err := fmt.Sscan(string(text), &ran, &waited, &n); err != nil {
				t.Fatal(err)
			}
			sum, runs = sum+time.Duration(waited), runs+n
		}
		return sum, runs
	}
	for _, thread := range threads {
		tid, err := strconv.Atoi(thread.Name())
		must(t, err)
		must(t, unix.SchedSetaffinity(tid, &set))
	}
	was, before := waits()
	all := 0
	for range p.Records() {
		if all++; all == 100 {
			break
		}
	}
	is, runs := waits()
	stop()
	each := (is - was) / time.Duration(runs-before)
	t.Logf("%d runs waited %v each for the CPU", runs-before, each)
	if each > slice/4 {
		t.Errorf("a thread that wakes up waits %v for its neighbours, whose slices are %v", each, slice)
	}
	settled(t, s, g)
}

// sleeperBesideBurners checks that a thread that wakes up does not wait for the slices of 32 others.
func sleeperBesideBurners(t *testing.T, s *scx.Scheduler, tr *cgrouptest.Tree) {
	g := newGroup(t, tr, "sleeper")
	must(t, s.Set(g.id, scx.Cap{CPUs: 2}))
	p, stop := g.work(t, 32, 10*time.Millisecond)
	var took []time.Duration
	for r := range p.Records() {
		if took = append(took, r.Took); len(took) == 60 {
			break
		}
	}
	stop()
	slices.Sort(took)
	t.Logf("sleeps of 10ms: p50 %v, p90 %v", took[len(took)/2], took[len(took)*9/10])
	if p50 := took[len(took)/2]; p50 > 90*time.Millisecond {
		t.Errorf("sleeps of 10ms beside 32 burners take %v, nearly a period of a quota", p50)
	}
	settled(t, s, g)
}

// yieldsToThoseThatWait checks that threads which spin and yield until others have run let these run: each collection
// of the service has 40 ms
// of work for 32 threads on fewer CPUs, which wait so for each other at its end.
func yieldsToThoseThatWait(t *testing.T, s *scx.Scheduler, tr *cgrouptest.Tree) {
	const work, every = 40 * time.Millisecond, 100 * time.Millisecond
	g := newGroup(t, tr, "yield")
	must(t, s.Set(g.id, scx.Cap{CPUs: 6}))
	p, err := service.Start("", service.Spec{
		IO: 1, Pools: []service.Pool{{Name: "pool", Threads: 1, Queue: 1}},
		Classes: []service.Class{{Name: "get", Pool: "pool", Work: scenario.Fixed(time.Millisecond)}},
		GC:      &service.GC{Threads: 32, Work: work, Every: every}, Deadline: 5 * time.Minute,
	})
	must(t, err)
	stop := sync.OnceFunc(func() { must(t, p.Stop()) })
	t.Cleanup(stop)
	must(t, tr.Host.Attach(cgroup.CPU, g.path, p.Pid()))
	must(t, p.Go())
	must(t, p.Begin())
	was, stats := g.used(t), service.Stats{}
	for stats.GC.Collections < 20 {
		time.Sleep(every)
		stats, err = p.Stats()
		must(t, err)
	}
	each := (g.used(t) - was) / time.Duration(stats.GC.Collections)
	stop()
	settled(t, s, g)
	t.Logf("%d collections of %v used %v each, and paused the service for %.1f ms each", stats.GC.Collections, work, each,
		1000*stats.GC.PausedSeconds/float64(stats.GC.Collections))
	// On such a guest the kernel's own scheduler needs 190 ms, and this one needed 310 before it knew of yields.
	if each > 5*work {
		t.Errorf("a collection of %v uses %v: its threads spin while others wait", work, each)
	}
}

// changesUnderLoad changes caps and moves threads between cgroups while they burn. No slot may stay taken.
func changesUnderLoad(t *testing.T, s *scx.Scheduler, tr *cgrouptest.Tree) {
	a, b := newGroup(t, tr, "changes/a"), newGroup(t, tr, "changes/b")
	must(t, s.Set(a.id, scx.Cap{CPUs: 1}))
	must(t, s.Set(b.id, scx.Cap{CPUs: 1}))
	p, stop := a.work(t, 12, time.Millisecond)
	go func() {
		for range p.Records() {
		}
	}()
	for i := range 20 {
		must(t, s.Set(a.id, scx.Cap{CPUs: 0.5 + float64(i%5)}))
		must(t, tr.Host.Attach(cgroup.CPU, []string{b.path, a.path}[i%2], p.Pid()))
		if i%4 == 3 {
			must(t, s.Remove(b.id))
			time.Sleep(20 * time.Millisecond)
			must(t, s.Set(b.id, scx.Cap{CPUs: 1.5}))
		}
		var set unix.CPUSet
		set.Set(i % 8)
		must(t, unix.SchedSetaffinity(p.Pid(), &set))
		time.Sleep(60 * time.Millisecond)
	}
	stop()
	settled(t, s, a)
	settled(t, s, b)
	if err := s.Remove(a.id + 1<<40); !errors.Is(err, scx.ErrNoCap) {
		t.Errorf("Remove without a cap: %v", err)
	}
}

// manyCgroups makes many cgroups and caps some, with a storm of short processes in one of them.
func manyCgroups(t *testing.T, s *scx.Scheduler, tr *cgrouptest.Tree) {
	top := newGroup(t, tr, "many")
	for i := range require.Rounds(t, 2500) {
		dir := filepath.Join(tr.Host.Dir(cgroup.CPU, top.path), fmt.Sprint("c", i))
		must(t, os.Mkdir(dir, 0o755))
		defer os.Remove(dir)
		if i%4 > 0 {
			continue
		}
		id, err := tr.Host.ID(cgroup.CPU, cgroup.Join(top.path, fmt.Sprint("c", i)))
		must(t, err)
		must(t, s.Set(id, scx.Cap{CPUs: 1}))
		defer func() { must(t, s.Remove(id)) }()
	}
	g := newGroup(t, tr, "many-storm")
	must(t, s.Set(g.id, scx.Cap{CPUs: 2}))
	storm := exec.Command("sh", "-c", "read go; i=0; while [ $i -lt 100 ]; do ( : ) & i=$((i+1)); done; wait")
	in, err := storm.StdinPipe()
	must(t, err)
	must(t, storm.Start())
	must(t, tr.Host.Attach(cgroup.CPU, g.path, storm.Process.Pid))
	_, err = in.Write([]byte("go\n"))
	must(t, err)
	must(t, storm.Wait())
	stats := settled(t, s, g)
	t.Logf("storm: %+v", stats)
	if stats.Widest > 2+int(stats.Joined) {
		t.Errorf("%d ran at one moment, %d joined, above a cap of 2", stats.Widest, stats.Joined)
	}
}

// TestCPUGoesAway checks that the kernel ends the scheduler when a CPU goes offline under load, and that this is said.
// It runs in the slowed lab alone, because the tests after it need every CPU.
func TestCPUGoesAway(t *testing.T) {
	needs(t)
	const online = "/sys/devices/system/cpu/cpu5/online"
	tr := cgrouptest.New(t)
	s, err := scx.Load(scx.Options{})
	must(t, err)
	defer s.Close()
	g := newGroup(t, tr, "hotplug")
	must(t, s.Set(g.id, scx.Cap{CPUs: 2}))
	g.burn(t, 4)
	must(t, os.WriteFile(online, []byte("0"), 0))
	defer func() { must(t, os.WriteFile(online, []byte("1"), 0)) }()
	select {
	case <-s.Done():
	case <-time.After(time.Minute):
		t.Fatal("the scheduler is not told of a CPU that went offline")
	}
	if err := s.Err(); !errors.Is(err, scx.ErrRestart) {
		t.Errorf("the kernel ended it: %v", err)
	}
	if mean := g.mean(t, time.Second); mean < 0.5 {
		t.Errorf("under the kernel's own scheduler 4 threads use %.2f CPUs", mean)
	}
}

// TestLoaderKilled checks that the kernel's own scheduler is back after the loader's death under load.
func TestLoaderKilled(t *testing.T) {
	needs(t)
	const pins = "/sys/fs/bpf/unthrottle-scx-test"
	tr := cgrouptest.New(t)
	g := newGroup(t, tr, "a")
	t.Cleanup(func() { _ = os.RemoveAll(pins) })
	loader := exec.Command("/proc/self/exe", holderCommand, pins)
	in, err := loader.StdinPipe()
	must(t, err)
	defer in.Close()
	out, err := loader.StdoutPipe()
	must(t, err)
	must(t, loader.Start())
	ended := false
	defer func() {
		if !ended {
			_ = loader.Process.Kill()
			_ = loader.Wait()
		}
	}()
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "loaded\n" {
		t.Fatalf("the loader says %q, %v", line, err)
	}
	caps, err := scx.Open(pins)
	must(t, err)
	defer caps.Close()
	if err := scx.Supported(); err != nil {
		t.Errorf("while it runs: %v", err)
	}
	must(t, caps.Set(g.id, scx.Cap{CPUs: 1}))
	all, err := caps.All()
	must(t, err)
	if len(all) != 1 || all[g.id].CPUs != 1 {
		t.Errorf("caps %v", all)
	}
	g.burn(t, 16)
	held := g.mean(t, time.Second)
	at := time.Now()
	must(t, loader.Process.Kill())
	_ = loader.Wait()
	ended = true
	for end := time.Now().Add(30 * time.Second); state(t) != "disabled"; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("half a minute after its loader's death the scheduler is %s", state(t))
		}
	}
	back := time.Since(at)
	free := g.mean(t, time.Second)
	t.Logf("%.2f CPUs with the cap; the kernel's scheduler is back after %v; then %.2f CPUs", held, back, free)
	if held > 1.3 || free < 2 {
		t.Errorf("%.2f CPUs with a cap of 1, %.2f without", held, free)
	}
	if _, err := scx.Open(pins); !errors.Is(err, scx.ErrNotEnabled) {
		t.Errorf("Open after the loader's death: %v", err)
	}
}
