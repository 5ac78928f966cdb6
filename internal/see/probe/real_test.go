package probe_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/procfs"
	"github.com/unthrottle/unthrottle/internal/load/cgrouptest"
	"github.com/unthrottle/unthrottle/internal/see/observe"
	"github.com/unthrottle/unthrottle/internal/see/probe"
	"github.com/unthrottle/unthrottle/test/lab/require"
)

func open(t testing.TB, o probe.Options) *probe.Probe {
	t.Helper()
	require.Root(t)
	require.BPF(t)
	p, err := probe.Open(o)
	if err != nil {
		var v *ebpf.VerifierError
		if errors.As(err, &v) {
			t.Logf("%+v", v)
		}
		t.Fatal(err)
	}
	noTroubles(t, p)
	t.Cleanup(func() { must(t, p.Close()) })
	return p
}

// A few threads whose state is made only at their second event are no failure: they cost less than tests allow.
const (
	late    = "a thread could not be remembered at once"
	fewLate = 3
)

// noTroubles fails the test if the kernel side has any until its end.
func noTroubles(t testing.TB, p *probe.Probe) {
	before := p.Troubles()
	t.Cleanup(func() {
		for what, n := range p.Troubles() {
			n -= before[what]
			if what == late && n <= fewLate {
				t.Logf("%s %d times", what, n)
				continue
			}
			if n > 0 {
				t.Errorf("trouble in the kernel: %s %d times", what, n)
			}
		}
	})
}

var theProbe *probe.Probe

// shared is one probe for all tests that want the usual one: the kernel takes seconds to verify its programs.
func shared(t testing.TB) *probe.Probe {
	t.Helper()
	require.Root(t)
	require.BPF(t)
	if theProbe == nil {
		p, err := probe.Open(probe.Options{})
		must(t, err)
		theProbe = p // closed with the process
	}
	noTroubles(t, theProbe)
	return theProbe
}

// watch watches a container until the test ends.
func watch(t testing.TB, p *probe.Probe, c probe.Container) {
	t.Helper()
	must(t, p.Watch(c))
	t.Cleanup(func() {
		if err := p.Unwatch(c.ID); err != nil && !errors.Is(err, probe.ErrNotWatched) {
			t.Error(err)
		}
	})
}

func container(t testing.TB, tr *cgrouptest.Tree, path string) probe.Container {
	t.Helper()
	n, err := tr.Host.ID(cgroup.CPU, path)
	must(t, err)
	return probe.Container{ID: n, Path: path, Name: path[strings.LastIndex(path, "/")+1:]}
}

func read(t testing.TB, p *probe.Probe, c probe.Container) probe.Counts {
	t.Helper()
	n, err := p.Read(c.ID)
	must(t, err)
	return n
}

// integral is the sum of level x time.
func integral(levels []int64) float64 {
	sum := 0.0
	for i, ns := range levels {
		sum += float64(i) * float64(ns)
	}
	return sum
}

func total(levels []int64) (ns int64) {
	for _, n := range levels {
		ns += n
	}
	return ns
}

// usage is the cgroup's own counter.
func usage(t testing.TB, tr *cgrouptest.Tree, path string) cgroup.Stat {
	t.Helper()
	g, err := tr.Host.Group(path)
	must(t, err)
	s, err := cgroup.ReadStat(tr.Host, g)
	must(t, err)
	return s
}

// hostTimes are the CPUs' times since boot.
func hostTimes(t testing.TB) procfs.Stat {
	t.Helper()
	s, err := procfs.ReadStat(os.DirFS("/proc"))
	must(t, err)
	return s
}

// stolen is the time that a hypervisor took, of all CPUs.
func stolen(t testing.TB) time.Duration {
	t.Helper()
	return hostTimes(t).Total.Steal
}

