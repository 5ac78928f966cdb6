package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/google/renameio/v2"

	"github.com/unthrottle/unthrottle/bench/services"
	"github.com/unthrottle/unthrottle/internal/clock"
	"github.com/unthrottle/unthrottle/internal/demand/recorded"
	"github.com/unthrottle/unthrottle/internal/sim/forecast"
)

const (
	// replayCPUs are more than any of the services uses at once.
	replayCPUs = 32
	// demandLook is a second longer than the periods that a replay tells, which begin anywhere in its first period.
	demandLook = forecast.MostPeriods*services.Period + time.Second
	// demandOff is by which part the replay's CPU time may differ from the counted one.
	demandOff = 0.15
	// fullHost is the share of its CPUs from which on a host bounds what a service does. Then later requests come later, too.
	fullHost = 0.9
)

const aboutDemand = "Demand of real services under load, period by period: CPU time in microseconds and width in " +
	"CPUs, as replayed on many CPUs without a quota. " +
	"make truth-demand wrote it; docs/reference/fleet.md says what it is worth."

// recordDemands records cases without a quota that they meet, and writes their demand to a file. Services that it has
// and that are not among the
// cases stay as they are.
func recordDemands(ctx context.Context, o options, testCases []services.Case, file string) error {
	text, err := os.ReadFile(file)
	f := recorded.File{}
	if err == nil {
		f, err = recorded.Decode(text)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %w", file, err)
	}
	f.About, f.ReplayedCPUs = aboutDemand, replayCPUs
	var failed []error
	for _, c := range testCases {
		service, err := recordDemand(ctx, o, c)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", c.Name, err))
			continue
		}
		f.Put(service)
		text, err := f.Encode()
		if err != nil {
			return err
		}
		if err := renameio.WriteFile(file, text, 0o644); err != nil {
			return err
		}
	}
	return errors.Join(failed...)
}

// recordDemand records one case and replays it.
func recordDemand(ctx context.Context, o options, c services.Case) (service recorded.Service, err error) {
	kind := c.Demanded
	if kind == "" || c.Pod {
		return service, errors.New("it has no kind: give it one in bench/services/cases.yaml; a pod's container is no service")
	}
	if missing := c.Missing(); missing != "" {
		return service, errors.New(missing)
	}
	c.Limit = 2 * float64(runtime.NumCPU()) // explain wants a limit; this one is never met
	s, err := services.Open(o.host, c)
	if err != nil {
		return service, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer func() {
		cancel()
		err = errors.Join(err, s.Close())
	}()
	say("%s: starting", c.Name)
	m := &measurement{o: o, c: c, k: &caseRun{}, s: s, t: tool{services.NewTool(o.exe, s)}}
	if m.of, err = s.Serve(ctx, c); err != nil {
		return service, fmt.Errorf("start: %w", err)
	}
	defer m.disturb(ctx)()
	stop, err := m.keepLoad(ctx)
	if err != nil {
		return service, err
	}
	defer stop()
	const warm = 5 * time.Second
	if err := clock.Sleep(ctx, warm); err != nil {
		return service, err
	}
	before, err := m.counters()
	if err != nil {
		return service, err
	}
	recording := filepath.Join(o.keep, c.Name+".demand.rec")
	if _, err := m.t.Run(ctx, "explain", m.t.Target, "--for", demandLook.String(), "--record", recording, "--json"); err != nil {
		return service, err
	}
	after, err := m.counters()
	if err != nil {
		return service, err
	}
	var counted oneRun
	counted.count(before, after, false)
	if service, err = demandOf(recording, kind); err != nil {
		return service, err
	}
	say("%s: %.3f CPUs counted beside %.2f of others, %.3f wanted, at most %d wide; throttled %d", c.Name,
		counted.UsedCPUs, counted.OthersCPUs, service.CPUs(),
		slices.Max(service.Width), counted.Throttled)
	return service, checkDemand(&service, counted)
}

// demandOf replays a recording of a service.
func demandOf(recording, kind string) (recorded.Service, error) {
	s := recorded.Service{Kind: kind, Date: time.Now().UTC().Format(time.DateOnly), RecordedCPUs: runtime.NumCPU(),
		PeriodUS: services.Period.Microseconds()}
	release, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return s, err
	}
	s.Kernel, _, _ = strings.Cut(strings.TrimSpace(string(release)), "-")
	in, err := os.Open(recording)
	if err != nil {
		return s, err
	}
	defer in.Close()
	l, err := forecast.Read(in)
	if err != nil {
		return s, err
	}
	wants, err := l.Demand(replayCPUs, services.Period, 1)
	if err != nil {
		return s, err
	}
	for _, d := range wants {
		s.WorkUS, s.Width = append(s.WorkUS, d.Work.Microseconds()), append(s.Width, int32(d.Width))
	}
	return s, nil
}

// checkDemand compares a replay with what the kernel counted.
func checkDemand(s *recorded.Service, counted oneRun) error {
	if counted.Throttled > 0 {
		return fmt.Errorf("its quota was spent in %d periods, so that the recording is not of its demand", counted.Throttled)
	}
	if used := counted.UsedCPUs + counted.OthersCPUs; used > fullHost*float64(s.RecordedCPUs) {
		return fmt.Errorf("the host was full, with %.2f of %d CPUs used, so that the recording is not of its demand", used, s.RecordedCPUs)
	}
	if of := s.CPUs() / counted.UsedCPUs; of < 1-demandOff || of > 1+demandOff {
		return fmt.Errorf("%.3f CPUs replayed for %.3f counted", s.CPUs(), counted.UsedCPUs)
	}
	// Work that waits only for other work of the service is done early on many CPUs.
	last := *s
	last.WorkUS = s.WorkUS[len(s.WorkUS)*3/4:]
	if last.CPUs() < s.CPUs()/2 {
		return fmt.Errorf("%.3f CPUs in its last quarter, of %.3f: it is never idle, so that its work has no time of "+
			"its own", last.CPUs(), s.CPUs())
	}
	return nil
}
