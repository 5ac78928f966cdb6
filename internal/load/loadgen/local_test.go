package loadgen

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/load/workload/service"
	"github.com/unthrottle/unthrottle/internal/scenario"
	"github.com/unthrottle/unthrottle/test/lab/require"
)

const ms = time.Millisecond

// one is a service of one pool.
func one(threads, queue int, work time.Duration) service.Spec {
	return service.Spec{
		IO: 1, Pools: []service.Pool{{Name: "http-worker", Threads: threads, Queue: queue}},
		Classes:  []service.Class{{Name: "get", Pool: "http-worker", Work: scenario.Fixed(work)}},
		Deadline: time.Minute,
	}
}

func serving(t *testing.T, spec service.Spec) *service.Process {
	t.Helper()
	p, err := service.Start("", spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
	})
	if err := p.Go(); err != nil {
		t.Fatal(err)
	}
	if err := p.Disturbed(); err != nil && !errors.Is(err, unix.EPERM) {
		t.Error(err)
	}
	return p
}

func run(t *testing.T, p Plan) Result {
	t.Helper()
	r, err := Run(context.Background(), "", p)
	if err != nil {
		t.Fatal(err)
	}
	for i, phase := range r.Phases {
		for j, s := range phase.Streams {
			if s.Intended != s.Answered+s.Failed+s.Unfinished+s.Unsent {
				t.Errorf("phase %d stream %d: requests got lost: %+v", i, j, s)
			}
			if s.Latency.Count() != s.Intended-s.Unsent {
				t.Errorf("phase %d stream %d: %d latencies of %+v", i, j, s.Latency.Count(), s)
			}
		}
	}
	return r
}

func steady(addr string, perSecond float64, d time.Duration) Plan {
	return Plan{
		Addr: addr, Seed: 1, Streams: []Stream{{Name: "get", PerSecond: perSecond}},
		Phases: []Phase{{For: d, Factor: 1, Measured: true}},
	}
}

func TestEveryRequestIsAnswered(t *testing.T) {
	require.Kernel(t)
	p := serving(t, one(2, 1000, 200*time.Microsecond))
	r := run(t, steady(p.Addr(), 300, time.Second))
	s := r.Phases[0].Streams[0]
	if s.Answered < 200 || s.Errors() != 0 || s.Tries != s.Answered {
		t.Errorf("%+v", s)
	}
	if least, ok := s.Latency.Quantile(0, 0); !ok || least < 200*time.Microsecond {
		t.Errorf("an answer after %v: its work alone takes 200 µs of CPU", least)
	}
	counted, err := p.Stats()
	if err != nil || counted.Served != s.Answered || counted.Refused != 0 {
		t.Errorf("the service counts %+v, %v", counted, err)
	}
}

// A latency must count from the intended time though the service is stopped and
// nothing can be sent or answered meanwhile.
func TestLatencyCountsFromTheIntendedTime(t *testing.T) {
	require.Kernel(t)
	p := serving(t, one(1, 1000, 300*ms))
	plan := steady(p.Addr(), 0, time.Second)
	plan.Streams[0].PerSecond = 0
	plan.Streams[0].At = []time.Duration{0, 0, 0}
	plan.Drain = 20 * time.Second
	s := run(t, plan).Phases[0].Streams[0]
	if s.Answered != 3 {
		t.Fatalf("%+v", s)
	}
	// One thread: the third waits for two others.
	if most, _ := s.Latency.Max(); most < 895*ms {
		t.Errorf("the longest took %v: three times 300 ms of work on one thread", most)
	}
}

func TestAFullQueueRefuses(t *testing.T) {
	require.Kernel(t)
	p := serving(t, one(1, 2, 50*ms))
	plan := steady(p.Addr(), 0, 100*ms)
	plan.Streams[0].PerSecond, plan.Streams[0].At = 0, make([]time.Duration, 20)
	plan.Drain = 20 * time.Second
	r := run(t, plan)
	s := r.Phases[0].Streams[0]
	if s.Answered < 2 || s.Answered > 4 || s.Failed != 20-s.Answered || s.Refused != s.Failed {
		t.Errorf("%+v", s)
	}
	if !strings.Contains(r.FirstFailure, "queue") {
		t.Errorf("first failure %q", r.FirstFailure)
	}
}

func TestTimeoutsAndRetries(t *testing.T) {
	require.Kernel(t)
	p := serving(t, one(1, 1000, 100*ms))
	plan := steady(p.Addr(), 0, 100*ms)
	plan.Streams[0].PerSecond, plan.Streams[0].At = 0, make([]time.Duration, 4)
	plan.Timeout, plan.Drain = 20*ms, 20*time.Second
	plan.Retries.Max = 2
	s := run(t, plan).Phases[0].Streams[0]
	// 100 ms of work never end within 20 ms: each is tried three times in vain.
	if s.Failed != 4 || s.TimedOut != 12 || s.Tries != 12 {
		t.Errorf("%+v", s)
	}
	plan.Retries.Budget = 0.5
	s = run(t, plan).Phases[0].Streams[0]
	if s.Failed != 4 || s.Tries != 4+2 {
		t.Errorf("4 requests earn 2 retries: %+v", s)
	}
}

