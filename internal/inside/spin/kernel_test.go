package spin

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/inside"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/load/cgrouptest"
	"github.com/unthrottle/unthrottle/internal/load/workload"
	"github.com/unthrottle/unthrottle/test/lab/require"
)

// lookEnv makes this test binary look with a trial of that length, as soon as it reads a byte, and print what it saw.
const lookEnv = "UNTHROTTLE_TEST_LOOK"

// seen is what such a child prints. Begun is of the host's monotonic clock.
type seen struct {
	Begun   time.Duration
	Result  Result
	Limited *bool
	Stops   inside.Stops
}

func TestMain(m *testing.M) {
	trial, err := time.ParseDuration(os.Getenv(lookEnv))
	if err != nil {
		cgrouptest.Child()
		os.Exit(m.Run())
	}
	_, _ = io.ReadFull(os.Stdin, make([]byte, 1))
	s := seen{Begun: workload.Now()}
	if s.Result, err = Look(context.Background(), 10*time.Second, trial); err == nil {
		s.Limited, s.Stops = s.Result.Finding.Limited, s.Result.Finding.Stops(s.Result.Watch.Gaps, s.Result.Watch.Start, s.Result.Watch.End)
		err = json.NewEncoder(os.Stdout).Encode(s)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// throttledAt are the kernel's counts of throttled periods, by its monotonic clock.
type throttledAt struct {
	at []time.Duration
	n  []uint64
}

// before is the count at a moment.
func (c throttledAt) before(at time.Duration) uint64 {
	last := uint64(0)
	for i, t := range c.at {
		if t <= at {
			last = c.n[i]
		}
	}
	return last
}

// lookIn looks in a cgroup, and reads the kernel's counts from outside meanwhile.
func lookIn(t *testing.T, tr *cgrouptest.Tree, path string, trial time.Duration) (seen, throttledAt) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), lookEnv+"="+trial.String())
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := tr.Host.Attach(cgroup.CPU, path, cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	if _, err := in.Write([]byte{1}); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	counts := make(chan throttledAt)
	go func() {
		var c throttledAt
		defer func() { counts <- c }()
		for {
			text, err := tr.Host.Read(cgroup.CPU, path, cgroup.FileStat)
			if stat, parsed := cgroup.ParseCPUStat([]byte(text)); err == nil && parsed == nil {
				c.at, c.n = append(c.at, workload.Now()), append(c.n, stat.ThrottledPeriods)
			}
			select {
			case <-ended:
				return
			case <-time.After(2 * time.Millisecond):
			}
		}
	}()
	text, readErr := io.ReadAll(out)
	err = cmd.Wait()
	close(ended)
	c := <-counts
	if err != nil || readErr != nil {
		t.Fatal(err, readErr)
	}
	var s seen
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return s, c
}

// TestQuotas finds real quotas and counts real stops, with work beside it and without. The sandbox has eight times the weight of
// other work, and a quota that stops the work for good part of each period shows beside turns of others.
func TestQuotas(t *testing.T) {
	require.Alone(t, "gaps of a thread that burns with the kernel's counts")
	require.Kernel(t)
	type quota struct {
		quota, period, burst time.Duration
		burners              int
		trial                time.Duration
	}
	cases := []quota{
		{20 * time.Millisecond, 100 * time.Millisecond, 0, 2, LeastTrial},
		{20 * time.Millisecond, 100 * time.Millisecond, 0, 0, LeastTrial},
		{50 * time.Millisecond, 100 * time.Millisecond, 0, 1, LeastTrial},
		{5 * time.Millisecond, 20 * time.Millisecond, 0, 2, LeastTrial},
		{150 * time.Millisecond, 100 * time.Millisecond, 0, 2, LeastTrial},
		{400 * time.Millisecond, time.Second, 400 * time.Millisecond, 1, 5 * time.Second},
	}
	if !require.All() { // each looks for ten seconds
		cases = cases[:1]
	}
	for _, c := range cases {
		t.Run(fmt.Sprintf("%v of %v beside %d", c.quota, c.period, c.burners), func(t *testing.T) {
			tr := cgrouptest.New(t)
			path := tr.Make("look")
			tr.Weigh(tr.Top, cgroup.MaxShares)
			v, _ := tr.Host.Version(cgroup.CPU)
			limit := cgroup.Limit{Quota: c.quota, Period: c.period, Burst: c.burst}
			for _, w := range cgroup.LimitWrites(v, cgroup.Unlimited(), limit, false) {
				if err := tr.Host.Write(cgroup.CPU, path, w.File, w.Value); err != nil {
					t.Fatal(err)
				}
			}
			if c.burners > 0 {
				tr.Work(path, c.burners)
			}
			s, counts := lookIn(t, tr, path, c.trial)
			f, w := s.Result.Finding, s.Result.Watch
			if s.Limited == nil {
				t.Fatalf("not known: %s", f.Why)
			}
			cost := float64(w.Spent) / float64(w.End-w.Start) / f.LimitCPUs()
			counted := int(counts.before(s.Begun+w.End) - counts.before(s.Begun+w.Start))
			t.Logf("quota %v, period %v; stops %d, the kernel's %d; %v in all, the longest %v; cost %.1f %% of the "+
				"limit, looks up to %v apart",
				f.Quota, f.Period, s.Stops.Periods, counted, s.Stops.Total, s.Stops.Longest, 100*cost, w.Interval)
			if (f.Period - c.period).Abs() > time.Millisecond {
				t.Errorf("period %v", f.Period)
			}
			if share := float64(f.Quota) / float64(c.quota); math.Abs(share-1) > 0.1 {
				t.Errorf("quota %v", f.Quota)
			}
			if off := math.Abs(float64(s.Stops.Periods - counted)); off > max(2, 0.1*float64(counted)) {
				t.Errorf("%d stops, the kernel counted %d", s.Stops.Periods, counted)
			}
			if cost > Share {
				t.Errorf("the watch used %.1f %% of the limit", 100*cost)
			}
		})
	}
}

// TestWithoutQuota claims no stop, with work beside it and without.
func TestWithoutQuota(t *testing.T) {
	require.Alone(t, "gaps of a thread that burns with those that no quota makes")
	require.Kernel(t)
	for _, burners := range []int{0, 3} {
		tr := cgrouptest.New(t)
		path := tr.Make("look")
		if burners > 0 {
			tr.Work(path, burners)
		}
		s, _ := lookIn(t, tr, path, LeastTrial)
		if s.Limited != nil && *s.Limited || s.Stops.Periods != 0 {
			t.Errorf("beside %d: %+v, %+v", burners, s.Result.Finding, s.Stops)
		}
	}
}
