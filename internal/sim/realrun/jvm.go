package realrun

import (
	"context"
	"fmt"
	"time"

	"github.com/unthrottle/unthrottle/internal/load/sandbox"
	"github.com/unthrottle/unthrottle/internal/load/workload"
	"github.com/unthrottle/unthrottle/internal/load/workload/jvm"
	"github.com/unthrottle/unthrottle/internal/scenario"
)

// jvmJob is a real JVM.
type jvmJob struct {
	process *jvm.Process
	name    string
	start   time.Duration // from the scenario's beginning
	length  time.Duration // of the scenario
	at      time.Duration // the beginning
	late    *time.Timer
}

func startJVM(s *scenario.Scenario, w *scenario.Workload, o Options) (job, error) {
	java, err := jvm.Find()
	if err != nil {
		return nil, &sandbox.NotMeasurable{What: "no Java launcher is on PATH",
			WayOut: "install a JVM (9 or newer), or leave workload " + w.Name + " out", Err: err}
	}
	p, err := jvm.Start(o.Exe, jvm.Spec{
		Java: java, Threads: w.Threads, Heap: w.Java.Heap, Live: w.Java.Live, Run: w.Java.Run, Sleep: w.Sleep.Average(),
		Deadline: s.Duration + slack,
	})
	if err != nil {
		return nil, err
	}
	return &jvmJob{process: p, name: w.Name, start: w.Start, length: s.Duration}, nil
}

func (j *jvmJob) pid() int         { return j.process.Pid() }
func (j *jvmJob) workload() string { return j.name }
func (j *jvmJob) prepare() error   { return j.process.Ready() }

func (j *jvmJob) begin(_ context.Context, at time.Duration) error {
	j.at = at
	if j.start == 0 {
		return j.process.Go()
	}
	// Should it have ended by then, its end says so.
	j.late = time.AfterFunc(at+j.start-workload.Now(), func() { _ = j.process.Go() })
	return nil
}

func (j *jvmJob) end() (map[string]scenario.WorkloadOutcome, []string, error) {
	var ms []float64
	for _, took := range j.process.Pauses(j.at, j.at+j.length) {
		ms = append(ms, float64(took)/1e6)
	}
	out := paused(len(ms), ms)
	var notes []string
	if len(ms) == 0 {
		notes = append(notes, fmt.Sprintf("%s: the JVM did not collect: let it run longer, or give it a smaller heap", j.name))
	}
	return map[string]scenario.WorkloadOutcome{j.name: out}, notes, nil
}

func (j *jvmJob) stop() error {
	if j.late != nil {
		j.late.Stop()
	}
	return j.process.Stop()
}
