package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/unthrottle/unthrottle/bench/services"
)

// The two ways in which a service is started to find out what its advice brings.
const (
	asItWas        = "as it was"
	adviceFollowed = "advice followed"
)

// isAdvised tells whether explain advised the case's setting.
func isAdvised(c services.Case, l *look) bool {
	if l == nil || c.Setting.Name == "" {
		return false
	}
	for _, a := range l.Advice {
		if strings.Contains(a, c.Setting.Name+" to ") {
			return true
		}
	}
	return false
}

// followAdvice starts the service anew with and without the setting that explain advises, by turns, and measures both.
// A case whose advice names no setting that can be set has nothing to follow.
func followAdvice(ctx context.Context, o options, c services.Case, k *caseRun) error {
	if !isAdvised(c, k.Look) {
		return nil
	}
	for round := 1; round <= o.rounds; round++ {
		ways := []string{asItWas, adviceFollowed}
		if round%2 == 0 {
			ways[0], ways[1] = ways[1], ways[0]
		}
		for _, way := range ways {
			r, err := startAndRun(ctx, o, c, k, way, round)
			if err != nil {
				return fmt.Errorf("%s: %w", way, err)
			}
			say("%s: round %d of %d: %s: %s", c.Name, round, o.rounds, way, r.text())
			k.Followed = append(k.Followed, r)
		}
	}
	return nil
}

// startAndRun starts the service on a stage of its own, warms it up and measures once.
func startAndRun(ctx context.Context, o options, c services.Case, k *caseRun, way string, round int) (r oneRun, err error) {
	s, err := services.Open(o.host, c)
	if err != nil {
		return r, err
	}
	s.Advised = way == adviceFollowed
	ctx, cancel := context.WithCancel(ctx)
	defer func() { cancel(); err = errors.Join(err, s.Close()) }()
	m := &measurement{o: o, c: c, k: k, s: s}
	if m.of, err = s.Serve(ctx, c); err != nil {
		return r, fmt.Errorf("start: %w", err)
	}
	defer m.disturb(ctx)()
	const warm = 3 * time.Second
	if _, err := m.run(ctx, way, 0, warm); err != nil {
		return r, err
	}
	return m.run(ctx, way, round, o.each)
}

// followed tells whether a case's advice was followed for real, and whether that made the part that waits slower beyond the noise.
func followed(c services.Case, k caseRun) (measured, harmed bool) {
	runs := caseRun{Runs: k.Followed}
	before, after := runs.figures(asItWas), runs.figures(adviceFollowed)
	if !isAdvised(c, k.Look) || before.Rounds == 0 || after.Rounds == 0 {
		return false, false
	}
	return true, less(before, after, false)
}
