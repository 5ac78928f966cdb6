package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/clock"
	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/cure/curetest"
	"github.com/unthrottle/unthrottle/internal/cure/fix"
	"github.com/unthrottle/unthrottle/internal/cure/hoststate"
	"github.com/unthrottle/unthrottle/internal/cure/hoststate/gather"
	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/cure/slo"
	"github.com/unthrottle/unthrottle/internal/cure/txn"
	"github.com/unthrottle/unthrottle/internal/cure/txn/apply"
	"github.com/unthrottle/unthrottle/internal/cure/txn/journal"
	"github.com/unthrottle/unthrottle/internal/cure/verdict"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup/cgroupmodel"
	"github.com/unthrottle/unthrottle/internal/see/observe"
)

// Lengths of the world: rounds of a second, and how much of it one modelled host lives through.
const (
	worldRounds  = 10_000
	roundsOfHost = 2_500
	worldLook    = 2 * time.Second // length of recordings
	worldCPUs    = "0-7"
	mostBoxes    = 8
)

// worldRules let the agent act by the probe, by a latency source, with more CPU than the limit, and not at all.
const worldRules = `version: 1
mode: apply
budget: {containers: 4, moves_per_minute: 30, cpu_share: 75%}
rules:
- match: {name: "left-*"}
  remedy: none
- match: {name: "raised-*"}
  verify: probe
  may: [raise, pin]
- match: {name: "asked-0"}
  slo: {objective: p99<20ms, command: asked-0, look_back: 20s}
- match: {name: "asked-1"}
  slo: {objective: p99<20ms, command: asked-1}
- match: {name: "pinned-0"}
  remedy: pin
  lends: true
  slo: {objective: p99<5ms, command: pinned-0}
- match: {name: "narrowed-0"}
  remedy: narrow
  slo: {objective: p99<5ms, command: narrowed-0, look_back: 20s}
- match: {name: "pinned-1"}
  remedy: pin
  lends: true
  slo: {objective: p99<5ms, command: pinned-1}
- match: {name: "narrowed-1"}
  remedy: narrow
  slo: {objective: p99<5ms, command: narrowed-1, look_back: 20s}
- match: {name: "second-*"}
  remedy: secondary
- match: {name: "probed-*"}
  verify: probe
`

// world is a modelled host on a virtual clock on which agents live and die, containers come, change and go, people act,
// and the kernel refuses. What containers do follows from the settings in force (package curetest).
type world struct {
	t    *testing.T
	k    *cgroupmodel.Kernel
	v    cgroup.Version
	root fstest.MapFS
	rng  *rand.Rand
	log  *bytes.Buffer

	mu       sync.Mutex // guards what agents read beside the test
	boxes    map[string]*box
	stateDir string
	running  map[int]bool // processes by number
	busy     bool         // a person acts: nobody is killed, the journal is theirs too

	now     *life // nil: no agent runs
	lives   int
	nextPID int
	refused time.Time // when the kernel refused last
	counts  map[string]int
	gone    map[string]time.Time // when containers were removed
	stamp   string               // of the journal, and what was in force by it
	inForce []txn.InForce
}

// box is one container.
type box struct {
	container container.Container
	pid       int
	work      string
	limit     cgroup.Limit // as its owner wrote it last
	born      time.Time
	changed   time.Time // by its owner, or by its work
	past      []curetest.Setting
}

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
	if k.refuses && k.w.chance(10) == 0 {
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

func newWorldOf(t *testing.T, seed uint64) *world {
	w := &world{t: t, rng: rand.New(rand.NewPCG(seed, 1)), log: &bytes.Buffer{}, boxes: map[string]*box{}, stateDir: t.TempDir(), running: map[int]bool{}, nextPID: 100, counts: map[string]int{}, gone: map[string]time.Time{}}
	w.root = twoSockets()
	config := cgroupmodel.V1(worldCPUs)
	if w.v = cgroup.V1; seed%2 == 1 {
		w.v, config = cgroup.V2, cgroupmodel.V2(worldCPUs)
		config.ClearsPopulated = true // else an empty list comes back as one of all CPUs, which is the same
	}
	w.k = cgroupmodel.New(config)
	if w.v == cgroup.V2 {
		w.must(w.k.Write(cgroup.CPU, "/", cgroup.FileSubtreeControl, "+cpu +cpuset"))
	}
	w.makeGroup("/a")
	if w.v == cgroup.V2 {
		w.must(w.k.Write(cgroup.CPU, "/a", cgroup.FileSubtreeControl, "+cpu +cpuset"))
	}
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.fail("%v", err)
	}
}

