package probe_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/load/cgrouptest"
	"github.com/unthrottle/unthrottle/internal/see/probe"
	"github.com/unthrottle/unthrottle/internal/see/recording"
	"github.com/unthrottle/unthrottle/test/lab/require"
)

// record records a container.
func record(t testing.TB, p *probe.Probe, tr *cgrouptest.Tree, c probe.Container, d time.Duration,
	others ...probe.Container) recording.Recording {
	t.Helper()
	var r recording.Recording
	began := false
	f, err := p.Record(t.Context(), probe.RecordOptions{
		Target: c, Others: others, For: d, Host: tr.Host,
		Begin: func(h *recording.Header) error { r.Header, began = *h, true; return nil },
	}, func(e *recording.Event) error {
		if !began {
			t.Error("an event came before the header")
		}
		r.Events = append(r.Events, *e)
		return nil
	})
	must(t, err)
	r.Footer = f
	return r
}

// replay follows a recording as its reader would, and checks that every event fits the previous ones.
type replay struct {
	t       testing.TB
	at      int64
	threads map[uint32]*state
	cpus    map[int32]string
	owners  map[uint32]recording.Event
	kinds   map[recording.Kind]int

	width, wanted, stopped []int64
	onCPU                  map[int]int64
	wrong                  int
}

type state struct {
	recording.Thread
	held    bool
	entered bool // just now: no event has its state yet
}

func (r *replay) fail(format string, args ...any) {
	r.t.Helper()
	if r.wrong++; r.wrong <= 10 {
		r.t.Errorf("at %d ns: %s", r.at, fmt.Sprintf(format, args...))
	}
}

func follow(t testing.TB, rec recording.Recording) *replay {
	t.Helper()
	r := &replay{
		t: t, threads: map[uint32]*state{}, cpus: map[int32]string{}, owners: map[uint32]recording.Event{}, kinds: map[recording.Kind]int{},
		width: make([]int64, probe.Levels), wanted: make([]int64, probe.Levels), stopped: make([]int64, 2),
		onCPU: map[int]int64{},
	}
	for _, th := range rec.Header.Threads {
		r.threads[th.TID] = &state{Thread: th}
		if th.State == recording.Running {
			r.cpus[th.CPU] = fmt.Sprintf("thread %d", th.TID)
		}
	}
	for _, e := range rec.Events {
		r.advance(e.AtNS)
		if w := r.wrong; w < 3 {
			if r.on(e); r.wrong > w {
				r.history(rec.Events, e)
			}
			continue
		}
		r.on(e)
	}
	r.advance(rec.Footer.EndNS)
	return r
}

func (r *replay) advance(to int64) {
	if to < r.at {
		r.fail("time goes back to %d", to)
		return
	}
	width, wanted, held := 0, 0, 0
	for _, s := range r.threads {
		switch s.State {
		case recording.Running:
			width++
			wanted++
			r.onCPU[int(s.CPU)] += to - r.at
		case recording.Runnable:
			wanted++
			if s.held {
				held = 1
			}
		}
	}
	r.width[width] += to - r.at
	r.wanted[wanted] += to - r.at
	r.stopped[held] += to - r.at
	r.at = to
}

// history shows the events of the threads of an event that does not fit.
func (r *replay) history(events []recording.Event, wrong recording.Event) {
	var lines []string
	for _, e := range events {
		if e.AtNS > wrong.AtNS {
			break
		}
		for _, tid := range []uint32{wrong.Thread, wrong.NextThread} {
			if tid != 0 && (e.Thread == tid || e.NextThread == tid) {
				lines = append(lines, fmt.Sprintf("%d kind %d flags %d cpu %d threads %d %d", e.AtNS, e.Kind, e.Flags,
					e.CPU, e.Thread, e.NextThread))
			}
		}
	}
	r.t.Log(strings.Join(lines[max(0, len(lines)-8):], "\n"))
}

func (r *replay) holder(thread, owner uint32) string {
	if thread != 0 {
		return fmt.Sprintf("thread %d", thread)
	}
	if _, ok := r.owners[owner]; !ok && owner >= recording.FirstOwner {
		r.fail("owner %d was never defined", owner)
	}
	return fmt.Sprintf("owner %d", owner)
}

