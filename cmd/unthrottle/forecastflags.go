package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/explain/live"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/objective"
	"github.com/unthrottle/unthrottle/internal/see/probe"
	"github.com/unthrottle/unthrottle/internal/sim/forecast"
	"github.com/unthrottle/unthrottle/internal/text"
)

// check reads the flags into options.
func (f *forecastFlags) check() error {
	if f.length < live.MinRecording || f.length > probe.MaxRecording {
		return fmt.Errorf("--for %v: give a time from %v to %v", plainTime(f.length), live.MinRecording, plainTime(probe.MaxRecording))
	}
	if f.repeat < 1 || f.repeat > forecast.MaxSeeds {
		return fmt.Errorf("--repeat %d: give a number from 1 to %d", f.repeat, forecast.MaxSeeds)
	}
	if f.all && f.pools {
		return errors.New("--pools is of one container: --all shows none; its --json has those of each")
	}
	if f.cpus < 0 {
		return fmt.Errorf("--cpus %d: give how many CPUs to pin to", f.cpus)
	}
	f.o.Seeds, f.o.Seed, f.o.CPUs, f.o.Calibration, f.o.Effects = f.repeat, f.seed, f.cpus, forecast.Tested(), remedy.Effects()
	f.o.SchedExt = schedExt().Can
	f.o.Smallest, f.o.Price = f.smallest, f.smallest
	var err error
	if f.o.HostLoad, err = parseShare(f.hostLoad); err != nil {
		return fmt.Errorf("--host-load %s: give a share of the host's CPUs from 0%% to 100%%", f.hostLoad)
	}
	if f.load != "" {
		if f.o.From, f.o.To, err = parseLoads(f.load); err != nil {
			return fmt.Errorf("--load %s: %w", f.load, err)
		}
	}
	if f.objective != "" {
		o, err := objective.Parse(f.objective)
		if err != nil {
			return fmt.Errorf("--slo %w", err)
		}
		f.o.Objective = &forecast.Objective{Objective: o, Pool: f.pool}
	} else if f.pool != "" {
		return errors.New("--pool goes with --slo: it says whose latency the objective is of")
	}
	return nil
}

// parseLoads reads "1..3", or one load alone.
func parseLoads(value string) (from, to float64, err error) {
	low, high, two := strings.Cut(value, "..")
	if !two {
		high = low
	}
	from, err = text.ParseDecimal(low)
	if err == nil {
		to, err = text.ParseDecimal(high)
	}
	if err != nil || !(from > 0 && from <= to && to <= forecast.MaxLoad) {
		return 0, 0, fmt.Errorf("give two factors above 0 and up to %g, the smaller one first, such as 1..3", forecast.MaxLoad)
	}
	return from, to, nil
}

// hasLimit says whether a container or an ancestor of it has a quota.
func hasLimit(h *cgroup.Host, c container.Container) (bool, error) {
	levels, err := cgroup.Levels(h, c.Group.Path)
	if err != nil {
		return false, err
	}
	_, limited, _ := cgroup.Effective(levels)
	return limited, nil
}
