package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/bench/services"
	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
)

// wants measures the service without its limit, and lets the client send as much as the case is meant to use. The error says that the
// case's truth does not hold on this host today.
func (m *measurement) wants(ctx context.Context, d time.Duration) error {
	if m.c.Use == 0 && !mostlyIdle(m.c) {
		return nil
	}
	free, err := m.unlimited(ctx, d)
	if err != nil {
		return err
	}
	if m.k.Load = loadFor(m.c.Use, usual(m.c.Streams, free, d)); m.k.Load > 0 {
		say("%s: it is meant to use %.2f CPUs: the client sends %.2f of the case's requests", m.c.Name, m.c.Use, m.k.Load)
		if free, err = m.unlimited(ctx, d); err != nil {
			return err
		}
	}
	return holds(m.c, free.UsedCPUs)
}

// usual is what a service would use if as many requests had come in a run as come on average: bursts that come by chance are few in
// seconds. Of several kinds of requests it is not known which of them used it.
func usual(streams []services.Stream, free oneRun, d time.Duration) float64 {
	if len(streams) != 1 || free.Requests == 0 {
		return free.UsedCPUs
	}
	return free.UsedCPUs * streams[0].PerSecond * d.Seconds() / float64(free.Requests)
}

// unlimited is a run without the limit, under the load of the case.
func (m *measurement) unlimited(ctx context.Context, d time.Duration) (oneRun, error) {
	refused, err := m.t.Apply(ctx, []string{"--remedy", noLimit})
	switch {
	case err != nil:
		return oneRun{}, err
	case refused != "":
		return oneRun{}, fmt.Errorf("take the limit away: %s", refused)
	}
	free, err := m.run(ctx, noLimit, 0, d)
	if err = errors.Join(err, m.t.Restore(ctx)); err != nil {
		return oneRun{}, err
	}
	say("%s: without a limit: %s", m.c.Name, free.text())
	return free, nil
}

// usesMore is by which factor a service may use more than it is meant to before its client sends less.
const usesMore = 1.15

// loadFor is the part of a case's requests with which a service uses as many CPUs as it is meant to, by those that it used with all of
// them; 0: send all of them, also where use is 0, which is that of a case that is not scaled.
func loadFor(use, freeCPUs float64) float64 {
	if use == 0 || freeCPUs <= usesMore*use {
		return 0
	}
	return use / freeCPUs
}

// mostlyIdle tells whether the case's truth says that the service wants less than its limit: another cause than too little CPU for it.
func mostlyIdle(c services.Case) bool {
	wantsMore := func(name string) bool {
		cause := diagnose.Cause(name)
		return cause == diagnose.Shortage || cause == diagnose.Ancestor || !cause.ByQuota()
	}
	return !c.Healthy && !slices.ContainsFunc(c.Causes, wantsMore)
}

// holds tells whether a mostly idle case's truth holds, by the CPUs that it used without a limit. A host whose CPUs are slower than
// those it was made on turns its cause into shortage.
func holds(c services.Case, freeCPUs float64) error {
	if freeCPUs <= c.Limit || !mostlyIdle(c) {
		return nil
	}
	return fmt.Errorf("it used %.2f CPUs without its limit of %.2f, so that %s is not what stops it on this host: measure it on a faster one, "+
		"or when this one is less busy", freeCPUs, c.Limit, c.Causes[0])
}