func (r *replay) on(e recording.Event) {
	r.kinds[e.Kind]++
	thread := func(tid uint32) *state {
		s := r.threads[tid]
		if s == nil {
			r.fail("%+v: thread %d was never introduced", e, tid)
			s = &state{}
		}
		return s
	}
	switch e.Kind {
	case recording.Switch:
		from, to := r.holder(e.Thread, e.Owner), r.holder(e.NextThread, e.NextOwner)
		if had, ok := r.cpus[e.CPU]; ok && had != from {
			r.fail("CPU %d is given up by %s, %s had it", e.CPU, from, had)
		}
		r.cpus[e.CPU] = to
		if e.Thread != 0 {
			s := thread(e.Thread)
			s.State = recording.Sleeping
			if e.Flags&recording.PrevRunnable != 0 {
				s.State = recording.Runnable
			}
			s.CPU, s.held = e.CPU, e.Flags&recording.Throttled != 0
		}
		if e.NextThread != 0 {
			s := thread(e.NextThread)
			if s.State != recording.Runnable && !s.entered {
				r.fail("thread %d takes CPU %d; its state was %d", e.NextThread, e.CPU, s.State)
			}
			s.State, s.CPU, s.held, s.entered = recording.Running, e.CPU, false, false
		}
	case recording.Wakeup:
		s := thread(e.Thread)
		if s.State != recording.Sleeping {
			r.fail("thread %d is woken; its state was %d", e.Thread, s.State)
		}
		s.State, s.CPU, s.held, s.entered = recording.Runnable, e.CPU, e.Flags&recording.Throttled != 0, false
	case recording.Migrate:
		thread(e.Thread).CPU = e.CPU
	case recording.Hold, recording.Release:
		s := thread(e.Thread)
		if s.State != recording.Runnable {
			r.fail("%+v: thread %d does not wait, its state is %d", e, e.Thread, s.State)
		}
		s.held = e.Kind == recording.Hold
	case recording.Exit, recording.Leave:
		thread(e.Thread)
		delete(r.threads, e.Thread)
	case recording.Name, recording.Enter:
		s := r.threads[e.Thread]
		if s == nil {
			s = &state{Thread: recording.Thread{TID: e.Thread}, entered: e.Kind == recording.Enter}
			r.threads[e.Thread] = s
		}
		s.Comm, s.TGID = e.Text, e.TGID
	case recording.Define:
		r.owners[e.Owner] = e
	}
}

// onlyOn shows the events of a CPU and of the threads that were there.
func (r *replay) onlyOn(cpu int32, rec recording.Recording) {
	there := map[uint32]bool{}
	for _, e := range rec.Events {
		if e.CPU == cpu {
			there[e.Thread], there[e.NextThread] = true, true
		}
	}
	delete(there, 0)
	var lines []string
	for _, th := range rec.Header.Threads {
		if there[th.TID] || th.CPU == cpu {
			lines = append(lines, fmt.Sprintf("at the start: %+v", th))
		}
	}
	for _, e := range rec.Events {
		if len(lines) < 1000 && (e.Kind == recording.Switch && e.CPU == cpu || there[e.Thread] || there[e.NextThread]) {
			lines = append(lines, fmt.Sprintf("%d kind %d flags %d cpu %d threads %d %d owners %d %d", e.AtNS, e.Kind,
				e.Flags, e.CPU, e.Thread, e.NextThread, e.Owner, e.NextOwner))
		}
	}
	r.t.Log(strings.Join(lines, "\n"))
}

func near(a, b, ratio, slack float64) bool { return math.Abs(a-b) <= ratio*max(a, b)+slack }

