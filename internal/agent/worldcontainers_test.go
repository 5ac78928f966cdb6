package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/clock"
	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/cure/curetest"
	"github.com/unthrottle/unthrottle/internal/cure/fix"
	"github.com/unthrottle/unthrottle/internal/cure/hoststate"
	"github.com/unthrottle/unthrottle/internal/cure/hoststate/gather"
	"github.com/unthrottle/unthrottle/internal/cure/slo"
	"github.com/unthrottle/unthrottle/internal/cure/verdict"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/see/observe"
	"github.com/unthrottle/unthrottle/internal/txn/apply"
)

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
	if cur.Quota == want.Quota {
		return false // an owner who writes what is written leaves no trace: restore takes it for the agent's
	}
	want.Burst = cur.Burst
	for _, f := range cgroup.LimitWrites(w.v, cur, want, false) {
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
	b := &box{pid: w.nextPID, work: w.anyWork(),
		limit: cgroup.Limit{Quota: 100 * time.Millisecond, Period: 100 * time.Millisecond}, born: time.Now(), changed: time.Now(),
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

// flown is what a file of the flight recorder holds: what the container did as its recording began.
type flown struct {
	Work  string
	Under curetest.Setting
}

// recordOf is Flight.Record.
func (w *world) recordOf(ctx context.Context, c container.Container, out io.Writer) error {
	w.mu.Lock()
	b := w.boxes[c.Group.Path]
	w.mu.Unlock()
	if b == nil {
		return errors.New("it is gone")
	}
	under, err := curetest.SettingOf(w.k, c.Group.Path)
	if err != nil {
		return err
	}
	w.mu.Lock()
	of := flown{b.work, under}
	w.mu.Unlock()
	if err := clock.Sleep(ctx, RecordFor); err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(of)
}

// readOf is Flight.Read.
func (w *world) readOf(_ context.Context, file string) (fix.Learned, error) {
	written, err := os.ReadFile(file)
	if err != nil {
		return fix.Learned{}, err
	}
	var of flown
	if err := json.Unmarshal(written, &of); err != nil {
		return fix.Learned{}, err
	}
	r, err := does(of.Work, of.Under)
	return fix.Learned{Explanation: r.Explanation, Load: r.Load, Missing: r.Missing, Runs: r.Runs}, err
}

// pidOf is the process of a container; 0: it is gone.
func (w *world) pidOf(path string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if b := w.boxes[path]; b != nil {
		return b.pid
	}
	return 0
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
	var containers []container.Container
	for _, path := range slices.Sorted(maps.Keys(w.boxes)) {
		containers = append(containers, w.boxes[path].container)
	}
	return containers
}

// observe is a window of the counters that has just ended.
func (w *world) observe(containers []container.Container, window time.Duration) []observe.Observation {
	var seen []observe.Observation
	for _, c := range containers {
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
		o := observe.Observation{Container: c, CgroupID: uint64(w.pidOf(c.Group.Path)), Start: time.Now().Add(-window),
			Window: window, Levels: levels,
			UsedCPUs: e.MeanWidth, StoppedLow: &stopped, StoppedHigh: new(stopped)}
		if limit, limited, at := cgroup.Effective(levels); limited {
			o.LimitCPUs, o.LimitAt = &limit, at
		}
		seen = append(seen, o)
	}
	return seen
}

func (w *world) facts(ctx context.Context, env apply.Env, containers []container.Container,
	used map[string]float64) (hoststate.Facts, error) {
	held, err := apply.Status(env)
	if err != nil {
		return hoststate.Facts{}, err
	}
	drift, err := apply.Drift(env)
	if err != nil {
		return hoststate.Facts{}, err
	}
	return gather.From(ctx, w.k, false, containers, gather.Options{Root: w.root, Held: held, Drift: drift, Used: used})
}

// source is a latency source. One that looks back prints the latencies of the last 20 s, whatever it is asked for.
func (w *world) source(name string) slo.Source {
	return func(_ context.Context, since time.Time) (slo.Answer, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		b := w.boxes["/a/"+name]
		if b == nil {
			return slo.Answer{}, errors.New("it is gone")
		}
		seconds := int(time.Since(since).Round(time.Second) / time.Second)
		if name == "asked-0" || strings.HasPrefix(name, "narrowed-") {
			seconds = 20
		}
		var all []float64
		for _, under := range b.past[max(0, len(b.past)-max(1, seconds)):] {
			r, err := does(b.work, under)
			if err != nil {
				return slo.Answer{}, err
			}
			of := responses(r)
			for range min(150, 10*len(of)) {
				all = append(all, of[w.chance(len(of))]*(1+float64(w.chance(1000))/1e5))
			}
		}
		return slo.Answer{MS: all}, nil
	}
}

// chance is for goroutines beside the test's.
func (w *world) chance(n int) int {
	w.besideMu.Lock()
	defer w.besideMu.Unlock()
	return w.beside.IntN(n)
}