// count counts what happened, so that a world in which nothing does is noticed.
func (w *world) count(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts[what]++
}

// fail ends the test with what the agents said last.
func (w *world) fail(format string, args ...any) {
	w.t.Helper()
	if w.now != nil {
		w.now.cancel()
		<-w.now.done
	}
	lines := strings.Split(w.log.String(), "\n")
	w.t.Fatalf(format+"\n%s", append(args, strings.Join(lines[max(0, len(lines)-60):], "\n"))...)
}

// note says for people what happened, among the lines of the agents' logs.
func (w *world) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	fmt.Fprintf(w.log, "%s -- "+format+"\n", append([]any{time.Now().Format("15:04:05")}, args...)...)
}

// Write is for the logs of agents.
func (w *world) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.log.Len() > 1<<20 {
		w.log.Reset()
	}
	if _, after, ok := bytes.Cut(line, []byte("msg=applied ")); ok {
		_, verdict, _ := bytes.Cut(after, []byte("verdict="))
		verdict, _, _ = bytes.Cut(verdict, []byte(" transaction"))
		_, what, _ := bytes.Cut(after, []byte("remedy="))
		what, _, _ = bytes.Cut(what, []byte(" "))
		w.counts["kept "+string(what)+" "+string(verdict)]++
	}
	if bytes.Contains(line, []byte(`msg="not fixed"`)) {
		w.counts["not fixed"]++
	}
	return w.log.Write(line)
}

func (w *world) makeGroup(path string) {
	w.t.Helper()
	w.must(w.k.Make(cgroup.CPU, path))
	if w.v == cgroup.V1 {
		w.must(w.k.Make(cgroup.CPUSet, path))
		w.must(w.k.Make(cgroup.CPUAcct, path))
		w.must(w.k.Write(cgroup.CPUSet, path, cgroup.FileMems, "0"))
		w.must(w.k.Write(cgroup.CPUSet, path, cgroup.FileCPUs, worldCPUs))
	}
}

// setLimit writes a quota as a container's owner does. It reports whether the kernel took it: a quota below a burst is
// refused.
func (w *world) setLimit(path string, want cgroup.Limit) bool {
	cur, err := cgroup.ReadLimit(w.k, path)
	w.must(err)
	want.Burst = cur.Burst
	for _, f := range cgroup.LimitWrites(w.v, cur, want) {
		if w.k.Write(cgroup.CPU, path, f.File, f.Value) != nil {
			return false
		}
	}
	return true
}

// create starts a container.
func (w *world) create() {
	kinds := []string{"left", "raised", "asked", "pinned", "pinned", "narrowed", "second", "probed"}
	kind := kinds[w.rng.IntN(len(kinds))]
	name := fmt.Sprintf("%s-%d", kind, w.rng.IntN(2)) // as an earlier one, which is gone
	path := "/a/" + name
	if w.boxes[path] != nil || len(w.boxes) >= mostBoxes {
		return
	}
	w.makeGroup(path)
	w.nextPID++
	w.k.Spawn(path, w.nextPID)
	b := &box{pid: w.nextPID, work: w.anyWork(), limit: cgroup.Limit{Quota: 100 * time.Millisecond, Period: 100 * time.Millisecond}, born: time.Now(), changed: time.Now(),
		container: container.Container{Name: name, Group: cgroup.Group{Path: path, CPUSetPath: path, CPUAcctPath: path}}}
	if !w.setLimit(path, b.limit) {
		w.fail("%s: the model refuses a quota", path)
	}
	w.mu.Lock()
	w.boxes[path] = b
	w.mu.Unlock()
	w.note("%s is created: %s", path, b.work)
	w.changed()
}

func (w *world) remove() {
	path := w.anyBox()
	if path == "" {
		return
	}
	w.k.Exit(w.boxes[path].pid)
	for _, c := range []cgroup.Controller{cgroup.CPU, cgroup.CPUSet, cgroup.CPUAcct} {
		if children, err := w.k.Children(c, path); err == nil {
			for _, child := range children { // what a remedy made below it goes with it
				_ = w.k.Remove(c, child)
			}
		}
		_ = w.k.Remove(c, path)
	}
	w.mu.Lock()
	delete(w.boxes, path)
	w.mu.Unlock()
	w.gone[path] = time.Now()
	w.note("%s is removed", path)
	w.count("removed")
	w.changed()
}

func (w *world) anyBox() string {
	all := slices.Sorted(maps.Keys(w.boxes))
	if len(all) == 0 {
		return ""
	}
	return all[w.rng.IntN(len(all))]
}

