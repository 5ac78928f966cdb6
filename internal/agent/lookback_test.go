package agent

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/agent/lendingtrial"
	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/cure/fix"
	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/cure/slo"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/see/observe"
)

// requests are the latencies of those that came every 5 ms of a time, oldest
// first, of a service that answers in ms(at).
func requests(from, to time.Time, ms func(at time.Time) float64) []float64 {
	var all []float64
	for at := from.Add(5 * time.Millisecond); !at.After(to); at = at.Add(5 * time.Millisecond) {
		all = append(all, ms(at)*(1+rand.New(rand.NewPCG(uint64(at.UnixNano()), 0)).Float64()/100))
	}
	return all
}

// A source of the owner's that looks back 20 s finds the harm where that is
// declared, or where it honours the time that it is asked for; otherwise the
// trial knows that its latencies told nothing.
func TestTrialWithLookBack(t *testing.T) {
	const lookBack = 20 * time.Second
	for name, c := range map[string]struct {
		lasts    time.Duration
		honours  bool
		harmed   bool
		unjudged string
	}{
		"declared":     {lookBack + time.Second, false, true, ""},
		"not declared": {lendingtrial.Rounds * time.Second, false, false, "look_back"},
		"honours":      {lendingtrial.Rounds * time.Second, true, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var tr lendingtrial.Trial
			out, u := false, 0.02
			type turn struct {
				from time.Time
				out  bool
			}
			turns := []turn{{start.Add(-time.Hour), false}}
			answers := func(at time.Time) float64 {
				for i := len(turns) - 1; ; i-- {
					if turns[i].from.Before(at) {
						return map[bool]float64{false: 5, true: 1}[turns[i].out]
					}
				}
			}
			for i := range 6*25 + 5 {
				at := start.Add(time.Duration(i) * time.Second)
				now := at.Add(time.Second)
				l := lendingtrial.Look{Again: retryAfter, CPUs: "1", Out: out,
					Seen:  &observe.Observation{Start: at, Window: time.Second, UsedCPUs: &u},
					Lasts: c.lasts, Quantile: 0.99,
					Latencies: func(since time.Time) []float64 {
						if c.honours {
							return requests(since, now, answers)
						}
						return requests(now.Add(-lookBack), now, answers)
					}}
				want := tr.Round(l, now)
				if want == lendingtrial.Nothing {
					continue
				}
				out = want == lendingtrial.Revoke
				turns = append(turns, turn{now, out})
				tr.Written(now)
				if !out && !tr.Running {
					break // judged: it costs nothing
				}
			}
			if tr.Harmed != c.harmed || (tr.Unjudged != "") != (c.unjudged != "") || !strings.Contains(tr.Unjudged, c.unjudged) {
				t.Errorf("harmed %v, unjudged %q; %v", tr.Harmed, tr.Unjudged, tr.Slower)
			}
		})
	}
}

// A rule's look_back is waited for after the change, and the source is told since
// when.
func TestAgentWaitsForLookBack(t *testing.T) {
	for _, declared := range []bool{true, false} {
		p := newPlacing(t, 1)
		p.must(p.k.Write(cgroup.CPU, "/a/0", "cpu.cfs_quota_us", "200000"))
		now, changed := time.Unix(1_700_000_000, 0), time.Time{}
		p.Env.Now = func() time.Time { return now }
		p.Latencies = func(string) slo.Source {
			return func(_ context.Context, since time.Time) (slo.Answer, error) {
				quota, err := p.k.Read(cgroup.CPU, "/a/0", "cpu.cfs_quota_us")
				if err == nil && quota == "-1" && changed.IsZero() {
					t.Error("it was asked before the change was seen to be made")
				}
				if !changed.IsZero() && since.Before(changed) {
					t.Errorf("asked for the time from %v on, changed at %v", since, changed)
				}
				return slo.Answer{MS: requests(now.Add(-20*time.Second), now, func(at time.Time) float64 {
					if !changed.IsZero() && at.After(changed) {
						return 12
					}
					return 97
				})}, nil
			}
		}
		p.Fix = func(latencies slo.Source) fix.Env {
			return fix.Env{Apply: p.Env, Latencies: latencies, Facts: p.Facts,
				Wait: func(_ context.Context, d time.Duration) error {
					if changed.IsZero() {
						changed = now
					}
					now = now.Add(d)
					return nil
				},
				Observe: func(_ context.Context, containers []container.Container, window time.Duration) ([]observe.Observation, error) {
					now = now.Add(window)
					limit, used, stopped := 2.0, 1.0, 500*time.Millisecond
					if !changed.IsZero() {
						stopped = 0
					}
					return []observe.Observation{
						{Container: p.all[0], Window: time.Second, LimitCPUs: &limit, UsedCPUs: &used,
							StoppedLow: &stopped, StoppedHigh: &stopped}}, nil
				}}
		}
		lookBack := ""
		if declared {
			lookBack = ", look_back: 20s"
		}
		rules, err := policy.ParseRules([]byte("version: 1\nmode: apply\nrules:\n- class: exclusive\n  slo: " +
			"{objective: p99<20ms, command: probe" + lookBack + "}\n"))
		p.must(err)
		p.Rules = rules
		err = p.fix(t.Context(), finding{observation: observe.Observation{Container: p.all[0]}, rule: &rules.Rules[0]}, nil)
		if (err == nil) != declared || err != nil && !strings.Contains(err.Error(), "unverified") {
			t.Errorf("declared %v: %v", declared, err)
		}
	}
}
