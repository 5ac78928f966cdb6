package agent

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/cure/curetest"
	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup/cgroupmodel"
	"github.com/unthrottle/unthrottle/internal/see/observe"
	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/internal/txn/apply"
)

// Lengths of the world: rounds of a second, and how much of it one modelled host lives through.
const (
	worldRounds  = 6_000
	roundsOfHost = 2_000
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

	besideMu sync.Mutex
	beside   *rand.Rand // for goroutines beside the test's: chance

	mu       sync.Mutex // guards what agents read beside the test
	boxes    map[string]*box
	stateDir string
	running  map[int]bool // processes by number
	busy     bool         // a person acts: no agent is killed, the journal is theirs too

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

func newWorldOf(t *testing.T, seed uint64) *world {
	w := &world{t: t, rng: rand.New(rand.NewPCG(seed, 1)), beside: rand.New(rand.NewPCG(seed, 2)), log: &bytes.Buffer{},
		boxes: map[string]*box{}, stateDir: t.TempDir(), running: map[int]bool{}, nextPID: 100,
		counts: map[string]int{}, gone: map[string]time.Time{}}
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
	if bytes.Contains(line, []byte("msg=applying ")) && bytes.Contains(line, []byte(`chosen_from="the flight recorder's`)) {
		w.counts["chosen from a recording of the agent's own"]++
	}
	if bytes.Contains(line, []byte(`msg="not fixed"`)) {
		w.counts["not fixed"]++
	}
	return w.log.Write(line)
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
			// An agent keeps a pin in one host of ten alone, and what is pinned must be shown to be apart.
			kind := []remedy.Kind{remedy.Burst, remedy.Pin}[w.rng.IntN(2)]
			w.command(fmt.Sprintf("apply %s to %s", kind, path), func(env apply.Env) error {
				facts, err := w.facts(w.t.Context(), env, w.list(), map[string]float64{})
				if err != nil {
					return err
				}
				plan, err := remedy.Make(facts, w.boxes[path].container, remedy.Request{Kind: kind})
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
		l.recorder.round(seen)
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
		case b == nil && quiet && now.Sub(w.gone[f.Target]) > longestFix:
			w.fail("its container is gone, and it is in force: %+v", f)
		case b == nil:
		case f.By == "agent" && f.Parameters["upkeep"] != "": // moves newcomers off what is pinned, by a person too
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

// longestFix is how long an agent may be busy with one container, which records twenty seconds before and after each try.
// What is in force on a container that is gone waits for that: nothing is left that it could harm.
const longestFix = 2 * time.Minute

// soak says how long TestWorld goes on.
type soak struct {
	// rounds is how many there are, seed the first host's.
	rounds int
	seed   uint64
	// most is how long they may take in real time; 0: as long as they take.
	most time.Duration
}

// soakOf reads the environment: see TestWorld.
func soakOf(t *testing.T) soak {
	t.Helper()
	o := soak{rounds: worldRounds}
	if testing.Short() {
		o.rounds = worldRounds / 20
	}
	read := func(name string, parse func(text string) error) {
		if text := os.Getenv(name); text != "" {
			if err := parse(text); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
	}
	read("UNTHROTTLE_WORLD_ROUNDS", func(text string) (err error) { o.rounds, err = strconv.Atoi(text); return err })
	read("UNTHROTTLE_WORLD_SEED", func(text string) (err error) { o.seed, err = strconv.ParseUint(text, 10, 64); return err })
	read("UNTHROTTLE_WORLD_FOR", func(text string) (err error) { o.most, err = time.ParseDuration(text); return err })
	return o
}

// TestWorld: an agent on a modelled host, with containers that come, change and go, a second writer, a kernel that refuses,
// and kills. No task is ever without a CPU, what is in force at rest is no worse than before, and at the end everything is
// as its owners wrote it.
//
// A step is a round: a second of the virtual clock, in which something may befall the host, the agent acts, and the host is
// compared with what must be true. A modelled host, of one seed, lives through roundsOfHost of them.
//
// UNTHROTTLE_WORLD_ROUNDS is how many rounds there are, UNTHROTTLE_WORLD_SEED the first seed. UNTHROTTLE_WORLD_FOR bounds
// the real time: no host is begun after it, and the last line says from which seed to go on. A line a minute says how far it is.
func TestWorld(t *testing.T) {
	o := soakOf(t)
	began, told, done := time.Now(), time.Now(), 0
	counts, short := map[string]int{}, o.rounds < worldRounds                              // too short for everything to happen
	more := func() bool { return !short && done < 4*o.rounds && len(missing(counts)) > 0 } // what is rare may need more hosts
	for seed := o.seed; (done < o.rounds || more()) && (o.most == 0 || time.Since(began) < o.most); seed++ {
		rounds := min(max(o.rounds-done, 0), roundsOfHost)
		if rounds == 0 {
			rounds = roundsOfHost
		}
		ok := t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorldOf(t, seed)
				w.create()
				for range rounds {
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
		if done += rounds; done >= o.rounds || time.Since(told) >= time.Minute || o.most > 0 && time.Since(began) >= o.most {
			told = time.Now()
			t.Logf("%d of %d steps in %v; the next seed is %d", done, o.rounds, time.Since(began).Round(time.Second), seed+1)
		}
	}
	t.Logf("%v", counts)
	if !short && o.most == 0 {
		for _, what := range missing(counts) {
			t.Errorf("in this world there was nothing of %q", what)
		}
	}
}

// missing is what has to happen in a world, and has not.
func missing(counts map[string]int) []string {
	better := 0
	for what, n := range counts {
		if strings.HasPrefix(what, "kept ") && strings.HasSuffix(what, " better") {
			better += n // which remedy is, is chance
		}
	}
	all := []string{"killed", "refused", "removed", "owner", "commands", "kept rounds", "not fixed", "apart",
		"chosen from a recording of the agent's own"}
	all = slices.DeleteFunc(all, func(what string) bool { return counts[what] > 0 })
	if better == 0 {
		all = append(all, "kept better")
	}
	return all
}