func (w *world) anyWork() string {
	all := slices.Sorted(maps.Keys(curetest.Works))
	return all[w.rng.IntN(len(all))]
}

// changed tells a living agent that containers came or went, as its watcher does.
func (w *world) changed() {
	if w.now == nil {
		return
	}
	w.now.mu.Lock()
	w.now.newcomers = newcomerRounds
	w.now.mu.Unlock()
	w.now.signal()
}

// worldSeen are recordings by work and setting.
var worldSeen = map[string]curetest.Recording{}
var worldSeenMu sync.Mutex

// does is what the container does under a setting.
func does(work string, under curetest.Setting) (curetest.Recording, error) {
	key := fmt.Sprintf("%s %+v", work, under)
	worldSeenMu.Lock()
	defer worldSeenMu.Unlock()
	if r, ok := worldSeen[key]; ok {
		return r, nil
	}
	r, err := curetest.Record(curetest.Works[work], under, 8, worldLook)
	if err == nil {
		worldSeen[key] = r
	}
	return r, err
}

// at is what a container does now.
func (w *world) at(path string) (curetest.Recording, error) {
	w.mu.Lock()
	b := w.boxes[path]
	w.mu.Unlock()
	if b == nil {
		return curetest.Recording{}, &cgroup.Error{Op: cgroup.OpRead, Path: path, Errno: unix.ENOENT}
	}
	under, err := curetest.SettingOf(w.k, path)
	if err != nil {
		return curetest.Recording{}, err
	}
	return does(b.work, under)
}

func responses(r curetest.Recording) []float64 {
	var all []float64
	for _, run := range r.Runs.Of("") {
		all = append(all, run.Response.Seconds()*1000)
	}
	return all
}

func p99(r curetest.Recording) float64 {
	s, _ := verdict.Quantile(responses(r), 0.99)
	return s.Value
}

func (w *world) list() []container.Container {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []container.Container
	for _, path := range slices.Sorted(maps.Keys(w.boxes)) {
		all = append(all, w.boxes[path].container)
	}
	return all
}

// observe is a window of the counters that has just ended.
func (w *world) observe(all []container.Container, window time.Duration) []observe.Observation {
	var seen []observe.Observation
	for _, c := range all {
		r, err := w.at(c.Group.Path)
		if err != nil {
			continue
		}
		levels, err := cgroup.Levels(w.k, c.Group.Path)
		if err != nil {
			continue
		}
		e := r.Explanation
		var stopped time.Duration
		if e.Stopped != nil {
			stopped = time.Duration(float64(window) * e.Stopped.Seconds() / e.Window.Seconds())
		}
		o := observe.Observation{Container: c, Start: time.Now().Add(-window), Window: window, Levels: levels,
			UsedCPUs: e.MeanWidth, StoppedLow: &stopped, StoppedHigh: new(stopped)}
		if limit, limited, at := cgroup.Effective(levels); limited {
			o.LimitCPUs, o.LimitAt = &limit, at
		}
		seen = append(seen, o)
	}
	return seen
}

func (w *world) facts(ctx context.Context, env apply.Env, all []container.Container, used map[string]float64) (hoststate.Facts, error) {
	held, err := apply.Status(env)
	if err != nil {
		return hoststate.Facts{}, err
	}
	drift, err := apply.Drift(env)
	if err != nil {
		return hoststate.Facts{}, err
	}
	return gather.From(ctx, w.k, false, all, gather.Options{Root: w.root, Held: held, Drift: drift, Used: used})
}

// source is a latency source. One that looks back prints the latencies of the last 20 s, whatever it is asked for.
func (w *world) source(name string) slo.Source {
	return func(_ context.Context, since time.Time) ([]float64, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		b := w.boxes["/a/"+name]
		if b == nil {
			return nil, errors.New("it is gone")
		}
		seconds := int(time.Since(since).Round(time.Second) / time.Second)
		if name == "asked-0" || strings.HasPrefix(name, "narrowed-") {
			seconds = 20
		}
		var all []float64
		for _, under := range b.past[max(0, len(b.past)-max(1, seconds)):] {
			r, err := does(b.work, under)
			if err != nil {
				return nil, err
			}
			of := responses(r)
			for range min(150, 10*len(of)) {
				all = append(all, of[w.chance(len(of))]*(1+float64(w.chance(1000))/1e5))
			}
		}
		return all, nil
	}
}

