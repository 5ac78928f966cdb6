package demo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/clock"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/load/sandbox"
	"github.com/unthrottle/unthrottle/internal/load/workload"
)

// Prefix begins the name of a demo's sandbox.
const Prefix = "unthrottle-demo-"

const (
	sleepLength = 10 * time.Millisecond
	period      = cgroup.DefaultPeriod
	// warmUp lets the burners spend the first periods' quota unmeasured.
	warmUp = 500 * time.Millisecond
	// lookAround is how long the host's use of its CPUs is watched beforehand.
	lookAround = 500 * time.Millisecond
	// aroundVariant is about what starting and ending a child takes; for the
	// progress line alone.
	aroundVariant = 400 * time.Millisecond
	// startPatience and heldPatience bound the waits for a first sleep, which
	// many burners under a quota delay, and for the last one.
	startPatience = 15 * time.Second
	heldPatience  = 5 * time.Second
)

// plan is one variant to run.
type plan struct {
	name    string
	quota   bool
	cpus    cpuset.CPUSet
	burners int
}

// run is a demo under way.
type run struct {
	o       Options
	group   *sandbox.Group
	quota   int
	started time.Duration
	whole   time.Duration
}

// Run runs the four variants one after the other. It removes all that it made, also
// when ctx ends or a step fails. An error of type [*NotMeasurable] means that this
// host or user cannot run the demo.
func Run(ctx context.Context, o Options) (result Result, err error) {
	if o, err = o.filled(); err != nil {
		return result, err
	}
	r := &run{o: o, started: workload.Now()}
	r.whole = lookAround + 4*(warmUp+seconds(o.Seconds)+aroundVariant)
	r.say("looking for idle CPUs")
	result, err = r.inSandbox(ctx)
	if missing := new(NotMeasurable); errors.As(err, &missing) {
		return result, fmt.Errorf("the demo cannot run here: %w", err)
	}
	if err != nil {
		return result, err
	}
	result.Verdict = judge(result)
	return result, nil
}

// inSandbox makes the sandbox, measures, and removes it.
func (r *run) inSandbox(ctx context.Context) (result Result, err error) {
	box, err := sandbox.Open(sandbox.Options{
		Host: r.o.Host, FS: r.o.FS, Prefix: Prefix, Run: r.o.RunID, Scope: r.o.Scope, Fair: r.o.Fair, Proc: r.o.ProcDir,
	})
	if err != nil {
		return result, fmt.Errorf("demo: %w", err)
	}
	result = r.describe()
	result.Removed = box.Leftovers.Removed
	result.Notes = append([]string{}, box.Leftovers.Stay...)
	err = r.measure(ctx, box, &result)
	r.say("cleaning up")
	err = errors.Join(err, box.Remove())
	result.Restored = err == nil
	return result, err
}

// measure chooses the CPUs and runs the variants.
func (r *run) measure(ctx context.Context, box *sandbox.Sandbox, result *Result) error {
	set := box.CPUs()
	r.quota = quotaCPUs(set.Intersection(r.o.Machine.Online()).Size())
	if err := checkRoom(box, r.quota); err != nil {
		return err
	}
	pinned, err := r.quietCPUs(ctx, set)
	if err != nil {
		return err
	}
	result.Quota, result.Pinned = r.quota, pinned.String()
	result.Burners = r.o.Burners
	if r.group, err = box.Group("load"); err != nil {
		return err
	}
	return r.variants(ctx, result, set, pinned)
}

// describe makes the part of a result that is known before the first variant.
func (r *run) describe() Result {
	var u unix.Utsname
	_ = unix.Uname(&u) // fails for a bad pointer only
	return Result{
		RunID: r.o.RunID, Kernel: unix.ByteSliceToString(u.Release[:]), CPUs: r.o.Machine.Online().Size(),
		Cgroups: r.o.Host.Mode(), Scope: r.o.Scope, Period: period.Seconds(), Sleep: millis(sleepLength),
		Seconds: r.o.Seconds, Fair: r.o.Fair,
	}
}

// quietCPUs watches the host for a moment and chooses the CPUs to pin to.
func (r *run) quietCPUs(ctx context.Context, set cpuset.CPUSet) (cpuset.CPUSet, error) {
	// Without /proc/stat all CPUs count as equally quiet.
	before := cpuTimes(r.o.ProcDir)
	from := workload.Now()
	if err := clock.Sleep(ctx, lookAround); err != nil {
		return set, err
	}
	after := cpuTimes(r.o.ProcDir)
	pinned, err := choosePinned(r.o.Machine, set, busyShares(before, after, workload.Now()-from), r.quota)
	if err != nil {
		return set, &NotMeasurable{What: "no CPUs to pin to", WayOut: "run it on a host with more CPUs", Err: err}
	}
	return pinned, nil
}

