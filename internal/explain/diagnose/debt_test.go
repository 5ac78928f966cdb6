package diagnose_test

import (
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/see/recording"
	rt "github.com/unthrottle/unthrottle/internal/see/recording/recordingtest"
)

// reading is a thread that reads /dev/zero in one system call. It runs for long although its quota is 10 ms.
// The kernel parks it as it returns to user mode, and it pays with whole periods.
func reading(runs time.Duration, parkedUntil time.Duration) recording.Recording {
	s := rt.New(2).Limit(10*ms, 100*ms)
	tid := s.Threads("reader", 1)[0]
	r := s.Run(0)
	add := func(at time.Duration, e recording.Event) {
		e.AtNS = at.Nanoseconds()
		r.Events = append(r.Events, e)
	}
	parked := time.Duration(0)
	for at := time.Duration(0); at < 2*time.Second; at += 100 * ms {
		if at > 0 {
			stopped := uint32(0)
			if at%(time.Second) <= parkedUntil {
				stopped = 1
			}
			add(at, recording.Event{Kind: recording.Period, Cgroup: rt.ContainerID,
				Period: recording.PeriodState{QuotaNS: 10_000_000, StoppedCPUs: stopped}})
		}
		if at%time.Second == 0 {
			add(at, recording.Event{Kind: recording.Wakeup, Thread: tid})
			add(at, recording.Event{Kind: recording.Switch, NextThread: tid})
			add(at+runs, recording.Event{Kind: recording.Switch, Thread: tid,
				Flags: recording.PrevRunnable | recording.Throttled, Cgroup: rt.ContainerID})
			parked = at + parkedUntil
		}
		if at == parked {
			add(at, recording.Event{Kind: recording.Release, Thread: tid})
			add(at, recording.Event{Kind: recording.Switch, NextThread: tid})
			add(at+ms, recording.Event{Kind: recording.Switch, Thread: tid})
		}
	}
	r.Footer = recording.Footer{EndNS: (2 * time.Second).Nanoseconds(),
		Threads: []recording.ThreadTime{{TID: tid, UserNS: 1, KernelNS: 99}}}
	return r
}

func TestDebt(t *testing.T) {
	e := explain(reading(60*ms, 600*ms))
	t.Log(e.Verdict)
	if e.Cause != diagnose.Debt {
		t.Fatalf("%+v", e.Causes)
	}
	for _, s := range []string{"pool `reader-*`", "10 ms quota", "60 ms in a period", "540 ms (5.4 periods)"} {
		if !strings.Contains(e.Verdict, s) {
			t.Errorf("the verdict lacks %q", s)
		}
	}
	if !strings.Contains(e.Causes[0].Evidence, "99 % of its CPU time was in the kernel") {
		t.Error(e.Causes[0].Evidence)
	}
}

// An overshoot that a tick noticed too late, and that one refill pays, is no debt.
func TestATickTooMuchIsNoDebt(t *testing.T) {
	for _, c := range explain(reading(17*ms, 100*ms)).Causes {
		if c.Cause == diagnose.Debt {
			t.Errorf("%s", c.Evidence)
		}
	}
}

// A debt is measured in periods of its own quota, also where an ancestor has a smaller limit with another period.
func TestDebtBelowAnotherPeriod(t *testing.T) {
	debtOf := func(r recording.Recording, quota, period time.Duration) (stopped time.Duration) {
		if period > 0 {
			r.Header.Levels[1].QuotaNS, r.Header.Levels[1].PeriodNS = new(quota.Nanoseconds()), period.Nanoseconds()
		}
		for _, c := range explain(r).Causes {
			if c.Cause == diagnose.Debt && c.Stopped != nil {
				stopped = *c.Stopped
			}
		}
		return stopped
	}
	alone := debtOf(reading(60*ms, 600*ms), 0, 0)
	if below := debtOf(reading(60*ms, 600*ms), 90*ms, time.Second); alone == 0 || below != alone {
		t.Errorf("a debt of %v is %v below a period of 1 s", alone, below)
	}
	// The rest of a period is no whole one, however short an ancestor's are.
	if told := debtOf(reading(19*ms, 100*ms), ms*9/10, 10*ms); told != 0 {
		t.Errorf("a debt of %v by a stop that is shorter than a period", told)
	}
}

// Lost events make the verdict doubtful, and it says so.
func TestLostEventsLowerConfidence(t *testing.T) {
	r := reading(60*ms, 600*ms)
	r.Events = append(r.Events, recording.Event{AtNS: r.Footer.EndNS, Kind: recording.Lost, Count: 12})
	e := explain(r)
	if *e.LostEvents != 12 || !strings.HasSuffix(e.Verdict, "Low confidence: 12 events were lost.") {
		t.Errorf("%d: %s", *e.LostEvents, e.Verdict)
	}
}
