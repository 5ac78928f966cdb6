package live

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/explain/threadpool"
	"github.com/unthrottle/unthrottle/internal/explain/threadpool/identify"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/see/observe"
	"github.com/unthrottle/unthrottle/internal/see/probe"
	"github.com/unthrottle/unthrottle/internal/see/recording"
)

// Options of Live.
type Options struct {
	// Host has this host's cgroups, Root its file system ("/"): for the kernel, its CPUs and sched_ext.
	Host *cgroup.Host
	Root fs.FS
	// Target is the container to explain. Others are containers to name as its neighbours.
	Target container.Container
	Others []container.Container
	// For is how long to record.
	For time.Duration
	// AskJVM asks JVMs for their threads' names, which stops each at a safepoint for a moment.
	AskJVM bool
	// Probe records, and stays open for the next recording; nil: one for this recording alone.
	Probe *probe.Kept
	// Keep receives the recording as it comes; nil: it is not kept.
	Keep io.Writer
	// Doing is called when a step before the recording begins, with what it does; nil: no call. On a full host such a step
	// can take a minute.
	Doing func(what string)
	// Began is called when the recording begins; nil: no call.
	Began func()
	// Event is called with each event as it comes, in their order; nil: no call. It must not keep the event.
	Event func(*recording.Event)

	processes map[uint32]threadpool.Process // the target's processes
	said      said                          // what they say of their threads
	age       *time.Duration                // of its oldest process at agedAt; nil: not known
	agedAt    time.Time
	notes     []string // facts that were not readable
}

// Gone says that the target was removed before the recording had anything of it.
type Gone struct {
	Name string
	Err  error
}

func (g *Gone) Error() string {
	return fmt.Sprintf("%s ended before anything of it was recorded: %v", g.Name, g.Err)
}

func (g *Gone) Unwrap() error { return g.Err }

// NotKept comes with a sound explanation: only the recording could not be kept.
type NotKept struct{ Err error }

func (n *NotKept) Error() string { return "the recording was not kept: " + n.Err.Error() }

func (n *NotKept) Unwrap() error { return n.Err }

// Live records a container for a while and explains it. The end of ctx, or of the target itself (EndedEarly),
// ends the recording early, and Live explains the part until then. If the kernel refuses BPF, Live reads
// counters instead: see FromCounters. The errors are *Gone, and *NotKept beside a sound explanation.
func Live(ctx context.Context, o Options) (diagnose.Explanation, error) {
	kept := o.Probe
	if kept == nil {
		kept = new(probe.Kept)
		defer kept.Close()
	}
	o.doing("loading the probe's BPF programs")
	p, err := kept.Open(probe.Options{})
	if refused := new(probe.Unavailable); errors.As(err, &refused) {
		return o.counters(ctx, refused)
	}
	if err != nil {
		return diagnose.Explanation{}, err
	}
	return o.record(ctx, p)
}

func (o *Options) doing(what string) {
	if o.Doing != nil {
		o.Doing(what)
	}
}

// counters explains from counters over the same time.
func (o Options) counters(ctx context.Context, refused *probe.Unavailable) (diagnose.Explanation, error) {
	if o.Keep != nil {
		return diagnose.Explanation{}, refused
	}
	if o.Began != nil {
		o.Began()
	}
	s := observe.NewSampler(o.Host, observe.Options{})
	defer s.Close()
	targets := []container.Container{o.Target}
	first, err := s.Sample(ctx, targets, nil)
	if err != nil {
		return diagnose.Explanation{}, err
	}
	within, over := o.whileItLasts(ctx)
	timer := time.NewTimer(o.For)
	defer timer.Stop()
	select {
	case <-within.Done():
	case <-timer.C:
	}
	ended := over()
	second, err := s.Sample(context.WithoutCancel(ctx), targets, nil)
	if err != nil {
		return diagnose.Explanation{}, err
	}
	if len(second) == 0 || second[0].Gone {
		return diagnose.Explanation{}, &Gone{o.Target.Name, errors.New("its cgroup was removed, and its counters with it")}
	}
	e := FromCounters(observe.Delta(&first[0], &second[0]), refused.Error())
	e.EndedEarly = ended
	return e, nil
}

