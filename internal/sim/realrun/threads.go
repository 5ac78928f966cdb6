package realrun

import (
	"context"
	"fmt"
	"time"

	"github.com/unthrottle/unthrottle/internal/load/workload/threads"
	"github.com/unthrottle/unthrottle/internal/scenario"
)

// threadsJob is a workload of package threads.
type threadsJob struct {
	process *threads.Process
	name    string
}

func startThreads(s *scenario.Scenario, w *scenario.Workload, b *testbed, o Options) (job, error) {
	_, cpus := b.of(s, w)
	p, err := threads.Start(o.Exe, threads.Spec{
		Name: w.Name, Kind: w.Kind, Threads: w.Threads, Fast: w.Fast, Run: w.Run, Sleep: w.Sleep, On: w.On, Off: w.Off,
		Phases: w.Phases, CPUs: cpus.List(), Start: w.Start, Duration: s.Duration, TimerSlack: s.Host.TimerSlack,
		Seed: seedOf(o.Seed, w.Name), Deadline: s.Duration + slack,
	})
	if err != nil {
		return nil, err
	}
	return &threadsJob{process: p, name: w.Name}, nil
}

// seedOf gives each workload chances of its own (FNV-1a over its name).
func seedOf(seed uint64, name string) uint64 {
	h := uint64(14695981039346656037) ^ seed
	for _, c := range []byte(name) {
		h = (h ^ uint64(c)) * 1099511628211
	}
	return h
}

func (j *threadsJob) pid() int                                   { return j.process.Pid() }
func (j *threadsJob) workload() string                           { return j.name }
func (j *threadsJob) begin(context.Context, time.Duration) error { return j.process.Go() }
func (j *threadsJob) stop() error                                { return j.process.Stop() }

func (j *threadsJob) end() (map[string]scenario.WorkloadOutcome, []string, error) {
	r, err := j.process.Tell()
	if err != nil {
		return nil, nil, err
	}
	out := scenario.WorkloadOutcome{Latencies: scenario.Latencies{Count: r.Count, P50: r.P50, P90: r.P90, P95: r.P95,
		P99: r.P99, Max: r.Max}, Unfinished: r.Unfinished}
	if r.Rounds > 0 {
		out.Iterations = &r.Rounds
	}
	return map[string]scenario.WorkloadOutcome{j.name: out}, disturbed(j.name, j.process.Disturbed()), nil
}

// disturbed notes why a workload's runtime ran besides its threads; nil: it did not.
func disturbed(name string, why error) (notes []string) {
	if why != nil {
		notes = append(notes, fmt.Sprintf("%s: the runtime of its process took part, with up to 1 %% of a CPU: %v", name, why))
	}
	return notes
}