// TestCounts checks the histograms against the CPUs' own sums, the cgroup's usage counter, and the range that its
// throttled time allows.
func TestCounts(t *testing.T) {
	require.EachCgroup(t, "the ids of cgroups and their quotas")
	p := shared(t)
	tr := cgrouptest.New(t)
	path := tr.Make("a")
	tr.Limit(path, 0.4)
	c := container(t, tr, path)
	watch(t, p, c)
	tr.Work(path, 4)
	steal := stolen(t)
	was, before := standing(t, p, tr, c)
	time.Sleep(3 * time.Second)
	is, after := standing(t, p, tr, c)
	steal = stolen(t) - steal

	for name, h := range map[string][]int64{"width": is.WidthNS, "wanted": is.WantedNS} {
		if got, want := total(h), int64(is.AtNS-is.SinceNS); got != want {
			t.Errorf("%s sums to %d ns of %d", name, got, want)
		}
	}
	width, used := integral(is.WidthNS)-integral(was.WidthNS), float64(*after.Usage-*before.Usage)
	onCPU := float64(is.OnCPUNS - was.OnCPUNS)
	late := float64(is.LateNS - was.LateNS)
	if !near(width, onCPU, 0.001, late) {
		t.Errorf("width x time is %.0f ns, the CPUs say %.0f; counted %.0f ns late", width, onCPU, late)
	}
	if may := counterOff(used, 0.01) + float64(steal) + late; math.Abs(width-used) > may {
		t.Errorf("width x time is %.0f ns, the usage counter says %.0f; %.0f more or less allowed (steal %v)", width, used, may, steal)
	}
	if is.StoppedNS == nil {
		t.Fatal("stopped time was not measured")
	}
	stopped := time.Duration(*is.StoppedNS - *was.StoppedNS)
	throttled := after.Throttled - before.Throttled
	v := observe.Stopped(observe.Throttle{Window: time.Duration(is.AtNS - was.AtNS), CPUs: cpus(t), Own: &throttled,
		OwnQuota: true, Path: path})
	// A period in progress at either end is in one count and not in the other.
	const period = 100 * time.Millisecond
	if stopped > *v.High+period || stopped < throttled/time.Duration(cpus(t))-period {
		t.Errorf("stopped for %v; throttled for %v on %d CPUs together", stopped, throttled, cpus(t))
	}
	if stopped < 100*time.Millisecond || *is.StoppedIntervals-*was.StoppedIntervals < 5 {
		t.Errorf("stopped for %v in %d stopped intervals; four threads share 0.4 CPUs for 3 s", stopped,
			*is.StoppedIntervals-*was.StoppedIntervals)
	}
	t.Logf("width %.0f, usage %.0f, on CPU %.0f, stopped %v, throttled %v", width, used, onCPU, stopped, throttled)
}

const tick = 10 * time.Millisecond // the longest possible

// counterOff is how far a cgroup's usage counter may be from the probe, in ns, where no thread of it runs. On a host
// they were 0.1 % apart. In the lab the counter was 1.7 to 6 % above the probe. The kernel charges a thread that it
// wakes on an idle CPU from the wake-up on (wakeup_preempt, rq_clock_skip_update), and an emulated CPU leaves idle
// slowly. Package diagnose, which knows the wake-ups, allows for it.
func counterOff(used, share float64) float64 {
	if require.InLab() {
		share = 0.08
	}
	return max(share*used, float64(tick))
}

// standing reads the probe and the counters at one moment, in which no thread of the container runs. While one runs,
// the counter lacks its use since its CPU's last tick, and in the lab a busy host delays ticks. Read at any moment, the
// two were up to 111 ms of 1.2 s apart there, in both directions.
func standing(t testing.TB, p *probe.Probe, tr *cgrouptest.Tree, c probe.Container) (probe.Counts, cgroup.Stat) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		before := read(t, p, c)
		if before.Width > 0 {
			continue
		}
		u := usage(t, tr, c.Path)
		if after := read(t, p, c); after.Width == 0 && integral(after.WidthNS) == integral(before.WidthNS) {
			return after, u
		}
	}
	t.Fatal("its threads never stand still together")
	panic("unreachable")
}

func cpus(t testing.TB) int {
	t.Helper()
	return len(hostTimes(t).CPUs)
}

// TestWantedAgreesWithProc checks the kernel side's count against sampled states of known work.
func TestWantedAgreesWithProc(t *testing.T) {
	p := shared(t)
	for _, w := range []struct {
		name    string
		burners int
		limit   float64
	}{{"below its limit", 1, 1.9}, {"throttled", 6, 0.5}, {"sleeping", 0, 1}} {
		t.Run(w.name, func(t *testing.T) {
			tr := cgrouptest.New(t)
			path := tr.Make("a")
			tr.Limit(path, w.limit)
			pid := tr.Work(path, w.burners)
			c := container(t, tr, path)
			watch(t, p, c)
			was := read(t, p, c)
			sum, n := 0, 0
			for end := time.Now().Add(2 * time.Second); time.Now().Before(end); n++ {
				sum += wanting(t, pid)
				time.Sleep(3700 * time.Microsecond)
			}
			is := read(t, p, c)
			sampled := float64(sum) / float64(n)
			counted := (integral(is.WantedNS) - integral(was.WantedNS)) / float64(is.AtNS-was.AtNS)
			if math.Abs(sampled-counted) > 0.25+0.1*counted {
				t.Errorf("wanted is %.2f by /proc and %.2f by the probe", sampled, counted)
			}
			t.Logf("wanted %.2f by /proc, %.2f by the probe", sampled, counted)
			must(t, p.Unwatch(c.ID))
		})
	}
}

