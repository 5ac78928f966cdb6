package fix

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/cure/verdict"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/see/observe"
)

// resizes lets the owner write a quota during the n-th looks, before their counters are read for the second time.
func (b *bench) resizes(quotas map[int]string) {
	look := b.env.Observe
	b.env.Observe = func(ctx context.Context, containers []container.Container, window time.Duration) ([]observe.Observation, error) {
		was, err := cgroup.ReadLimit(b.kernel, "/busy")
		if err != nil {
			return nil, err
		}
		if quota, ok := quotas[b.observations+1]; ok {
			if err := b.kernel.Write(cgroup.CPU, "/busy", "cpu.cfs_quota_us", quota); err != nil {
				return nil, err
			}
		}
		seen, err := look(ctx, containers, window)
		for i := range seen {
			if seen[i].Container.Name == "busy" {
				seen[i].LimitChanges = observe.CompareLimits([]cgroup.Level{{Path: "/busy", Limit: was}}, seen[i].Levels[:1])
			}
		}
		return seen, err
	}
}

func (b *bench) quota() string {
	text, err := b.kernel.Read(cgroup.CPU, "/busy", "cpu.cfs_quota_us")
	if err != nil {
		b.t.Fatal(err)
	}
	return strings.TrimSpace(text)
}

func raises(b *bench) {
	b.options.Wish = policy.Wish{Request: remedy.Request{Kind: remedy.Raise, Factor: 2}, May: []remedy.Kind{remedy.Raise}}
	b.options.Yes = true
}

// A limit that the owner changes while fix looks is noticed, and what is written is of the limit that was looked at.
func TestLimitChangesWhileItLooks(t *testing.T) {
	b := newBench(t)
	raises(b)
	b.resizes(map[int]string{1: "60000"})
	got, err := b.run()
	if err != nil || len(got.Writes) == 0 || got.Writes[0].After != "120000" ||
		!strings.Contains(strings.Join(b.said, "\n"), "its limit changed from 1 to 0.6 CPUs: looking again") {
		t.Errorf("%+v, %v: quota %s, said %q", got, err, b.quota(), b.said)
	}
}

// One that changes again is not fixed: nothing is written.
func TestLimitThatKeepsChanging(t *testing.T) {
	b := newBench(t)
	raises(b)
	b.resizes(map[int]string{1: "60000", 2: "80000"})
	got, err := b.run()
	if !errors.As(err, new(*NotMeasured)) || got.Kept || b.quota() != "80000" || len(got.Writes) > 0 {
		t.Errorf("%+v, %v: quota %s", got, err, b.quota())
	}
}

// Nor is one that changes between the look and the plan, or while a person is asked.
func TestLimitChangesBeforeItIsWritten(t *testing.T) {
	for name, when := range map[string]func(*bench, func()){
		"before the plan": func(b *bench, resize func()) {
			look := b.env.Observe
			b.env.Observe = func(ctx context.Context, containers []container.Container,
				window time.Duration) ([]observe.Observation, error) {
				defer resize()
				return look(ctx, containers, window)
			}
		},
		"while asked": func(b *bench, resize func()) {
			b.options.Yes, b.options.Ask = false, func(string) (bool, error) { resize(); return true, nil }
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			raises(b)
			when(b, func() {
				if err := b.kernel.Write(cgroup.CPU, "/busy", "cpu.cfs_quota_us", "60000"); err != nil {
					t.Fatal(err)
				}
			})
			got, err := b.run()
			if !errors.As(err, new(*NotMeasured)) || !strings.Contains(err.Error(), "changed from 1 to 0.6 CPUs") ||
				got.Kept || b.quota() != "60000" {
				t.Errorf("%+v, %v: quota %s", got, err, b.quota())
			}
		})
	}
}

// After the change the owner's write is not taken for the remedy's effect.
func TestLimitChangesWhileItIsJudged(t *testing.T) {
	for name, quotas := range map[string]map[int]string{
		"once, and stays":  {2: "300000"},
		"during each look": {2: "300000", 3: "310000"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			raises(b)
			b.options.Yes = false
			answers := 0
			b.options.Ask = func(string) (bool, error) { answers++; return answers == 1, nil }
			b.resizes(quotas)
			got, err := b.run()
			if err != nil || got.Kept || got.Judgement == nil || got.Judgement.Verdict != verdict.Unverified ||
				!strings.Contains(got.Judgement.Why, "cannot be compared") || !strings.HasPrefix(b.quota(), "3") {
				t.Errorf("%+v, %+v, %v: quota %s", got, got.Judgement, err, b.quota())
			}
		})
	}
}

// TestAContainerThatWasMadeAnewIsNotWritten: it has its path and its limit again, and what was looked at is gone.
func TestAContainerThatWasMadeAnewIsNotWritten(t *testing.T) {
	b := newBench(t)
	raises(b)
	asks := b.options
	asks.Yes = false
	asks.Ask = func(string) (bool, error) { // a person takes minutes
		was, err := cgroup.ReadLimit(b.kernel, "/busy")
		if err != nil {
			t.Fatal(err)
		}
		pids, err := b.kernel.Procs(cgroup.CPU, "/busy")
		if err != nil {
			t.Fatal(err)
		}
		for _, pid := range pids {
			b.kernel.Exit(pid)
		}
		for _, err := range []error{b.kernel.Remove(cgroup.CPU, "/busy"), b.kernel.Make(cgroup.CPU, "/busy"),
			b.kernel.Write(cgroup.CPU, "/busy", "cpu.cfs_quota_us", strconv.FormatInt(was.Quota.Microseconds(), 10))} {
			if err != nil {
				t.Fatal(err)
			}
		}
		return true, nil
	}
	_, err := Run(t.Context(), b.env, asks)
	if err == nil || !strings.Contains(err.Error(), "it was made anew, in another cgroup of the same path since this was planned") {
		t.Errorf("%v", err)
	}
}
