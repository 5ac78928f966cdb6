// Package curetest says what containers of a modelled kernel do, so that tests of fix and agent have recordings that
// follow the settings in force.
//
// Rule: a recording is that of an ideal host (package recordingtest) under the quota and the CPUs that the container's
// cgroup has just then. The same work under the same setting gives the same recording.
package curetest

import (
	"bytes"
	"time"

	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/see/recording/recordingtest"
	"github.com/unthrottle/unthrottle/internal/sim/forecast"
)

// Tick is the unit of the work below.
const Tick = time.Millisecond

// Work is what a container's threads do in a time.
type Work func(s *recordingtest.Schedule, length time.Duration)

// Bursts are 16 threads that wake together four times a second, each for 8 ms: 128 ms of work at once, where a limit of
// 1 CPU gives 100 ms. A burst carries it over the end of the quota.
func Bursts(s *recordingtest.Schedule, length time.Duration) {
	w := s.Threads("http-worker", 16)
	s.Repeat(int(length/(250*Tick)), 250*Tick, func(at time.Duration) { s.Work(at, 8*Tick, w...) })
}

// Burners are three threads that compute without a pause.
func Burners(s *recordingtest.Schedule, length time.Duration) {
	s.Work(0, length, s.Threads("batch", 3)...)
}

// Calm is one thread that runs for 1 ms and sleeps for the rest of the time.
func Calm(s *recordingtest.Schedule, _ time.Duration) { s.Work(0, Tick, s.Threads("main", 1)...) }

// BurnersBesideASleeper are Burners and a thread that runs for 100 us every 10 ms.
func BurnersBesideASleeper(s *recordingtest.Schedule, length time.Duration) {
	Burners(s, length)
	w := s.Threads("timer", 1)
	s.Repeat(int(length/(10*Tick)), 10*Tick, func(at time.Duration) { s.Work(at, Tick/10, w...) })
}

// Works are the kinds of work by name.
var Works = map[string]Work{
	"bursts":                   Bursts,
	"burners":                  Burners,
	"calm":                     Calm,
	"burners beside a sleeper": BurnersBesideASleeper,
}

// Setting is what decides how work goes.
type Setting struct {
	// Limit is the container's own; without a quota there is none.
	Limit cgroup.Limit
	// CPUs is how many the container may use.
	CPUs int
}

// SettingOf reads the setting of a container that has one path in all hierarchies.
func SettingOf(fs cgroup.FS, path string) (Setting, error) {
	limit, err := cgroup.ReadLimit(fs, path)
	if err != nil {
		return Setting{}, err
	}
	_, allowed, err := cgroup.CPUs(fs, path)
	return Setting{Limit: limit, CPUs: allowed.Size()}, err
}

// Recording is what a recording tells.
type Recording struct {
	Explanation *diagnose.Explanation
	// Load is nil where the recording cannot be replayed, and Missing says why.
	Load    *forecast.Load
	Missing string
	Runs    *forecast.Runs
}

// Record records work of that length on a host of that many CPUs. The errors are those of writing and reading recordings.
func Record(work Work, under Setting, hostCPUs int, length time.Duration) (Recording, error) {
	s := recordingtest.New(hostCPUs).Process("java")
	allowed := make([]int, under.CPUs)
	for i := range allowed {
		allowed[i] = i
	}
	s.Allow(allowed...)
	if l := under.Limit; l.Limited() {
		// The ideal host has no burst: with one, its quota is as if it were larger.
		s.Limit(l.Quota+l.Burst, l.Period)
	}
	work(s, length)
	r := s.Run(length)
	var file bytes.Buffer
	if err := r.Write(&file); err != nil {
		return Recording{}, err
	}
	analysis := diagnose.New(r.Header, diagnose.Options{})
	for i := range r.Events {
		analysis.Add(&r.Events[i])
	}
	out := Recording{Explanation: new(analysis.Finish(r.Footer))}
	var err error
	if out.Load, out.Runs, err = forecast.ReadWithRuns(&file); err != nil {
		out.Missing = err.Error()
	}
	return out, nil
}