// wanting counts the threads of a process that run or are runnable, throttled ones too.
func wanting(t testing.TB, pid int) int {
	t.Helper()
	dirs, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	must(t, err)
	n := 0
	for _, d := range dirs {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/stat", pid, d.Name()))
		if err != nil {
			continue
		}
		rest := string(text)[strings.LastIndexByte(string(text), ')')+1:]
		if strings.HasPrefix(rest, " R") {
			n++
		}
	}
	return n
}

// TestMoreThreadsThanSlots checks that threads count correctly with two slots. Nearly all are then in task storage, and
// some take a slot that a thread has left.
func TestMoreThreadsThanSlots(t *testing.T) {
	restore := probe.SetThreadSlotBits(1)
	p := open(t, probe.Options{})
	restore()
	tr := cgrouptest.New(t)
	c := container(t, tr, tr.Make("a"))
	watch(t, p, c)
	for round := range 3 {
		r := start(t, tr, c.Path, "burn", "1", "2", "3", "4")
		was := read(t, p, c)
		for end := time.Now().Add(10 * time.Second); was.Wanted < 4; was = read(t, p, c) {
			if time.Now().After(end) {
				t.Fatalf("round %d: %d wanted, four threads burn", round, was.Wanted)
			}
			time.Sleep(time.Millisecond)
		}
		time.Sleep(700 * time.Millisecond)
		is := read(t, p, c)
		if wanted := (integral(is.WantedNS) - integral(was.WantedNS)) / float64(is.AtNS-was.AtNS); wanted < 3.5 || wanted > 4.8 {
			t.Errorf("round %d: wanted %.2f, four threads burn", round, wanted)
		}
		must(t, r.Process.Kill())
		_ = r.Wait()
		atRest(t, p, c)
	}
}

// TestExecByAnotherThread checks that a thread that takes its process over is counted once, and sleeps when it sleeps.
func TestExecByAnotherThread(t *testing.T) {
	p := shared(t)
	tr := cgrouptest.New(t)
	c := container(t, tr, tr.Make("a"))
	watch(t, p, c)
	for range 10 {
		start(t, tr, c.Path, "exec")
	}
	// Once all have executed again, they wait for a line.
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		was := read(t, p, c)
		time.Sleep(300 * time.Millisecond)
		is := read(t, p, c)
		if is.OnCPUNS-was.OnCPUNS < int64(3*time.Millisecond) && is.OnCPUNS > 0 && is.Wanted == 0 && is.Width == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("they never came to rest: on CPUs for %d ns of 0.3 s, %d CPUs in use, %d wanted",
				is.OnCPUNS-was.OnCPUNS, is.Width, is.Wanted)
		}
	}
}

func TestWatchAndUnwatch(t *testing.T) {
	p := open(t, probe.Options{Containers: 2})
	tr := cgrouptest.New(t)
	var containers []probe.Container
	for _, name := range []string{"a", "b", "c"} {
		containers = append(containers, container(t, tr, tr.Make(name)))
	}
	if _, err := p.Read(containers[0].ID); !errors.Is(err, probe.ErrNotWatched) {
		t.Errorf("read before it is watched: %v", err)
	}
	must(t, p.Watch(containers[0]))
	must(t, p.Watch(containers[1]))
	must(t, p.Watch(containers[1]))
	if err := p.Watch(containers[2]); !errors.Is(err, probe.ErrFull) {
		t.Errorf("a third of two: %v", err)
	}
	tr.Limit(containers[0].Path, 0.5)
	tr.Work(containers[0].Path, 1)
	time.Sleep(300 * time.Millisecond)
	if a := read(t, p, containers[0]); a.OnCPUNS == 0 {
		t.Error("a has worked and shows nothing")
	}
	must(t, p.Unwatch(containers[0].ID))
	if err := p.Unwatch(containers[0].ID); !errors.Is(err, probe.ErrNotWatched) {
		t.Errorf("a second time: %v", err)
	}
	// The slot goes to c while a's threads run on; c must count none of that.
	must(t, p.Watch(containers[2]))
	time.Sleep(300 * time.Millisecond)
	if c := read(t, p, containers[2]); c.OnCPUNS != 0 || c.Wanted != 0 || integral(c.WidthNS) != 0 || integral(c.WantedNS) != 0 {
		t.Errorf("c has done nothing and shows %+v", c)
	}
	if err := p.Watch(probe.Container{Path: "/nowhere"}); err == nil {
		t.Error("a container without id was watched")
	}
}

