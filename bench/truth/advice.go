package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/unthrottle/unthrottle/bench/study"
	"github.com/unthrottle/unthrottle/internal/stats"
)

// The two ways in which a service is started to find out what its advice brings.
const (
	asItWas        = "as it was"
	adviceFollowed = "advice followed"
)

// setting is one of the service's own, which explain may advise.
type setting struct {
	// name is in the advice's text, such as UV_THREADPOOL_SIZE.
	name string
	// asItWas and advised are the program's arguments or environment without the advice and with it.
	asItWas, advised []string
}

// value returns what the service is started with: what the advice says where the stage follows it.
func (s *stage) value(of setting) []string {
	if s.follow {
		return of.advised
	}
	return of.asItWas
}

// isAdvised tells whether explain advised the case's setting.
func (c testCase) isAdvised(l *look) bool {
	if l == nil || c.setting.name == "" {
		return false
	}
	for _, a := range l.Advice {
		if strings.Contains(a, c.setting.name+" to ") {
			return true
		}
	}
	return false
}

// followAdvice starts the service anew with and without the setting that explain advises, by turns, and measures both.
// A case whose advice names no setting that can be set has nothing to follow.
func followAdvice(ctx context.Context, o options, c testCase, k *caseRun, save func() error) error {
	if !c.isAdvised(k.Look) {
		return nil
	}
	for round := 1; round <= o.rounds; round++ {
		ways := []string{asItWas, adviceFollowed}
		if round%2 == 0 {
			ways[0], ways[1] = ways[1], ways[0]
		}
		for _, way := range ways {
			if hasRun(k.Followed, way, round) {
				continue
			}
			var r oneRun
			err := o.alone.Do(ctx, func() (err error) {
				r, err = startAndRun(ctx, o, c, k, way, round)
				return err
			})
			if err != nil {
				return fmt.Errorf("%s: %w", way, err)
			}
			say("%s: round %d of %d: %s: %s", c.name, round, o.rounds, way, r.text())
			k.Followed = append(k.Followed, r)
			if err := save(); err != nil {
				return err
			}
		}
	}
	return nil
}

// startAndRun starts the service on a stage of its own, warms it up and measures once.
func startAndRun(ctx context.Context, o options, c testCase, k *caseRun, way string, round int) (r oneRun, err error) {
	s, err := openStage(o.host, c)
	if err != nil {
		return r, err
	}
	s.follow = way == adviceFollowed
	ctx, cancel := context.WithCancel(ctx)
	defer func() { cancel(); err = errors.Join(err, s.close()) }()
	m := &measurement{o: o, c: c, k: k, s: s}
	if m.of, err = c.start(ctx, s); err != nil {
		return r, fmt.Errorf("start: %w", err)
	}
	defer m.disturb(ctx)()
	const warm = 3 * time.Second
	if _, err := m.run(ctx, way, 0, warm); err != nil {
		return r, err
	}
	return m.run(ctx, way, round, o.each)
}

// followed is what following advice brought.
type followed struct {
	// setting is what the service was started with.
	setting string
	// before and after are p99s of the rounds without the advice and with it, in ms.
	before, after study.Spread
	// harmed and helped: after is above or below before beyond the noise.
	harmed, helped bool
	// beside has the medians of the p99s of other requests, before and after, in ms, by name.
	beside map[string][2]float64
}

// followedOf sums up what was measured of a case's advice; nil: it has none, or it was not measured.
func followedOf(c testCase, k caseRun) *followed {
	runs := caseRun{Runs: k.Followed}
	before, after := runs.figures(asItWas), runs.figures(adviceFollowed)
	if !c.isAdvised(k.Look) || before.Rounds == 0 || after.Rounds == 0 {
		return nil
	}
	f := &followed{
		setting: strings.Join(c.setting.advised, " "), before: before, after: after,
		harmed: less(before, after, false), helped: less(after, before, false), beside: map[string][2]float64{},
	}
	for name := range runs.runsOf(asItWas)[0].Beside {
		f.beside[name] = [2]float64{runs.besideOf(asItWas, name), runs.besideOf(adviceFollowed, name)}
	}
	return f
}

// besideOf is the median of the rounds' p99s of another kind of requests, in ms; NaN: it was not measured.
func (k *caseRun) besideOf(variant, name string) float64 {
	var all []float64
	for _, r := range k.runsOf(variant) {
		if p99, ok := r.Beside[name]; ok {
			all = append(all, p99)
		}
	}
	return stats.Median(all)
}
