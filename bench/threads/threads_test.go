package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/load/sandbox"
	"github.com/unthrottle/unthrottle/libs/go/budget"
	"github.com/unthrottle/unthrottle/test/lab/require"
	"github.com/unthrottle/unthrottle/test/study"
)

func TestMain(m *testing.M) {
	if done, err := asChild(os.Args[1:]); done {
		exit(err)
	}
	os.Exit(m.Run())
}

// The published page is what its records say.
func TestThePageIsOfItsRecords(t *testing.T) {
	lines, err := study.ReadLines[piece]("records.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../docs/results/threads.md")
	if err != nil {
		t.Fatal(err)
	}
	want, err := page(lines.All)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("docs/results/threads.md is out of date: make results-threads; it would read\n%s", want)
	}
}

// The error of a forecast's row of the library is that of the records.
func TestTheErrorOfForecastsIsOfTheRecords(t *testing.T) {
	lines, err := study.ReadLines[piece]("records.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../internal/sim/forecast/budget.json")
	if err != nil {
		t.Fatal(err)
	}
	want, err := budgetJSON(lines.All)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("internal/sim/forecast/budget.json is out of date: make results-threads; it would be\n%s", want)
	}
}

func pageOf(t *testing.T, pieces []piece) string {
	t.Helper()
	text, err := page(pieces)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Each piece of the records is in the page, with the controls among them.
func TestThePageHasEachVariant(t *testing.T) {
	lines, err := study.ReadLines[piece]("records.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	text := pageOf(t, lines.All)
	for _, p := range lines.All {
		planned := p.Part == partFinagle && slices.Contains(finagleVariants, p.Variant) || slices.ContainsFunc(plan, func(s step) bool {
			return s.part == p.Part && s.limit == p.Limit && slices.Contains(s.variants, p.Variant)
		})
		if !planned || !strings.Contains(text, fmt.Sprintf("\n| %s | ", p.Variant)) {
			t.Errorf("%s under %g CPUs, %s, round %d: no page has it", p.Part, p.Limit, p.Variant, p.Round)
		}
	}
}

func TestMissedAimsComeFirst(t *testing.T) {
	pieceOf := func(limit float64, v variant, throttled uint64, p99 float64) piece {
		return piece{Part: partBursts, Limit: limit, Variant: v, Periods: 100, Throttled: throttled, PingP99MS: p99,
			Works: 10, WorksDone: 10}
	}
	text := pageOf(t, []piece{pieceOf(0.7, plain, 50, 100), pieceOf(0.7, paced, 4, 30), {Part: partSpiral, Limit: 0.5, Variant: shedAt},
		{Part: partSpiral, Limit: 0.5, Variant: plain, RecoveredS: new(2.0)}})
	for _, want := range []string{"0.7 CPUs: ping p99 over that of `plain` | 0.30 | 0.2 | MISSED", "the worst round | 10.00 | 3 | MISSED",
		"0.7 CPUs: share of throttled periods over that of `plain` | 0.08 | 0.1 | met",
		"0.7 CPUs: work done over that of `plain` | 1.00 | 0.95 | met"} {
		_, rest, ok := strings.Cut(text, want)
		if !ok {
			t.Fatalf("no %q, in this order, in\n%s", want, text)
		}
		text = rest
	}
	text = pageOf(t, []piece{pieceOf(0.7, plain, 50, 100), {Part: partNetty, Limit: 0.7, Variant: nettyInline, Periods: 100,
		Throttled: 50, PingP99MS: 100, Works: 10, WorksDone: 10},
		{Part: partNetty, Limit: 0.7, Variant: nettyPaced, Periods: 100, Throttled: 4, PingP99MS: 30, Works: 10, WorksDone: 10}})
	for _, want := range []string{"0.7 CPUs, Netty: ping p99 over that of `Netty, work on the event loops` | 0.30 | 0.2 | MISSED",
		"0.7 CPUs, Netty: share of throttled periods over that of `Netty, work on the event loops` | 0.08 | 0.1 | met"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if text := pageOf(t, nil); !strings.Contains(text, "Nothing is measured yet") {
		t.Error(text)
	}
}

func TestRecovered(t *testing.T) {
	answersOf := func(bad ...time.Duration) (all []answer) {
		for at := time.Duration(0); at < spiralFor; at += 100 * time.Millisecond {
			a := answer{At: at, MS: 10, OK: true}
			for _, second := range bad {
				if at >= second && at < second+time.Second {
					a.MS = 300
				}
			}
			all = append(all, a)
		}
		return all
	}
	for want, answers := range map[float64][]answer{0: answersOf(3 * time.Second), 1: answersOf(5 * time.Second),
		3: answersOf(5*time.Second, 7*time.Second)} {
		if got := recovered(answers, spiralFor, spiralTimeout); got == nil || *got != want {
			t.Errorf("%v, want %v", got, want)
		}
	}
	if got := recovered(answersOf(14*time.Second), spiralFor, spiralTimeout); got != nil {
		t.Errorf("bad in the last second: %v", *got)
	}
}

// onTheKernel is where pieces are measured, on a real kernel; what it made goes with the test.
func onTheKernel(t *testing.T) *bench {
	t.Helper()
	require.Root(t)
	require.CgroupV1(t)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b, err := open(exe)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.box.Remove(); err != nil {
			t.Errorf("left behind: %v", err)
		}
	})
	return b
}

// On a real kernel, under 0.7 and 1.5 CPUs, a real service with the library is stopped in fewer periods than without, and does
// its work. Latencies are of the study: they depend on what else the host does.
func TestTheKernelStopsFewerPeriods(t *testing.T) {
	require.TestAll(t, "it is the study, in short; TestTheLimitIsFollowed runs the same service")
	b := onTheKernel(t)
	for _, c := range []struct {
		limit float64
		works int
	}{{0.7, 6}, {1.5, 12}} {
		var got [2]piece
		for i, v := range []variant{plain, paced} {
			var err error
			if got[i], err = b.bursts(v, c.limit, c.works, 3*time.Second); err != nil {
				t.Fatal(err)
			}
		}
		said := fmt.Sprintf("%g CPUs: %d of %d periods throttled without, %d of %d with; ping p99 %.1f and %.1f ms", c.limit,
			got[0].Throttled, got[0].Periods, got[1].Throttled, got[1].Periods, got[0].PingP99MS, got[1].PingP99MS)
		t.Log(said)
		if got[0].Throttled < 3 {
			t.Logf("%g CPUs: the service without the library is hardly throttled here, so that there is nothing to compare", c.limit)
			continue
		}
		if throttledShare(got[1]) > throttledShare(got[0])/2 {
			t.Errorf("%s: more than half", said)
		}
		if got[1].WorksDone*20 < got[0].WorksDone*19 {
			t.Errorf("%g CPUs: %d works done with the library, %d without", c.limit, got[1].WorksDone, got[0].WorksDone)
		}
	}
}

// A limit that is written while the service runs is followed, and so is one that goes away and one of a parent.
func TestTheLimitIsFollowed(t *testing.T) {
	b := onTheKernel(t)
	limitOf := func(quota time.Duration) cgroup.Limit { return cgroup.Limit{Quota: quota, Period: period} }
	g, service, err := b.child(limitOf(70*time.Millisecond), nil, b.exe, "-service", string(paced))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := service.end(); err != nil {
			t.Error(err)
		}
	})
	if _, err := io.WriteString(service.in, "start\n"); err != nil {
		t.Fatal(err)
	}
	address, err := service.out.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	see := func(want float64, procs, permits int) {
		t.Helper()
		var s budget.Snapshot
		for begun := time.Now(); time.Since(begun) < time.Minute; time.Sleep(20 * time.Millisecond) {
			r, err := http.Get("http://" + strings.TrimSpace(address) + "/snapshot")
			if err != nil {
				t.Fatal(err)
			}
			s = budget.Snapshot{}
			err = json.NewDecoder(r.Body).Decode(&s)
			r.Body.Close()
			if err != nil {
				t.Fatal(err)
			}
			if (s.LimitCPUs == nil) == (want == 0) && (want == 0 || *s.LimitCPUs == want) && s.GOMAXPROCS == procs &&
				s.Classes[budget.App].Permits == permits {
				t.Logf("%g CPUs after %v", want, time.Since(begun).Round(time.Millisecond))
				return
			}
		}
		t.Fatalf("a limit of %g CPUs was not followed within a minute: %+v", want, s)
	}
	see(0.7, 2, 1)
	// v1 refuses a child's quota above its parent's.
	top := b.box.Top()
	for _, step := range []struct {
		group *sandbox.Group
		limit cgroup.Limit
		want  float64
		procs int
		app   int // permits
	}{
		{g, limitOf(150 * time.Millisecond), 1.5, 3, 2}, {g, limitOf(50 * time.Millisecond), 0.5, 2, 1},
		{top, limitOf(110 * time.Millisecond), 0.5, 2, 1},
		{g, cgroup.Unlimited(), 1.1, 3, 2}, {top, cgroup.Unlimited(), 0, 0, 0},
	} {
		if err := step.group.SetLimit(step.limit); err != nil {
			t.Fatal(err)
		}
		see(step.want, step.procs, step.app)
	}
}

// A child says what is wrong, and what it started is removed.
func TestAChildThatFailsIsSaid(t *testing.T) {
	require.Root(t)
	require.CgroupV1(t)
	missing := filepath.Join(t.TempDir(), "missing")
	b, err := open(missing)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.bursts(plain, 0.7, 1, time.Second); err == nil || !strings.Contains(err.Error(), missing) {
		t.Errorf("%v", err)
	}
	if err := b.box.Remove(); err != nil {
		t.Error(err)
	}
}