// agrees compares the events with the kernel side's counts.
func (r *replay) agrees(rec recording.Recording) {
	r.t.Helper()
	f := rec.Footer
	for _, cpu := range slices.Sorted(maps.Keys(f.OnCPUNS)) {
		if a, b := r.onCPU[cpu], f.OnCPUNS[cpu]; !near(float64(a), float64(b), 0.001, 3e5) {
			r.t.Errorf("CPU %d was the container's for %d ns by the events, %d by the counters", cpu, a, b)
			r.onlyOn(int32(cpu), rec)
		}
	}
	r.t.Logf("width x time is %.0f by the events, %.0f by the counters, which were %d ns late", integral(r.width),
		integral(f.WidthNS), f.LateNS)
	edge := float64(f.LateNS) + 1e5 // ns: the counters are read a moment after the last event
	for name, pair := range map[string][2][]int64{"width": {r.width, f.WidthNS}, "wanted": {r.wanted, f.WantedNS}} {
		if a, b := integral(pair[0]), integral(pair[1]); !near(a, b, 0.001, edge) {
			r.t.Errorf("%s x time is %.0f by the events, %.0f by the counters", name, a, b)
		}
		for i, ns := range pair[1] {
			if !near(float64(pair[0][i]), float64(ns), 0.01, edge+2e6) {
				r.t.Errorf("%s %d for %d ns by the events, %d by the counters", name, i, pair[0][i], ns)
			}
		}
	}
	if f.StoppedNS != nil && !near(float64(r.stopped[1]), float64(*f.StoppedNS), 0.01, edge+2e6) {
		r.t.Errorf("stopped for %d ns by the events, %d by the counters", r.stopped[1], *f.StoppedNS)
	}
}

// TestRecordingIsConsistent checks that the events of a throttled container, one by one, add up to the kernel side's
// counts.
func TestRecordingIsConsistent(t *testing.T) {
	p := shared(t)
	tr := cgrouptest.New(t)
	c, n := container(t, tr, tr.Make("a")), container(t, tr, tr.Make("neighbour"))
	tr.Limit(c.Path, 0.3)
	tr.Limit(n.Path, 0.2)
	tr.Work(c.Path, 4)
	tr.Work(n.Path, 2)
	rec := record(t, p, tr, c, 2*time.Second, n)
	r := follow(t, rec)
	r.agrees(rec)
	f := rec.Footer
	if f.LostEvents != 0 {
		t.Errorf("%d events lost", f.LostEvents)
	}
	if f.UsageNS == nil || f.Periods == nil || *f.Periods < 15 || *f.ThrottledPeriods < 10 || r.kinds[recording.Period] < 15 {
		t.Errorf("footer %+v, %d period events", f, r.kinds[recording.Period])
	}
	if len(f.Neighbours) != 1 || f.Neighbours[0].Name != "neighbour" || f.Neighbours[0].ThrottledPeriods == nil ||
		*f.Neighbours[0].ThrottledPeriods == 0 {
		t.Errorf("neighbours %+v", f.Neighbours)
	} else if d := r.owners[f.Neighbours[0].Owner]; d.OwnerKind != recording.OwnerContainer || d.Cgroup != n.ID {
		t.Errorf("the neighbour is defined as %+v", d)
	}
	throttlers, wakers := 0, 0
	for _, e := range rec.Events {
		if e.Kind == recording.Switch && e.Flags&recording.Throttled != 0 && e.Cgroup == c.ID {
			throttlers++
		}
		if e.Kind == recording.Wakeup && (e.Owner != 0 || e.Waker != 0) {
			wakers++
		}
	}
	if throttlers < 3 || wakers == 0 {
		t.Errorf("%d threads throttled by the container's own quota, %d wake-ups with a known waker", throttlers, wakers)
	}
	times := int64(0)
	for _, th := range f.Threads {
		times += th.UserNS + th.KernelNS
	}
	// The kernel samples these with its ticks, many of which an emulated CPU misses.
	off := 0.25
	if require.InLab() {
		off = 0.95
	}
	if !near(float64(times), integral(f.WidthNS), off, float64(8*tick)) || times == 0 {
		t.Errorf("threads used %d ns, the container %.0f", times, integral(f.WidthNS))
	}
	// Some of the workload's threads may start after the recording.
	if len(rec.Header.Threads) < 3 || rec.Header.Features.Mark == "" || !rec.Header.Features.Periods {
		t.Errorf("header %+v", rec.Header)
	}
	t.Logf("%d events %v, stopped %d ms", len(rec.Events), r.kinds, *f.StoppedNS/1e6)
}