func TestUnfinishedRequestsCountWithWhatTheyHaveTaken(t *testing.T) {
	require.Kernel(t)
	p := serving(t, one(1, 1000, 10*time.Second))
	plan := steady(p.Addr(), 0, 100*ms)
	plan.Streams[0].PerSecond, plan.Streams[0].At = 0, make([]time.Duration, 2)
	plan.Drain = 200 * ms
	s := run(t, plan).Phases[0].Streams[0]
	if most, _ := s.Latency.Max(); s.Unfinished != 2 || most < 300*ms {
		t.Errorf("%+v, longest %v", s, most)
	}
}

func TestThreadsAreNamedAsInRealServices(t *testing.T) {
	require.Kernel(t)
	spec := one(2, 10, ms)
	spec.IO = 2
	spec.GC = &service.GC{Threads: 3, Work: ms, Requests: 10}
	p := serving(t, spec)
	names := map[string]bool{}
	dir := "/proc/" + strconv.Itoa(p.Pid()) + "/task/"
	tasks, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		name, _ := os.ReadFile(dir + task.Name() + "/comm")
		names[strings.TrimSpace(string(name))] = true
	}
	for _, want := range []string{"http-worker-1", "http-worker-2", "io-1", "io-2", "gc-1", "gc-2", "gc-3", "vm"} {
		if !names[want] {
			t.Errorf("no thread %s among %v", want, names)
		}
	}
}

func TestCollectionsStopTheService(t *testing.T) {
	require.Kernel(t)
	spec := one(2, 1000, ms)
	spec.GC = &service.GC{Threads: 2, Work: 20 * ms, Requests: 50}
	p := serving(t, spec)
	s := run(t, steady(p.Addr(), 200, time.Second)).Phases[0].Streams[0]
	st, err := p.Stats()
	if err != nil {
		t.Fatal(err)
	}
	// At least one per 50 served, but for one that was due while another ran.
	if want := int(s.Answered/50) - 1; st.GC.Collections < want || st.GC.Collections > want+1 {
		t.Errorf("%d collections for %d requests", st.GC.Collections, s.Answered)
	}
	// 20 ms of CPU by two threads on any number of CPUs: 10 ms at least.
	if st.GC.PausedSeconds < float64(st.GC.Collections)*0.0095 || st.GC.LongestMs < 9.5 {
		t.Errorf("pauses are too short: %+v", st.GC)
	}
}

func TestWorkOnIOThreads(t *testing.T) {
	require.Kernel(t)
	spec := one(1, 10, ms)
	spec.Classes[0].Pool = ""
	p := serving(t, spec)
	if s := run(t, steady(p.Addr(), 100, 500*ms)).Phases[0].Streams[0]; s.Errors() != 0 || s.Answered < 20 {
		t.Errorf("%+v", s)
	}
}

func TestSharedDataAndLocks(t *testing.T) {
	require.Kernel(t)
	spec := one(2, 1000, ms)
	spec.Pools[0].PerThread = true
	spec.Shared = 1 << 20
	spec.Classes[0].Touches, spec.Classes[0].Locked = 1000, 0.5
	spec.Inflate = 0.1
	p := serving(t, spec)
	if s := run(t, steady(p.Addr(), 100, 500*ms)).Phases[0].Streams[0]; s.Errors() != 0 {
		t.Errorf("%+v", s)
	}
}

func TestServiceThatEnds(t *testing.T) {
	require.Kernel(t)
	spec := one(1, 10, ms)
	spec.Deadline = 3 * time.Second // of which starting it is a part
	p := serving(t, spec)
	_, err := Run(context.Background(), "", steady(p.Addr(), 10, 30*time.Second))
	if err == nil || !strings.Contains(err.Error(), "closed") {
		t.Errorf("got %v", err)
	}
	if _, err := Run(context.Background(), "", steady("@unthrottle-none", 10, time.Second)); err == nil ||
		!strings.Contains(err.Error(), "no service") {
		t.Errorf("got %v", err)
	}
}

func TestInterrupted(t *testing.T) {
	require.Kernel(t)
	p := serving(t, one(1, 10, ms))
	ctx, cancel := context.WithTimeout(context.Background(), 100*ms)
	defer cancel()
	if _, err := Run(ctx, "", steady(p.Addr(), 10, time.Minute)); err != context.DeadlineExceeded {
		t.Errorf("got %v", err)
	}
}

// A thread that waits for the lock must not keep a collection from beginning while the holder is stopped at a
// safepoint: the service would stand still for good.
func TestCollectionsBesideALock(t *testing.T) {
	require.Kernel(t)
	spec := one(4, 1000, 2*time.Millisecond)
	spec.Classes[0].Locked = 0.9
	spec.GC = &service.GC{Threads: 2, Work: time.Millisecond, Requests: 3}
	p := serving(t, spec)
	plan := steady(p.Addr(), 200, time.Second)
	plan.Drain = 10 * time.Second
	if s := run(t, plan).Phases[0].Streams[0]; s.Answered < 100 || s.Unfinished != 0 || s.Errors() != 0 {
		t.Errorf("%+v", s)
	}
}
