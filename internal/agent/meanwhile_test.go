package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/cure/fix"
	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/cure/slo"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/see/observe"
	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/internal/txn/apply"
)

// newcomer makes a container while something else goes on, tells the agent, and
// waits until it runs on the wanted CPUs.
func (p *placing) newcomer(path string, pid int, want string) {
	p.make(path)
	p.k.Spawn(path, pid)
	runs := ""
	for range 2000 {
		p.mu.Lock()
		p.newcomers = 1
		p.mu.Unlock()
		p.signal()
		set, _ := p.k.Allowed(pid)
		if runs = set.String(); runs == want {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	p.t.Errorf("%s runs on %s, want %s", path, runs, want)
}

// Newcomers are moved off exclusive CPUs while a fix looks, while it asks the
// latency source, and while its change is on trial: off the CPUs on trial, too.
// If the change is undone, they get these back.
func TestNewcomersDuringAFix(t *testing.T) {
	for _, kept := range []bool{true, false} {
		t.Run(fmt.Sprint("kept ", kept), func(t *testing.T) {
			p := newPlacing(t, 2)
			p.wake = make(chan struct{}, 1)
			p.must(p.k.Write(cgroup.CPU, "/a/0", "cpu.cfs_quota_us", "200000"))
			p.give(1, remedy.Request{Kind: remedy.Pin}, "6-7")
			asked, looked := 0, 0
			p.Latencies = func(string) slo.Source {
				return func(context.Context, time.Time) (slo.Answer, error) {
					if asked++; asked == 1 {
						p.newcomer("/n-asked", 31, "0-5")
					}
					better := map[bool]float64{true: 1, false: 97}[kept]
					return slo.Answer{MS: latencies(map[bool]float64{true: 97, false: better}[asked == 1], asked)}, nil
				}
			}
			var trial string
			p.Fix = func(source slo.Source) fix.Env {
				return fix.Env{Apply: p.Env, Latencies: source, Facts: p.Facts,
					Wait: func(context.Context, time.Duration) error { return nil },
					Observe: func(context.Context, []container.Container, time.Duration) ([]observe.Observation, error) {
						if looked++; looked == 1 {
							p.newcomer("/n-looked", 30, "0-5")
						} else {
							held, err := apply.Status(p.Env)
							p.must(err)
							for _, f := range held {
								if f.Trial != nil && f.Trial.Of == f.ID {
									read, err := remedy.Decode(f, "")
									p.must(err)
									trial = read.Placed().String()
								}
							}
							p.newcomer("/n-tried", 32, map[string]string{"1-2": "0,3-5", "2-3": "0-1,4-5", "4-5": "0-3"}[trial])
						}
						limit, used, stopped := 2.0, 1.0, 500*time.Millisecond
						return []observe.Observation{
							{Container: p.all[0], Window: time.Second, LimitCPUs: &limit, UsedCPUs: &used,
								StoppedLow: &stopped, StoppedHigh: &stopped}}, nil
					}}
			}
			rules, err := policy.ParseRules([]byte("version: 1\nmode: apply\nrules:\n- class: exclusive\n  slo: " +
				"{objective: p99<20ms, command: probe}\n"))
			p.must(err)
			p.Rules = rules
			err = p.fix(t.Context(), finding{observation: observe.Observation{Container: p.all[0]}, rule: &rules.Rules[0]}, nil)
			if (err == nil) != kept || looked != 2 || asked != 3 {
				t.Fatalf("%v; looked %d times, asked %d times\n%s", err, looked, asked, p.log.String())
			}
			held, err := apply.Status(p.Env)
			p.must(err)
			for _, f := range held {
				if f.Trial != nil {
					t.Errorf("still on trial: %+v", f)
				}
			}
			for pid := 30; pid <= 32; pid++ {
				set, _ := p.k.Allowed(pid)
				if back := set.String() == "0-5"; back == kept {
					t.Errorf("trial on %s kept %v, and newcomer %d runs on %s", trial, kept, pid, set)
				}
			}
			_, err = apply.Restore(t.Context(), p.Env, apply.Selector{})
			p.must(err)
			if set, _ := p.k.Allowed(32); set.String() != "0-7" {
				t.Errorf("restored, and it runs on %s", set)
			}
		})
	}
}

// latencies are a thousand around a value, others for each seed.
func latencies(ms float64, seed int) []float64 {
	all := make([]float64, 1000)
	for i := range all {
		all[i] = ms + float64((i*7919+seed*104729)%100003)/1e8
	}
	return all
}

// While a transaction is being written nothing is planned.
func TestNewcomersWaitForAWriter(t *testing.T) {
	p := newPlacing(t, 1)
	p.give(0, remedy.Request{Kind: remedy.Pin}, "6-7")
	p.heldNow = []txn.InForce{{ID: "1", Unfinished: true}}
	stamp, err := apply.Stamp(p.Env)
	p.must(err)
	p.heldStamp = stamp
	p.List = func() ([]container.Container, error) {
		t.Error("it plans")
		return nil, errors.New("no")
	}
	p.moveNewcomers(t.Context())
	p.heldStamp, p.Rules.Mode = "", policy.Observe
	p.moveNewcomers(t.Context())
}

// /healthz fails when rounds do not come, when a round of acting does not end,
// and when a fix takes longer than it may; a fix that takes its time is fine.
func TestHealth(t *testing.T) {
	p := newPlacing(t, 0)
	p.wake = make(chan struct{}, 1)
	at := func(after time.Duration) string {
		p.mu.Lock()
		p.lastRound = time.Now().Add(after) // rounds keep coming
		p.mu.Unlock()
		if err := p.health(time.Now().Add(after)); err != nil {
			return err.Error()
		}
		return ""
	}
	if got := at(100 * time.Hour); got != "" {
		t.Errorf("idle: %s", got)
	}
	before := p.busy("a round", roundLimit)
	if got := at(roundLimit - time.Second); got != "" {
		t.Errorf("at work: %s", got)
	}
	if got := at(roundLimit + 10*time.Second); !strings.Contains(got, "acting hangs: a round for 1m") {
		t.Errorf("hung: %q", got)
	}
	p.meanwhile(t.Context(), "a fix of /x", 5*time.Minute, func() {
		if got := at(4 * time.Minute); got != "" {
			t.Errorf("a fix: %s", got)
		}
		if got := at(6 * time.Minute); !strings.Contains(got, "acting hangs: a fix of /x for 6m") {
			t.Errorf("a fix that hangs: %q", got)
		}
	})
	if got := at(4 * time.Minute); !strings.Contains(got, "a round for 4m") {
		t.Errorf("after the fix: %q", got)
	}
	p.resume(before)
	if got := at(time.Hour); got != "" {
		t.Errorf("idle again: %s", got)
	}
	if err := p.health(time.Now().Add(2 * time.Hour)); err == nil || !strings.Contains(err.Error(), "no round for") {
		t.Errorf("no rounds: %v", err)
	}
}

// While the agent sheds, rounds are slower, and that is healthy: the interval in force counts, and that of the last round
// where shedding has just ended.
func TestSlowRoundsAreHealthy(t *testing.T) {
	p := newPlacing(t, 0)
	p.Rules.Interval = 4 * time.Second
	p.lastRound = start
	silent := func(d time.Duration) error { return p.health(start.Add(d)) }
	if silent(missedRounds*p.Rules.Interval) != nil || silent(missedRounds*p.Rules.Interval+1) == nil {
		t.Error("while nothing is shed, not the rule's interval counts")
	}
	slow := slowRounds * p.Rules.Interval
	p.budget.set(shedRate)
	if err := silent(missedRounds * slow); err != nil {
		t.Errorf("rounds of %v are in force: %v", slow, err)
	}
	if silent(missedRounds*slow+1) == nil {
		t.Error("no round for more than five slow ones, and it is healthy")
	}
	p.budget.set(shedNothing)
	p.lastInterval = slow
	if err := silent(slow + p.Rules.Interval); err != nil {
		t.Errorf("the round under way began as a slow one: %v", err)
	}
}

// A hung acting goroutine makes /healthz fail, for real: a list of containers
// that never comes.
func TestHungActingIsNoticed(t *testing.T) {
	p := newPlacing(t, 1)
	p.give(0, remedy.Request{Kind: remedy.Pin}, "6-7")
	p.wake, p.lastRound, p.chooser = make(chan struct{}, 1), time.Now(), newChooser(p.Rules, "")
	hung, release, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	p.List = func() ([]container.Container, error) {
		close(hung)
		<-release
		return nil, errors.New("too late")
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { defer close(ended); _ = p.act(ctx) }()
	p.signal()
	<-hung
	p.mu.Lock()
	p.lastRound = time.Now().Add(2 * roundLimit)
	p.mu.Unlock()
	if err := p.health(time.Now().Add(2 * roundLimit)); err == nil || !strings.Contains(err.Error(), "acting hangs") {
		t.Errorf("hung: %v", err)
	}
	cancel()
	close(release)
	<-ended
}
