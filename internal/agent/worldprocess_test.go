package agent

import (
	"context"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/clock"
	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/cure/fix"
	"github.com/unthrottle/unthrottle/internal/cure/hoststate"
	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/cure/slo"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup/cgroupmodel"
	"github.com/unthrottle/unthrottle/internal/see/observe"
	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/internal/txn/apply"
	"github.com/unthrottle/unthrottle/internal/txn/journal"
)

// life is one process of the agent.
type life struct {
	*agent
	pid    int
	born   time.Time
	cancel context.CancelFunc
	done   chan struct{}
	dead   atomic.Bool
}

// kernelOf is the kernel as one agent has it: it may refuse, and it may be the last that this agent does.
type kernelOf struct {
	*cgroupmodel.Kernel
	w       *world
	l       *life
	killIn  atomic.Int64 // changes until the agent is killed; below 1: it is not
	refuses bool         // now and then
}

func (k *kernelOf) change(op cgroupmodel.Op) error {
	if k.l.dead.Load() {
		runtime.Goexit()
	}
	k.w.mu.Lock()
	busy := k.w.busy
	k.w.mu.Unlock()
	if !busy && k.killIn.Add(-1) == 0 {
		k.w.die(k.l)
		runtime.Goexit()
	}
	if k.refuses && k.w.chance(6) == 0 {
		k.w.mu.Lock()
		k.w.refused = time.Now()
		k.w.mu.Unlock()
		k.w.count("refused")
		return &cgroup.Error{Op: op.Kind, Path: op.Path, File: op.File, Value: op.Value, Errno: unix.EINVAL}
	}
	return nil
}

func (k *kernelOf) Write(c cgroup.Controller, path, file, value string) error {
	if err := k.change(cgroupmodel.Op{Kind: cgroup.OpWrite, Controller: c, Path: path, File: file, Value: value}); err != nil {
		return err
	}
	return k.Kernel.Write(c, path, file, value)
}

func (k *kernelOf) Make(c cgroup.Controller, path string) error {
	if err := k.change(cgroupmodel.Op{Kind: cgroup.OpMake, Controller: c, Path: path}); err != nil {
		return err
	}
	return k.Kernel.Make(c, path)
}

func (k *kernelOf) Remove(c cgroup.Controller, path string) error {
	if err := k.change(cgroupmodel.Op{Kind: cgroup.OpRemove, Controller: c, Path: path}); err != nil {
		return err
	}
	return k.Kernel.Remove(c, path)
}

func (k *kernelOf) Attach(c cgroup.Controller, path string, pid int) error {
	if err := k.change(cgroupmodel.Op{Kind: cgroup.OpAttach, Controller: c, Path: path, Value: strconv.Itoa(pid)}); err != nil {
		return err
	}
	return k.Kernel.Attach(c, path, pid)
}

// processesOf is apply.Proc as one process has it.
type processesOf struct {
	w   *world
	pid int
}

func (p processesOf) Allowed(tid int) (cpuset.CPUSet, error) {
	set, ok := p.w.k.Allowed(tid)
	if !ok {
		return set, os.ErrNotExist
	}
	return set, nil
}
func (processesOf) KernelThread(int) (bool, error) { return false, nil }
func (processesOf) AllProcesses() (bool, error)    { return true, nil }
func (processesOf) Threads(pid int) ([]int, error) { return []int{pid}, nil }
func (p processesOf) Self() (journal.Process, error) {
	return journal.Process{PID: p.pid, Started: 1}, nil
}
func (p processesOf) Runs(other journal.Process) (bool, error) {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	return p.w.running[other.PID], nil
}

