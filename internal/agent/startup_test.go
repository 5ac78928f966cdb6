package agent

import (
	"context"
	"io/fs"
	"log/slog"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/cure/hoststate"
	"github.com/unthrottle/unthrottle/internal/cure/hoststate/gather"
	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup/cgroupmodel"
	"github.com/unthrottle/unthrottle/internal/podresize"
	"github.com/unthrottle/unthrottle/internal/txn/apply"
)

const (
	startUID = "8e0d9d7a-ef34-4f39-8e36-66d5a0f0c1aa"
	startPod = "/pod" + startUID
)

// startScene is a host with the starting containers of one pod, by name and limit.
type startScene struct {
	*agent
	t     *testing.T
	k     *cgroupmodel.Kernel
	clock time.Time
	age   map[string]time.Duration
}

func newStartScene(t *testing.T, rule string, limits map[string]string) *startScene {
	t.Helper()
	rules, err := policy.ParseRules([]byte("version: 1\nmode: apply\nrules:\n" + rule))
	if err != nil {
		t.Fatal(err)
	}
	s := &startScene{t: t, k: cgroupmodel.New(cgroupmodel.V2("0-3")), clock: time.Unix(1_800_000_000, 0).UTC(),
		age: map[string]time.Duration{}}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(s.k.Write(cgroup.CPU, "/", cgroup.FileSubtreeControl, "+cpu +cpuset"))
	must(s.k.Make(cgroup.CPU, startPod))
	must(s.k.Write(cgroup.CPU, startPod, cgroup.FileSubtreeControl, "+cpu +cpuset"))
	var all []container.Container
	for name, limit := range limits {
		path := startPod + "/" + name
		must(s.k.Make(cgroup.CPU, path))
		must(s.k.Write(cgroup.CPU, path, "cpu.max", limit))
		s.k.Spawn(path, 100+len(all))
		s.age[path] = 2 * time.Second
		all = append(all, container.Container{Group: cgroup.Group{Path: path, CPUSetPath: path},
			Name:      "shop/cart/" + name,
			Namespace: "shop", Pod: "cart", ContainerName: name, PodUID: startUID})
	}
	s.agent = &agent{wake: make(chan struct{}, 1), chooser: newChooser(rules, ""), startsTried: map[uint64]triedStart{},
		now: func() time.Time { return s.clock },
		Config: Config{Rules: rules, Direct: s.k, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
			Env: apply.Env{FS: s.k, StateDir: t.TempDir(), BootID: "this", By: "agent",
				Now: func() time.Time { return s.clock }},
			List: func() ([]container.Container, error) { return all, nil },
			Age:  func(c container.Container) (time.Duration, bool) { return s.age[c.Group.Path], true }}}
	s.Facts = func(ctx context.Context, containers []container.Container,
		used map[string]float64) (hoststate.Facts, error) {
		held, err := apply.Status(s.Env)
		if err != nil {
			return hoststate.Facts{}, err
		}
		return gather.From(ctx, s.k, false, containers, gather.Options{Root: twoSockets(), Held: held, Used: used})
	}
	return s
}

// max are the limits of the containers and their pod.
func (s *startScene) max(name string) string {
	s.t.Helper()
	value, err := s.k.Read(cgroup.CPU, startPod+name, "cpu.max")
	if err != nil {
		s.t.Fatal(err)
	}
	return value
}

const raiseAtStart = "- {match: {name: \"*\"}, startup: {remedy: raise, most: 30s}}\n"

// A starting container has the next whole number of CPUs until its time is over, once; then all is as before.
func TestStart(t *testing.T) {
	s := newStartScene(t, raiseAtStart, map[string]string{"app": "50000 100000"})
	s.starts(t.Context(), false)
	if s.max("/app") != "50000 100000" {
		t.Error("without a newcomer somebody was looked for")
	}
	s.starts(t.Context(), true)
	if s.max("/app") != "100000 100000" {
		t.Errorf("it starts with %s", s.max("/app"))
	}
	s.clock = s.clock.Add(29 * time.Second)
	s.starts(t.Context(), false)
	if s.max("/app") != "100000 100000" {
		t.Errorf("after 29 s %s", s.max("/app"))
	}
	s.clock = s.clock.Add(time.Second)
	s.starts(t.Context(), false)
	s.starts(t.Context(), true)
	if s.max("/app") != "50000 100000" {
		t.Errorf("after 30 s %s", s.max("/app"))
	}
	if held, err := apply.Status(s.Env); err != nil || len(held) > 0 {
		t.Errorf("%+v, %v", held, err)
	}
}