// TestRecordingOfAnAncestorsQuota checks that the throttling level is named, whichever child waits.
func TestRecordingOfAnAncestorsQuota(t *testing.T) {
	require.EachCgroup(t, "the ids of cgroups and their quotas")
	p := shared(t)
	tr := cgrouptest.New(t)
	pod := container(t, tr, tr.Make("pod"))
	c := container(t, tr, tr.Make("pod/c"))
	tr.Limit(pod.Path, 0.3)
	tr.Work(c.Path, 3)
	rec := record(t, p, tr, c, 1500*time.Millisecond)
	r := follow(t, rec)
	r.agrees(rec)
	throttlers := map[uint64]int{}
	for _, e := range rec.Events {
		if e.Kind == recording.Switch && e.Flags&recording.Throttled != 0 {
			throttlers[e.Cgroup]++
		}
		if e.Kind == recording.Period && e.Cgroup != pod.ID {
			t.Errorf("a period of %d; only the pod %d has a quota", e.Cgroup, pod.ID)
		}
	}
	if throttlers[pod.ID] < 3 || throttlers[c.ID] > 0 || r.kinds[recording.Period] < 10 {
		t.Errorf("throttled by %v, want the pod %d; %d periods", throttlers, pod.ID, r.kinds[recording.Period])
	}
}

// TestRecordingOfMoves checks that threads that start, end and change their cgroup keep the recording consistent.
func TestRecordingOfMoves(t *testing.T) {
	require.EachCgroup(t, "the ids of cgroups and their quotas")
	require.Alone(t, "how many moves take place while it records: each waits for all CPUs (cgroup_threadgroup_rwsem)")
	p := shared(t)
	tr := cgrouptest.New(t)
	// A move waits for the kernel's RCU thread, which eight times its weight of busy threads kept off the CPU for seconds.
	tr.Weigh(tr.Top, cgroup.DefaultShares)
	c, away := container(t, tr, tr.Make("a")), container(t, tr, tr.Make("b"))
	below := tr.Make("d/below")
	mover := start(t, tr, c.Path, "burn", "1", "2")
	forker := start(t, tr, c.Path, "fork")
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for moves := 0; ; moves++ {
			select {
			case <-stop:
				return
			case <-time.After(60 * time.Millisecond):
				attach(t, tr, []string{away.Path, c.Path, below}[moves%3], mover.Process.Pid)
			}
		}
	}()
	// A move may take seconds where the host is busy: then it is recorded for longer. A thread that is moved while it waits
	// leaves when it next runs.
	var rec recording.Recording
	var missing []recording.Kind
	for length := 1800 * time.Millisecond; length < time.Minute; length *= 2 {
		rec = record(t, p, tr, c, length, away)
		missing = slices.DeleteFunc([]recording.Kind{recording.Enter, recording.Leave, recording.Exit, recording.Name},
			func(k recording.Kind) bool {
				return slices.ContainsFunc(rec.Events, func(e recording.Event) bool { return e.Kind == k })
			})
		if len(missing) == 0 {
			break
		}
	}
	close(stop)
	<-done
	for _, busy := range []running{mover, forker} {
		must(t, busy.Process.Kill())
	}
	r := follow(t, rec)
	r.agrees(rec)
	if len(missing) > 0 {
		t.Errorf("no event of the kinds %d: %v", missing, r.kinds)
	}
	t.Log(r.kinds)
}

// TestRecordingOfExec: a thread that takes over its process's first number keeps its own in the recording, and sleeps when
// it sleeps.
func TestRecordingOfExec(t *testing.T) {
	p := shared(t)
	tr := cgrouptest.New(t)
	c := container(t, tr, tr.Make("a"))
	done := make(chan struct{})
	go func() {
		defer close(done)
		time.Sleep(200 * time.Millisecond)
		for range 5 {
			start(t, tr, c.Path, "exec")
		}
	}()
	rec := record(t, p, tr, c, 2*time.Second)
	<-done
	r := follow(t, rec)
	if !require.InLab() { // there five processes take so long to be moved in that wanted was 0.5 % apart: see TestRecordingOfMoves
		r.agrees(rec)
	}
	for tid, s := range r.threads {
		if s.State != recording.Sleeping {
			t.Errorf("thread %d is in state %v at the end; all sleep", tid, s.State)
		}
	}
}