// atRest reads a container whose processes have ended, once no thread of it has a CPU or wants one. A thread is reaped
// before it leaves its CPU for the last time (exit_notify in do_exit).
func atRest(t testing.TB, p *probe.Probe, c probe.Container) probe.Counts {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		n := read(t, p, c)
		if n.Width == 0 && n.Wanted == 0 {
			return n
		}
		if time.Now().After(end) {
			t.Fatalf("%s: %d CPUs in use and %d wanted without a thread", c.Path, n.Width, n.Wanted)
		}
	}
}

// TestRemovedCgroup checks that its counts stay until Unwatch, and that a new cgroup of the same path is another.
func TestRemovedCgroup(t *testing.T) {
	require.EachCgroup(t, "the ids of cgroups and their quotas")
	p := shared(t)
	tr := cgrouptest.New(t)
	c := container(t, tr, tr.Make("a"))
	watch(t, p, c)
	r := start(t, tr, c.Path, "burn", "1")
	time.Sleep(200 * time.Millisecond)
	must(t, r.Process.Kill())
	_ = r.Wait()
	was := atRest(t, p, c)
	remove(t, tr, c.Path)
	is := read(t, p, c)
	if is.OnCPUNS != was.OnCPUNS || is.Width != 0 || is.Wanted != 0 {
		t.Errorf("before it was removed %+v, after %+v", was, is)
	}
	again := container(t, tr, tr.Make("a"))
	watch(t, p, again)
	if n := read(t, p, again); again.ID == c.ID || n.OnCPUNS != 0 {
		t.Errorf("a new cgroup starts with %+v", n)
	}
	must(t, p.Unwatch(c.ID))
}

func remove(t testing.TB, tr *cgrouptest.Tree, path string) {
	t.Helper()
	for _, c := range cgroup.Controllers() {
		if _, ok := tr.Host.Version(c); !ok {
			continue
		}
		var err error
		for range 100 {
			if err = tr.Host.Remove(c, path); err == nil || errors.Is(err, cgroup.ErrNoCgroup) {
				err = nil
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		must(t, err)
	}
}

// TestMoves moves threads that run and wait between two cgroups. Both containers together must count what was used, and
// keep nothing.
func TestMoves(t *testing.T) {
	p := shared(t)
	tr := cgrouptest.New(t)
	a, b := container(t, tr, tr.Make("a")), container(t, tr, tr.Make("b"))
	watch(t, p, a)
	watch(t, p, b)
	steal := stolen(t)
	r := start(t, tr, a.Path, "burn", "1", "2", "3")
	for i := range require.Rounds(t, 40) {
		attach(t, tr, []string{b.Path, a.Path}[i%2], r.Process.Pid)
		time.Sleep(20 * time.Millisecond)
	}
	must(t, r.Process.Kill())
	_ = r.Wait()
	atA, atB := atRest(t, p, a), atRest(t, p, b)
	steal = stolen(t) - steal
	// From the first thread's arrival to the last one's end: no tick is outstanding at either.
	used := float64(*usage(t, tr, a.Path).Usage + *usage(t, tr, b.Path).Usage)
	both := integral(atA.WidthNS) + integral(atB.WidthNS)
	// In the lab a thread is charged from its wake-up on (counterOff), by at most what all have waited.
	waited := integral(atA.WantedNS) + integral(atB.WantedNS) - both
	late := float64(atA.LateNS + atB.LateNS)
	least, most := used-counterOff(used, 0.01)-float64(steal)-late, used+counterOff(used, 0.01)+float64(steal)+late
	if require.InLab() {
		least = used - waited - late - float64(tick)
	}
	t.Logf("both %.0f, used %.0f, waited %.0f, late %.0f, steal %v", both, used, waited, late, steal)
	if both < least || both > most {
		t.Errorf("both together had %.0f ns, their counters say %.0f; %.0f to %.0f allowed", both, used, least, most)
	}
}