// chance is for goroutines beside the test's.
func (w *world) chance(n int) int { return rand.IntN(n) }

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
	l.agent = &agent{wake: make(chan struct{}, 1), Config: Config{
		Rules: rules, Env: env, Log: slog.New(slog.NewTextHandler(w, nil)), Latencies: w.source,
		List: func() ([]container.Container, error) { return w.list(), nil },
		Facts: func(ctx context.Context, all []container.Container, used map[string]float64) (hoststate.Facts, error) {
			return w.facts(ctx, env, all, used)
		},
		Fix: func(latencies slo.Source) fix.Env {
			return fix.Env{Apply: env, Latencies: latencies, Wait: clock.Sleep,
				Observe: func(ctx context.Context, all []container.Container, window time.Duration) ([]observe.Observation, error) {
					if err := clock.Sleep(ctx, window); err != nil {
						return nil, err
					}
					return w.observe(all, window), nil
				},
				Learn: func(ctx context.Context, c container.Container, length time.Duration) (fix.Learned, error) {
					if err := clock.Sleep(ctx, length); err != nil {
						return fix.Learned{}, err
					}
					r, err := w.at(c.Group.Path)
					return fix.Learned{Explanation: r.Explanation, Load: r.Load, Missing: r.Missing, Runs: r.Runs}, err
				},
				Facts: func(ctx context.Context, all []container.Container, used map[string]float64) (hoststate.Facts, error) {
					return w.facts(ctx, env, all, used)
				},
			}
		},
	}}
	var ctx context.Context
	ctx, l.cancel = context.WithCancel(w.t.Context())
	w.mu.Lock()
	w.running[l.pid] = true
	w.mu.Unlock()
	w.now = l
	w.note("agent %d starts", l.pid)
	go func() {
		defer close(l.done)
		_ = l.act(ctx)
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

// person is the environment of a command that somebody runs.
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

// happen is what may befall the host between two rounds.
func (w *world) happen() {
	switch n := w.rng.IntN(600); {
	case n < 8:
		w.create()
	case n < 12:
		w.remove()
	case n < 18:
		if path := w.anyBox(); path != "" {
			b := w.boxes[path]
			w.mu.Lock()
			b.work, b.changed = w.anyWork(), time.Now()
			w.mu.Unlock()
			w.note("%s does %s", path, b.work)
		}
	case n < 20:
		if path := w.anyBox(); path != "" {
			want := cgroup.Limit{Quota: time.Duration(50+50*w.rng.IntN(4)) * time.Millisecond, Period: 100 * time.Millisecond}
			if b := w.boxes[path]; w.setLimit(path, want) {
				b.limit, b.changed = want, time.Now()
				w.note("%s: its owner writes %v", path, want.Quota)
				w.count("owner")
			}
		}
	case n < 21:
		w.command("restore of all", func(env apply.Env) error {
			_, err := apply.Restore(w.t.Context(), env, apply.Selector{})
			return err
		})
	case n < 23:
		if path := w.anyBox(); path != "" {
			w.command("apply burst to "+path, func(env apply.Env) error {
				facts, err := w.facts(w.t.Context(), env, w.list(), map[string]float64{})
				if err != nil {
					return err
				}
				plan, err := remedy.Make(facts, w.boxes[path].container, remedy.Request{Kind: remedy.Burst})
				if err != nil {
					return err
				}
				_, err = apply.Apply(w.t.Context(), env, plan.Purpose(), plan.Changes)
				return err
			})
		}
	case n < 25 && w.now != nil:
		w.stop()
	case n < 28:
		w.note("the machine sleeps for an hour")
		time.Sleep(time.Hour)
	}
}

// round lets a second go by.
func (w *world) round() {
	w.happen()
	if w.now != nil && w.now.dead.Load() {
		w.stop()
	}
	if w.now == nil && w.rng.IntN(20) == 0 {
		w.start()
	}
	time.Sleep(time.Second)
	synctest.Wait()
	for path, b := range w.boxes {
		under, err := curetest.SettingOf(w.k, path)
		w.must(err)
		w.mu.Lock()
		b.past = append(b.past[max(0, len(b.past)-60):], under)
		w.mu.Unlock()
	}
	if l := w.now; l != nil && !l.dead.Load() {
		seen := observe.Snapshot{At: time.Now(), Observations: w.observe(w.list(), time.Second)}
		l.mu.Lock()
		l.latest, l.lastRound = seen, time.Now()
		l.mu.Unlock()
		l.signal()
		synctest.Wait()
	}
	w.check()
}

// check compares the host with what must be true at every moment.
func (w *world) check() {
	w.t.Helper()
	if bad := w.k.Check(); len(bad) > 0 {
		w.fail("tasks without a CPU: %q", bad)
	}
	held := w.heldNow()
	now := time.Now()
	quiet := w.now != nil && !w.now.dead.Load() && now.Sub(w.now.born) > 30*time.Second && now.Sub(w.refusedLast()) > 10*time.Minute
	if quiet {
		if err := w.now.health(now); err != nil {
			w.fail("%v", err)
		}
	}
	for _, f := range held {
		b := w.boxes[f.Target]
		switch {
		case b == nil && quiet && now.Sub(w.gone[f.Target]) > 30*time.Second:
			w.fail("its container is gone, and it is in force: %+v", f)
		case b == nil:
		case f.By == "agent" && strings.HasPrefix(b.container.Name, "left-"):
			w.fail("%s is to be left alone: %+v", f.Target, f)
		case f.By == "agent" && f.Trial == nil && !f.Unfinished && f.Since.Sub(b.changed) > time.Minute:
			w.notWorse(f, b)
		}
		if quiet && f.Trial == nil && !f.Unfinished {
			w.alone(f)
		}
	}
}

// alone: what is pinned for one container runs no other that has been there for some seconds, except what may share.
func (w *world) alone(f txn.InForce) {
	notes, err := remedy.Decode(f, "")
	w.must(err)
	taken := notes.Withdrawn()
	if taken.IsEmpty() {
		return
	}
	for path, b := range w.boxes {
		if path == f.Target || time.Since(b.born) < 30*time.Second || strings.HasPrefix(b.container.Name, "second-") {
			continue
		}
		if runs, _ := w.k.Allowed(b.pid); !runs.Intersection(taken).IsEmpty() {
			w.fail("%s runs on %s, and %s has %s alone: %+v", path, runs, f.Target, taken, f)
		}
		w.count("apart")
	}
}

// notWorse: with what is in force the container's p99 is no worse than without it.
func (w *world) notWorse(f txn.InForce, b *box) {
	under, err := curetest.SettingOf(w.k, f.Target)
	w.must(err)
	is, err := does(b.work, under)
	w.must(err)
	was, err := does(b.work, curetest.Setting{Limit: b.limit, CPUs: 8})
	w.must(err)
	if p99(is) > 1.15*p99(was)+0.1 {
		w.fail("%s of %s, which does %s: p99 %.3g ms, without it %.3g: %+v", f.Remedy, f.Target, b.work, p99(is), p99(was), f)
	}
	w.count("kept rounds")
}

// end restores everything, and compares the host with what its owners wrote.
func (w *world) end() {
	w.t.Helper()
	if w.now != nil {
		w.stop()
	}
	for range 2 {
		if _, err := apply.Restore(w.t.Context(), w.person(), apply.Selector{}); err != nil {
			w.fail("at the end: %v", err)
		}
	}
	if held := w.held(); len(held) > 0 {
		w.fail("all was restored, and this is in force: %+v", held)
	}
	fresh := newWorldOf(w.t, map[cgroup.Version]uint64{cgroup.V1: 0, cgroup.V2: 1}[w.v])
	for path, b := range w.boxes {
		fresh.makeGroup(path)
		fresh.k.Spawn(path, b.pid)
		fresh.setLimit(path, b.limit)
	}
	if diff := fresh.k.Snapshot().Diff(w.k.Snapshot()); len(diff) > 0 {
		w.fail("all was restored, and this is different: %q", diff)
	}
}

// TestWorld: an agent on a modelled host, with containers that come, change and go, a second writer, a kernel that refuses,
// and kills. No task is ever without a CPU, what is in force at rest is no worse than before, and at the end everything is
// as its owners wrote it. UNTHROTTLE_WORLD_ROUNDS is how many rounds of a second there are, UNTHROTTLE_WORLD_SEED the first
// seed.
func TestWorld(t *testing.T) {
	rounds, seed := worldRounds, uint64(0)
	if text := os.Getenv("UNTHROTTLE_WORLD_ROUNDS"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		rounds = n
	}
	if text := os.Getenv("UNTHROTTLE_WORLD_SEED"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		seed = n
	}
	counts, short := map[string]int{}, rounds < worldRounds // too short for everything to happen
	for ; rounds > 0; rounds, seed = rounds-roundsOfHost, seed+1 {
		ok := t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorldOf(t, seed)
				w.create()
				for range min(rounds, roundsOfHost) {
					w.round()
				}
				w.end()
				for what, n := range w.counts {
					counts[what] += n
				}
			})
		})
		if !ok {
			return
		}
	}
	t.Logf("%v", counts)
	if short {
		return
	}
	for _, what := range []string{"killed", "refused", "removed", "owner", "commands", "kept rounds", "not fixed", "kept burst better", "apart"} {
		if counts[what] == 0 {
			t.Errorf("in this world there was nothing of %q", what)
		}
	}
}