// A clock that is set back does not prolong a start: for how long the container had its CPUs is not known any more.
func TestStartEndsWhenTheClockIsSetBack(t *testing.T) {
	s := newStartScene(t, raiseAtStart, map[string]string{"app": "50000 100000"})
	s.starts(t.Context(), true)
	s.clock = s.clock.Add(-time.Hour)
	s.starts(t.Context(), false)
	if s.max("/app") != "50000 100000" {
		t.Errorf("an hour earlier %s", s.max("/app"))
	}
}

// Who comes after the agent takes back what a start had, as after any trial; so does the agent when it ends.
func TestStartIsOnTrial(t *testing.T) {
	s := newStartScene(t, raiseAtStart, map[string]string{"app": "50000 100000"})
	s.starts(t.Context(), true)
	held, err := apply.Status(s.Env)
	if err != nil || len(held) != 1 || held[0].Trial == nil {
		t.Fatalf("%+v, %v", held, err)
	}
	next := s.Env
	next.BootID = "this"
	next.Now = func() time.Time { return s.clock.Add(11 * time.Minute) } // overdue
	if _, err := apply.Recover(t.Context(), next); err != nil || s.max("/app") != "50000 100000" {
		t.Errorf("%s, %v", s.max("/app"), err)
	}
	s.startsTried = map[uint64]triedStart{}
	s.starts(t.Context(), true)
	s.endTrials(t.Context())
	if s.max("/app") != "50000 100000" {
		t.Errorf("the agent ended, and it has %s", s.max("/app"))
	}
}

// Nothing is done for one that is old, whose limit is whole, whose rule observes or leaves it alone, or beyond the
// budget.
func TestNoStart(t *testing.T) {
	for name, c := range map[string]struct {
		rule, limit string
		change      func(s *startScene)
	}{
		"old":      {raiseAtStart, "50000 100000", func(s *startScene) { s.age[startPod+"/app"] = 31 * time.Second }},
		"whole":    {raiseAtStart, "200000 100000", nil},
		"observes": {"- {mode: observe, startup: {remedy: raise}}\n", "50000 100000", nil},
		"another":  {"- {match: {name: other}, startup: {remedy: raise}}\n- {remedy: auto}\n", "50000 100000", nil},
		"budget":   {raiseAtStart, "50000 100000", func(s *startScene) { s.Rules.Budget.Containers = 0 }},
	} {
		s := newStartScene(t, c.rule, map[string]string{"app": c.limit})
		if c.change != nil {
			c.change(s)
		}
		for range 5 {
			s.starts(t.Context(), true)
		}
		if s.max("/app") != c.limit {
			t.Errorf("%s: %s", name, s.max("/app"))
		}
		if past, err := apply.History(s.Env, 0); err != nil || len(past) > 0 {
			t.Errorf("%s: %+v, %v", name, past, err)
		}
	}
}

// A container that starts again between two looks has its path again: each start is raised, and what the one before it had is not
// the new one's.
func TestEachStartUnderOnePath(t *testing.T) {
	for name, lives := range map[string]time.Duration{"while the one before has its time": 2 * time.Second,
		"afterwards": 40 * time.Second} {
		s := newStartScene(t, raiseAtStart, map[string]string{"app": "50000 100000"})
		for start := range 3 {
			s.starts(t.Context(), true)
			if s.max("/app") != "100000 100000" {
				t.Errorf("%s, start %d: %s", name, start, s.max("/app"))
			}
			s.clock = s.clock.Add(lives)
			s.starts(t.Context(), false)
			path := startPod + "/app"
			pids, err := s.k.Procs(cgroup.CPU, path)
			if err != nil {
				t.Fatal(err)
			}
			for _, pid := range pids {
				s.k.Exit(pid)
			}
			for _, err := range []error{s.k.Remove(cgroup.CPU, path), s.k.Make(cgroup.CPU, path),
				s.k.Write(cgroup.CPU, path, "cpu.max", "50000 100000")} {
				if err != nil {
					t.Fatal(err)
				}
			}
			s.k.Spawn(path, 200+start)
		}
	}
}