func (o Options) record(ctx context.Context, p *probe.Probe) (diagnose.Explanation, error) {
	var a *analysis
	var k keeper
	copied := &tee{keep: o.Keep}
	before := o.throttledBefore(ctx)
	looked := func() { maps.Copy(o.said.names, o.askJVMs(ctx)) }
	footer, ended, err := o.take(ctx, p, looked, func(h *recording.Header) {
		a = newAnalysis(h, facts{said: o.said, processes: o.processes})
		k.begin(copied, h)
	}, func(e *recording.Event) {
		k.add(e)
		a.add(e)
		if o.Event != nil {
			o.Event(e)
		}
	})
	if err != nil {
		return diagnose.Explanation{}, err
	}
	k.end(footer)
	e, err := o.explain(a, footer, copied)
	e.EndedEarly = ended
	if e.Cause == diagnose.None && e.ThrottledPeriods != nil && *e.ThrottledPeriods == 0 {
		e.Verdict += calm(before, e.Window)
	}
	if failed := cmp.Or(copied.failed, k.err); err == nil && failed != nil && o.Keep != nil {
		return e, &NotKept{failed}
	}
	return e, err
}

// throttledBefore is the share of the periods that were throttled since the target was made; nil: not known.
func (o Options) throttledBefore(ctx context.Context) *float64 {
	if o.Host == nil {
		return nil
	}
	s := observe.NewSampler(o.Host, observe.Options{})
	defer s.Close()
	first, err := s.Sample(ctx, []container.Container{o.Target}, nil)
	if err != nil || len(first) == 0 {
		return nil
	}
	return observe.ThrottledBefore(first[0].Levels)
}

// explain ends an analysis. If threads of one name have several roles, it explains the copy of the recording by them.
func (o Options) explain(a *analysis, footer recording.Footer, copied *tee) (diagnose.Explanation, error) {
	with, ok := a.again(footer)
	if !ok {
		return a.end(footer), nil
	}
	if copied.full {
		e := a.end(footer)
		e.NotMeasured = append(e.NotMeasured, "roles: threads of one name do different work, and the recording is "+
			"too large to tell them apart at once; explain its file")
		return e, nil
	}
	return reading(bytes.NewReader(copied.memory.Bytes()), with)
}

// take records the target with a probe. It calls looked when the target's processes are known and nothing is recorded
// yet. ended says how the target ended meanwhile, "" if it has not.
func (o *Options) take(ctx context.Context, p *probe.Probe, looked func(), begin func(*recording.Header),
	add func(*recording.Event)) (footer recording.Footer, ended string, err error) {
	target, err := o.watched(o.Target)
	if err != nil {
		return footer, "", &Gone{o.Target.Name, err}
	}
	o.doing("reading the container's processes")
	o.lookAtProcesses()
	looked()
	var others []probe.Container
	for _, c := range o.Others {
		if other, err := o.watched(c); err == nil {
			others = append(others, other)
		}
	}
	within, over := o.whileItLasts(ctx)
	var born births
	o.doing("looking at the host's threads")
	footer, err = p.Record(within, probe.RecordOptions{
		Target: target, Others: others, For: o.For, Host: o.Host,
		Begin: func(h *recording.Header) error {
			o.complete(h)
			if c := o.Target; c.Pod != "" {
				h.Target.Namespace, h.Target.Pod, h.Target.Container = c.Namespace, c.Pod, c.ContainerName
			}
			born = newBirths(h)
			begin(h)
			if o.Began != nil {
				o.Began()
			}
			return nil
		},
	}, func(e *recording.Event) error {
		born.look(e)
		add(e)
		return nil
	})
	footer.Processes = born.found
	if o.Host != nil {
		levels, below, _ := o.readLevels() // gone meanwhile: what its events tell is known
		footer.Levels = slices.Concat(levels, below)
		footer.Frozen, _ = o.Host.Frozen(o.Target.Group.Path)
	}
	ended = over()
	if err != nil {
		return footer, ended, fmt.Errorf("%s: %w", o.Target.Name, err)
	}
	if acct := o.Target.Group.CPUAcctPath; acct != o.Target.Group.Path {
		footer.UsageNS = nil // that of another cgroup: on v1 cpuacct may be a hierarchy of its own
	}
	return footer, ended, nil
}

// watched returns a container as the probe takes it.
func (o Options) watched(c container.Container) (probe.Container, error) {
	id, err := o.Host.ID(cgroup.CPU, c.Group.Path)
	return probe.Container{ID: id, Path: c.Group.Path, Name: c.Name}, err
}

// askJVMs asks the JVMs among the processes for their threads' full names, by thread id, if the user wants
// that.
func (o *Options) askJVMs(ctx context.Context) map[uint32]string {
	if !o.AskJVM {
		return nil
	}
	all := map[uint32]string{}
	for pid, p := range o.processes {
		if !isJVM(p) {
			continue
		}
		found, err := identify.JVM(ctx, int(pid))
		if err != nil {
			o.notes = append(o.notes, fmt.Sprintf("names of the JVM's threads, process %d: %v", pid, err))
			continue
		}
		maps.Copy(all, found)
	}
	return all
}