// TestRenames checks that a thread that renames itself all the time does not fill the recording.
func TestRenames(t *testing.T) {
	p := shared(t)
	tr := cgrouptest.New(t)
	c := container(t, tr, tr.Make("a"))
	tr.Limit(c.Path, 1)
	start(t, tr, c.Path, "rename")
	rec := record(t, p, tr, c, time.Second)
	names, renamed := 0, 0
	for _, e := range rec.Events {
		if e.Kind == recording.Name {
			names++
			if strings.HasPrefix(e.Text, "n") {
				renamed++
			}
		}
	}
	if renamed < 1 || names > 150 {
		t.Errorf("%d names were told in a second, %d of them new ones", names, renamed)
	}
	follow(t, rec).agrees(rec)
}

// TestLostEventsAreCounted checks that the events lost with a ring of a page are all reported.
func TestLostEventsAreCounted(t *testing.T) {
	p := open(t, probe.Options{RingBytes: 4096})
	tr := cgrouptest.New(t)
	c := container(t, tr, tr.Make("a"))
	// It sleeps at both ends: permanent switching leaves a slow machine no moment to read its CPUs (stillTries).
	pair := start(t, tr, c.Path, "pingpong", "100000000").Process
	must(t, pair.Signal(unix.SIGSTOP))
	for at, signal := range map[time.Duration]os.Signal{300 * time.Millisecond: unix.SIGCONT, 1200 * time.Millisecond: unix.SIGSTOP} {
		timer := time.AfterFunc(at, func() { _ = pair.Signal(signal) })
		defer timer.Stop()
	}
	rec := record(t, p, tr, c, 1500*time.Millisecond)
	var told uint64
	switches := 0
	for _, e := range rec.Events {
		switch e.Kind {
		case recording.Lost:
			told += e.Count
		case recording.Switch:
			switches++
		}
	}
	f := rec.Footer
	if f.LostEvents == 0 || told == 0 || switches == 0 {
		t.Fatalf("%d lost by the footer, %d by the events, %d switches", f.LostEvents, told, switches)
	}
	// The footer's count includes events lost after the last one that got through, and before the start.
	if told > f.LostEvents || float64(told) < 0.8*float64(f.LostEvents) {
		t.Errorf("%d lost by the events, %d by the footer", told, f.LostEvents)
	}
	if !near(integral(f.WidthNS), float64(sum(f.OnCPUNS)), 0.001, float64(f.LateNS)) {
		t.Errorf("what was counted is off: %.0f and %d", integral(f.WidthNS), sum(f.OnCPUNS))
	}
}

func sum(m map[int]int64) (n int64) {
	for _, v := range m {
		n += v
	}
	return n
}

func TestRecordRefuses(t *testing.T) {
	p := shared(t)
	tr := cgrouptest.New(t)
	c := container(t, tr, tr.Make("a"))
	sink := func(*recording.Event) error { return nil }
	for what, o := range map[string]probe.RecordOptions{
		"no time":     {Target: c},
		"too long":    {Target: c, For: 2 * probe.MaxRecording},
		"no id":       {For: time.Second},
		"a bad begin": {Target: c, For: 100 * time.Millisecond, Begin: func(*recording.Header) error { return errBroken }},
	} {
		if _, err := p.Record(t.Context(), o, sink); err == nil {
			t.Errorf("%s: no error", what)
		}
	}
	if _, err := p.Record(t.Context(), probe.RecordOptions{Target: c, For: time.Second}, nil); err == nil {
		t.Error("without a sink: no error")
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	busy := make(chan error, 1)
	f, err := p.Record(ctx, probe.RecordOptions{Target: c, For: time.Hour, Begin: func(*recording.Header) error {
		_, err := p.Record(t.Context(), probe.RecordOptions{Target: c, For: time.Second}, sink)
		busy <- err
		time.AfterFunc(200*time.Millisecond, cancel)
		return nil
	}}, sink)
	if err != nil || f.EndNS <= 0 || f.EndNS > 30e9 {
		t.Errorf("ended by its context: %+v, %v", f, err)
	}
	if err := <-busy; !errors.Is(err, probe.ErrBusy) {
		t.Errorf("a second recording at once: %v", err)
	}
}

var errBroken = errors.New("broken")