// Several are begun one after the other, each with what its rule says.
func TestStartsOneByOne(t *testing.T) {
	s := newStartScene(t, "- {match: {name: \"*\"}, startup: {remedy: burst}}\n",
		map[string]string{"app": "50000 100000", "web": "20000 100000"})
	s.starts(t.Context(), true)
	if held, err := apply.Status(s.Env); err != nil || len(held) != 1 {
		t.Errorf("%+v, %v", held, err)
	}
	select {
	case <-s.wake:
	default:
		t.Error("nothing wakes the agent for the next one")
	}
	s.starts(t.Context(), true)
	for name, want := range map[string]string{"/app": "50000", "/web": "20000"} {
		if got, err := s.k.Read(cgroup.CPU, startPod+name, "cpu.max.burst"); err != nil || got != want ||
			s.max(name) != want+" 100000" {
			t.Errorf("%s: burst %s, limit %s, %v", name, got, s.max(name), err)
		}
	}
}

// spec is the container's in its pod's spec, with a kubelet that does at once what it says.
type spec struct{ podresize.CPU }

func (s *spec) Read(context.Context, string) (podresize.CPU, error) { return s.CPU, nil }

func (s *spec) Write(_ context.Context, _ string, _, to podresize.Milli) error {
	s.Limit, s.Actual = to, to
	return nil
}

func (*spec) Wait(_ context.Context, n int) bool { return n < 3 }

// late is a kubelet that does not know the container at first.
type late struct {
	*spec
	knows bool
}

func (l *late) Read(ctx context.Context, name string) (podresize.CPU, error) {
	if !l.knows {
		return podresize.CPU{}, fs.ErrNotExist
	}
	return l.spec.Read(ctx, name)
}

// A start that fails is tried again some rounds later, and not at once: the tries must outlast the time in which the kubelet does not know
// the container. What wakes the agent in between takes no round from the newcomer.
func TestStartIsTriedAgainLater(t *testing.T) {
	s := newStartScene(t, raiseAtStart, map[string]string{"app": "50000 100000"})
	of := &late{spec: &spec{podresize.CPU{UID: startUID, Limit: 500, Actual: 500}}}
	s.Env.Pods = of
	s.newcomersAhead()
	for looks := 0; len(s.wake) > 0; looks++ {
		<-s.wake
		s.starts(t.Context(), s.newcomersCame())
		if looks == startTries {
			t.Fatal("it wakes itself again and again")
		}
	}
	of.knows = true
	for range roundsBetweenTries {
		if of.Limit != 500 {
			t.Errorf("raised to %s before its next try", of.Limit)
		}
		s.clock = s.clock.Add(s.Rules.Interval)
		s.starts(t.Context(), s.newcomersCame())
	}
	if of.Limit != 1000 || s.newcomers != newcomerRounds-1-roundsBetweenTries {
		t.Errorf("the spec has %s, %d rounds are left to the newcomer", of.Limit, s.newcomers)
	}
}

// In a pod that can be resized the spec is raised, and put back as soon as the container is ready.
func TestStartUntilReady(t *testing.T) {
	s := newStartScene(t, raiseAtStart, map[string]string{"app": "50000 100000"})
	of := &spec{podresize.CPU{UID: startUID, Limit: 500, Actual: 500}}
	s.Env.Pods = of
	s.starts(t.Context(), true)
	if of.Limit != 1000 || s.max("/app") != "50000 100000" {
		t.Errorf("the spec has %s, the kernel %s: the kubelet writes it", of.Limit, s.max("/app"))
	}
	of.Ready = true
	s.starts(t.Context(), false)
	if of.Limit != 500 {
		t.Errorf("ready, and the spec has %s", of.Limit)
	}
	s.startsTried = map[uint64]triedStart{} // an agent that starts anew
	s.starts(t.Context(), true)
	if of.Limit != 500 {
		t.Errorf("ready, and an agent that starts anew raises the spec to %s", of.Limit)
	}
}

// What the status tells of the container before it in its pod is not the container's own: one that starts again is not ready yet.
func TestReadyIsOfThisContainer(t *testing.T) {
	pod := &hoststate.Pod{CPU: podresize.CPU{ID: "two", Ready: true}}
	for id, want := range map[string]bool{"two": true, "one": false, "": true} {
		if got := ready(pod, container.Container{ID: id}); got != want {
			t.Errorf("container %q: %v", id, got)
		}
	}
	if ready(nil, container.Container{}) {
		t.Error("without a pod")
	}
}