func (r *run) variants(ctx context.Context, result *Result, set, pinned cpuset.CPUSet) error {
	plans := []plan{
		{"quota", true, set, result.Burners},
		{"threads", true, set, r.quota},
		{"cpuset", true, pinned, result.Burners},
		{"pin", false, pinned, result.Burners},
	}
	variants := []*Variant{&result.Before, &result.Threads, &result.CPUSet, &result.After}
	windows := make([]window, len(plans))
	for i, p := range plans {
		w, err := r.variant(ctx, p)
		if err != nil {
			return fmt.Errorf("demo: variant %s: %w", p.name, err)
		}
		windows[i] = w
		a := Variant{Name: p.name, Burners: p.burners, CPUs: p.cpus.String()}
		if p.quota {
			a.Quota = ptr(r.quota)
		}
		*variants[i] = w.figures(a)
	}
	fillHistograms(variants, windows, sleepLength)
	return nil
}

// variant runs one variant with a child of its own.
func (r *run) variant(ctx context.Context, p plan) (w window, err error) {
	limit := cgroup.Unlimited()
	if p.quota {
		limit.Quota = time.Duration(r.quota) * period
	}
	if err := r.group.SetLimit(limit); err != nil {
		return w, err
	}
	if err := r.group.SetCPUs(p.cpus); err != nil {
		return w, err
	}
	child, err := workload.Start(r.o.Exe, workload.Spec{
		Burners: p.burners, Sleep: sleepLength,
		Deadline: r.o.patience + warmUp + seconds(r.o.Seconds) + heldPatience,
	})
	if err != nil {
		return w, err
	}
	defer func() { err = errors.Join(err, child.Stop()) }()
	if err := r.group.Attach(child.Pid()); err != nil {
		return w, err
	}
	if err := child.Go(); err != nil {
		return w, err
	}
	w, err = r.watch(ctx, p.name, child.Records())
	w.quota = p.quota
	return w, err
}

// watch reads the sleeper through its first sleep, warm-up, the window and the
// sleep that is under way when the window closes.
func (r *run) watch(ctx context.Context, variant string, records <-chan workload.Record) (w window, err error) {
	latest := workload.Now() // when the last known sleep ended, about when the next began
	next := func(until time.Duration, enough func(workload.Record) bool) (bool, error) {
		return r.collect(ctx, variant, records, until, func(rec workload.Record) bool {
			latest = rec.End()
			return enough(rec)
		})
	}
	first := func(workload.Record) bool { return true }
	if came, err := next(workload.Now()+r.o.patience, first); err != nil || !came {
		return w, errors.Join(err, r.notCome(came))
	}
	skip := func(workload.Record) bool { return false }
	if _, err := next(workload.Now()+warmUp, skip); err != nil {
		return w, err
	}
	if w.begin, err = r.count(); err != nil {
		return w, err
	}
	keep := func(rec workload.Record) bool {
		if rec.Start >= w.begin.at {
			w.records = append(w.records, rec)
		}
		return false
	}
	if _, err := next(w.begin.at+seconds(r.o.Seconds), keep); err != nil {
		return w, err
	}
	if w.end, err = r.count(); err != nil {
		return w, err
	}
	past := func(rec workload.Record) bool { return rec.Start >= w.end.at || keep(rec) }
	came, err := next(w.end.at+heldPatience, past)
	if err == nil && !came {
		w.held = true
		w.records = append(w.records, workload.Record{Start: latest, Took: workload.Now() - latest})
	}
	return w, err
}

func (r *run) notCome(came bool) error {
	if came {
		return nil
	}
	return &NotMeasurable{What: fmt.Sprintf("no sleep ended within %v: the host is too busy to measure on",
		r.o.patience), WayOut: "try again when it is quieter"}
}

// collect hands on records until enough says so (true), or the time has come
// (false).
func (r *run) collect(ctx context.Context, variant string, records <-chan workload.Record, until time.Duration,
	enough func(workload.Record) bool) (bool, error) {
	end := time.NewTimer(until - workload.Now())
	defer end.Stop()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-end.C:
			return false, nil
		case <-tick.C:
			r.say(variant)
		case rec, ok := <-records:
			if !ok {
				return false, errors.New("the child ended before its time")
			}
			if enough(rec) {
				return true, nil
			}
		}
	}
}

// count reads all counters. The clock is read between the two sources, which lie some
// 100 us apart.
func (r *run) count() (counters, error) {
	host := cpuTimes(r.o.ProcDir) // nil: others' use is not measured
	at := workload.Now()
	stat, err := r.group.Stat()
	return counters{at: at, stat: stat, host: host}, err
}

func (r *run) say(doing string) {
	r.o.Progress(Event{Doing: doing, Done: workload.Now() - r.started, Total: r.whole})
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