// start starts an agent.
func (w *world) start() {
	rules, err := policy.ParseRules([]byte(worldRules))
	w.must(err)
	w.lives++
	l := &life{pid: 10_000 + w.lives, born: time.Now(), done: make(chan struct{})}
	k := &kernelOf{Kernel: w.k, w: w, l: l}
	if w.rng.IntN(3) > 0 {
		k.killIn.Store(1 + int64(w.rng.IntN(15)))
	}
	k.refuses = w.rng.IntN(2) == 0
	env := apply.Env{FS: k, StateDir: w.journal(), BootID: "boot", By: "agent", Proc: processesOf{w, l.pid}}
	l.agent = &agent{wake: make(chan struct{}, 1), chooser: newChooser(rules, ""), Config: Config{
		Rules: rules, Env: env, Log: slog.New(slog.NewTextHandler(w, nil)), Latencies: w.source,
		List: func() ([]container.Container, error) { return w.list(), nil },
		Facts: func(ctx context.Context, containers []container.Container, used map[string]float64) (hoststate.Facts, error) {
			return w.facts(ctx, env, containers, used)
		},
		Fix: func(latencies slo.Source) fix.Env {
			return fix.Env{Apply: env, Latencies: latencies, Wait: clock.Sleep,
				Observe: func(ctx context.Context, containers []container.Container, window time.Duration) ([]observe.Observation, error) {
					if err := clock.Sleep(ctx, window); err != nil {
						return nil, err
					}
					return w.observe(containers, window), nil
				},
				Learn: func(ctx context.Context, c container.Container, length time.Duration) (fix.Learned, error) {
					if err := clock.Sleep(ctx, length); err != nil {
						return fix.Learned{}, err
					}
					r, err := w.at(c.Group.Path)
					return fix.Learned{Explanation: r.Explanation, Load: r.Load, Missing: r.Missing, Runs: r.Runs}, err
				},
				Facts: func(ctx context.Context, containers []container.Container, used map[string]float64) (hoststate.Facts, error) {
					return w.facts(ctx, env, containers, used)
				},
			}
		},
	}}
	l.Rules.Flight = policy.DefaultFlight()
	l.Flight = Flight{Dir: w.t.TempDir(), Record: w.recordOf, Read: w.readOf}
	l.recorder = newRecorder(l.agent)
	var ctx context.Context
	ctx, l.cancel = context.WithCancel(w.t.Context())
	w.mu.Lock()
	w.running[l.pid] = true
	w.mu.Unlock()
	w.now = l
	w.note("agent %d starts", l.pid)
	var parts sync.WaitGroup
	parts.Go(func() { _ = l.recorder.record(ctx) })
	parts.Go(func() { _ = l.act(ctx) })
	go func() {
		defer close(l.done)
		parts.Wait()
	}()
}

// die kills an agent where it stands. The journal stays as it is on disk now: what its goroutines still write is lost.
func (w *world) die(l *life) {
	w.mu.Lock()
	defer w.mu.Unlock()
	left := w.stateDir + "'"
	if err := os.CopyFS(left, os.DirFS(w.stateDir)); err != nil {
		panic(err)
	}
	w.stateDir, w.running[l.pid] = left, false
	l.dead.Store(true)
}

// stop ends an agent: by SIGTERM, or it is dead already.
func (w *world) stop() {
	l := w.now
	l.cancel()
	<-l.done
	w.now = nil
	w.mu.Lock()
	w.running[l.pid] = false
	w.mu.Unlock()
	if l.dead.Load() {
		w.count("killed")
		w.note("agent %d was killed", l.pid)
		return
	}
	w.note("agent %d ended", l.pid)
	for _, f := range w.held() {
		if f.Trial != nil && f.Trial.PID == l.pid && time.Since(w.refusedLast()) > time.Minute {
			w.fail("agent %d ended and left on trial: %+v", l.pid, f)
		}
	}
}

func (w *world) refusedLast() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.refused
}

// person is the environment of a command that a user runs.
func (w *world) person() apply.Env {
	return apply.Env{FS: w.k, StateDir: w.journal(), BootID: "boot", By: "person", Proc: processesOf{w, 1}}
}

func (w *world) held() []txn.InForce {
	held, err := apply.Status(w.person())
	w.must(err)
	return held
}

// heldNow is held, read again only when the journal has changed or a trial may have ended with its process.
func (w *world) heldNow() []txn.InForce {
	stamp, err := apply.Stamp(w.person())
	w.must(err)
	if stamp += w.journal(); stamp != w.stamp || slices.ContainsFunc(w.inForce, func(f txn.InForce) bool { return f.Trial != nil }) {
		w.stamp, w.inForce = stamp, w.held()
	}
	return w.inForce
}

// journal is the directory of the journal as it is for those who live.
func (w *world) journal() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stateDir
}

// command runs what a person does. Meanwhile no agent is killed, since the copy of the journal would split in two.
func (w *world) command(what string, run func(apply.Env) error) {
	w.mu.Lock()
	w.busy, w.running[1] = true, true
	w.mu.Unlock()
	if w.now == nil || !w.now.dead.Load() {
		err := run(w.person())
		w.note("%s: %v", what, err)
		w.count("commands")
	}
	w.mu.Lock()
	w.busy, w.running[1] = false, false
	w.mu.Unlock()
}
