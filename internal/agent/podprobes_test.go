package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/unthrottle/unthrottle/internal/agent/answers"
	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/see/observe"
	"github.com/unthrottle/unthrottle/internal/see/probe"
)

// probesAgent is an agent with a file of pods, and what it logs. The function writes the file.
func probesAgent(t *testing.T) (a *agent, p rowsProbe, log *strings.Builder, write func(answers.Pods)) {
	t.Helper()
	a, p = flightAgent(t, nil)
	log = &strings.Builder{}
	a.Log = slog.New(slog.NewTextHandler(log, nil))
	file := filepath.Join(t.TempDir(), "pods.json")
	a.probes = newPodProbes(file, func(why error) { fmt.Fprintln(log, why) })
	return a, p, log, func(pods answers.Pods) {
		pods.Schema, pods.Version = answers.PodsSchema, answers.Version
		text, err := json.Marshal(pods)
		if err == nil {
			err = os.WriteFile(file+".new", text, 0o600)
		}
		if err == nil {
			err = os.Rename(file+".new", file)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// cartPod has a liveness probe that is made from the beginning on, and one that stops fail never.
func cartPod(id string, from time.Time, restarts ...answers.Restart) answers.PodContainer {
	spec := func(kind, handler string) answers.PodProbe {
		return answers.PodProbe{Probe: kind, Handler: handler, TimeoutSeconds: 1, PeriodSeconds: 10,
			FailureThreshold: 3, From: from}
	}
	return answers.PodContainer{ID: id, Namespace: "shop", Pod: "cart-0", UID: "uid-1", Container: "app",
		Probes: []answers.PodProbe{spec("liveness", "httpGet"), spec("readiness", "tcpSocket")}, Restarts: restarts}
}

// runs is a round in which containers with these ids run, in cgroups numbered from 7 on.
func runs(ids ...string) observe.Snapshot {
	var s observe.Snapshot
	for i, id := range ids {
		o := stoppedFor(uint64(7+i), "cart", 0)
		o.Container = container.Container{ID: id, Namespace: "shop", Pod: "cart-0", ContainerName: "app",
			Group: cgroup.Group{Path: "/kubepods/pod1/" + id}}
		s.Observations = append(s.Observations, o)
	}
	return s
}

// stops sends rows of stops of 940 ms in one go, one each minute.
func stops(p rowsProbe, id, from uint64, minutes int) {
	for m := range uint64(minutes) {
		for i := range uint64(10) {
			share := 1.0
			if i == 9 {
				share = 0.4
			}
			p.rows <- probe.PeriodRow{Cgroup: id, EndNS: from + m*60e9 + (i+1)*1e8, LengthNS: 1e8, StoppedShare: share}
		}
	}
}

func (a *agent) probesNow(t *testing.T) answers.Probes {
	t.Helper()
	w := httptest.NewRecorder()
	a.probesPage(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/probes", nil))
	var got answers.Probes
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || got.Schema != answers.ProbesSchema {
		t.Fatal(err, got.Schema)
	}
	return got
}

// TestProbesOfPods: stops of a container become misses of its probe, over a restart, in words, metrics and the log.
func TestProbesOfPods(t *testing.T) {
	a, p, log, write := probesAgent(t)
	begin, base := time.Now(), monotonic(t)
	// From the next hour of the clock on, so that which hour is the worst does not depend on when the test runs.
	next := begin.Truncate(time.Hour).Add(time.Hour)
	begin, base = next, base+uint64(next.Sub(begin))
	write(answers.Pods{Containers: []answers.PodContainer{cartPod("c1", begin.Add(-time.Hour))}})
	a.probes.round(t.Context(), runs("c1", "other"))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- a.recorder.keepPeriods(ctx) }()
	stops(p, 7, base, 60)
	stops(p, 8, base, 60) // no pod of the file
	later := begin.Add(time.Hour)
	a.now = func() time.Time { return later }

	got := a.probesNow(t)
	if len(got.Findings) != 1 {
		t.Fatalf("%d findings\n%s", len(got.Findings), log)
	}
	f := got.Findings[0]
	if f.Probe.Probe != "liveness" || f.Pod != "cart-0" || f.ObservedSeconds < 3500 || f.ObservedSeconds > 3601 {
		t.Errorf("%+v", f)
	}
	prompt, slow := f.Answers[0], f.Answers[1]
	// Of 1,440 stops a day each makes 140 ms of 10 s a miss: 20.2, less what was before the first row. The last 40 ms
	// of a stop are anywhere in 100 ms.
	if slow.TakesSeconds != 0.1 || slow.MissesPerDay[0] > 20.2 || slow.MissesPerDay[1] < 19.8 ||
		slow.MissesPerDay[0] < 10 ||
		slow.MissesPerDay[1] > 35 || prompt.MissesPerDay != [2]float64{} || slow.FailuresPerDay != [2]float64{} {
		t.Errorf("%+v", f.Answers)
	}
	if want := "An answer that takes 100 ms of running time misses "; !strings.Contains(f.Says, want) ||
		!strings.Contains(f.Says, "An answer that takes 1.0 ms of running time misses never.") ||
		strings.Contains(f.Says, "restarted") {
		t.Errorf("it says %q", f.Says)
	}

	// It is restarted: another cgroup, the same container, and the file says so.
	hour := f.WorstHour.From
	ended := []answers.Restart{{At: hour.Add(time.Minute), ExitCode: 137, Reason: "Error"},
		{At: hour.Add(2 * time.Minute), ExitCode: 137,
			Reason: "OOMKilled"}, {At: hour.Add(3 * time.Minute), ExitCode: 143, Reason: "Error"},
		{At: hour.Add(-time.Minute), ExitCode: 1}}
	write(answers.Pods{Containers: []answers.PodContainer{cartPod("c2", later, ended...)}})
	a.probes.round(t.Context(), runs("other", "c2"))
	// Two hours after the begin, from when on it is probed; for less, so that the worst hour stays the same.
	stops(p, 8, base+2*3600e9, 20)
	later = begin.Add(3 * time.Hour)
	f = a.probesNow(t).Findings[0]
	if f.ObservedSeconds < 7000 || f.ObservedSeconds > 7202 || len(f.WorstHour.Restarts) != 2 {
		t.Errorf("after the restart %+v, %+v", f, f.WorstHour)
	}
	if want := "it was restarted 2 times (exit codes 137, 143)."; !strings.HasSuffix(f.Says, want) {
		t.Errorf("it says %q, want %q", f.Says, want)
	}

	registry := prometheus.NewRegistry()
	registry.MustRegister(a.probes)
	for name, want := range map[string]int{"misses_low_total": 2, "misses_high_total": 2, "failures_low_total": 2,
		"failures_high_total": 2, "lowest_running_seconds": 1} {
		if n, err := testutil.GatherAndCount(registry, "unthrottle_container_probe_"+name); err != nil || n != want {
			t.Errorf("%s: %d series, %v", name, n, err)
		}
	}

	for range 3 {
		later = later.Add(time.Hour)
		a.tellProbes(later)
	}
	if n := strings.Count(log.String(), `msg="a probe misses its timeout"`); n != 1 {
		t.Errorf("in a day it is logged %d times:\n%s", n, log)
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	write(answers.Pods{})
	a.probes.round(t.Context(), runs("other", "c2"))
	if got := a.probesNow(t); len(got.Findings) != 0 {
		t.Errorf("a pod that is gone has %+v", got)
	}
}

// TestProbesOfRestarts: a container that is restarted before it was watched for ten minutes is told of if the stops make its probe
// miss as often as fails it, over all its lives, between which it waits.
func TestProbesOfRestarts(t *testing.T) {
	begin, base := time.Now(), monotonic(t)
	// It ended in the hour in which it was stopped, and in that before.
	ended := func(reason string) []answers.Restart {
		return []answers.Restart{{At: begin.Add(-time.Hour), ExitCode: 143}, {At: begin, ExitCode: 137, Reason: reason}}
	}
	for name, tc := range map[string]struct {
		share    float64
		lives    uint64
		restarts []answers.Restart
		want     int
	}{
		"always stopped":     {1, 4, ended("Error"), 1},
		"one life":           {1, 1, ended("Error"), 0},
		"for want of memory": {1, 4, ended("OOMKilled"), 0},
		"not restarted":      {1, 4, nil, 0},
		"hardly stopped":     {0.1, 4, ended("Error"), 0},
	} {
		a, p, log, write := probesAgent(t)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- a.recorder.keepPeriods(ctx) }()
		for life := range tc.lives {
			id := fmt.Sprint("c", life)
			for _, told := range []string{"", id} { // it waits, and it runs
				write(answers.Pods{Containers: []answers.PodContainer{cartPod(told, begin.Add(-time.Hour), tc.restarts...)}})
				a.probes.round(t.Context(), runs(slices.Repeat([]string{"other"}, int(life))...))
			}
			a.probes.round(t.Context(), runs(append(slices.Repeat([]string{"other"}, int(life)), id)...))
			for i := range uint64(100) { // 10 s, of which a probe can begin in 9
				p.rows <- probe.PeriodRow{Cgroup: 7 + life, EndNS: base + life*60e9 + (i+1)*1e8, LengthNS: 1e8, StoppedShare: tc.share}
			}
			p.rows <- probe.PeriodRow{Cgroup: 99} // the row before it is taken in
		}
		a.now = func() time.Time { return begin.Add(41 * time.Second) }
		got := a.probesNow(t).Findings
		if len(got) != tc.want {
			t.Errorf("%s: %d findings, want %d\n%s", name, len(got), tc.want, log)
		}
		if len(got) == 1 && !strings.HasSuffix(got[0].Says, " s while it ran, and was restarted 1 time (exit code 137).") {
			t.Errorf("it says %q", got[0].Says)
		}
		cancel()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
}

// TestProbesNotCounted: what is not known to make a probe miss has no figures.
func TestProbesNotCounted(t *testing.T) {
	begin := time.Now()
	for name, change := range map[string]func(*answers.PodContainer){
		"before the first probe":  func(c *answers.PodContainer) { c.Probes[0].From = begin.Add(2 * time.Hour) },
		"no timeout":              func(c *answers.PodContainer) { c.Probes[0].TimeoutSeconds = 0 },
		"no period":               func(c *answers.PodContainer) { c.Probes[0].PeriodSeconds = -1 },
		"no threshold":            func(c *answers.PodContainer) { c.Probes[0].FailureThreshold = 0 },
		"a timeout of years":      func(c *answers.PodContainer) { c.Probes[0].TimeoutSeconds = 1 << 31 },
		"a startup probe":         func(c *answers.PodContainer) { c.Probes[0].Probe = "startup" },
		"a handler of the future": func(c *answers.PodContainer) { c.Probes[0].Handler = "quic" },
		"another container":       func(c *answers.PodContainer) { c.ID = "c9" },
	} {
		a, p, log, write := probesAgent(t)
		c := cartPod("c1", begin.Add(-time.Hour))
		change(&c)
		write(answers.Pods{Containers: []answers.PodContainer{c}})
		a.probes.round(t.Context(), runs("c1"))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- a.recorder.keepPeriods(ctx) }()
		stops(p, 7, monotonic(t), 60)
		a.now = func() time.Time { return begin.Add(time.Hour) }
		if got := a.probesNow(t); len(got.Findings) != 0 || log.Len() > 0 {
			t.Errorf("%s: %+v\n%s", name, got, log)
		}
		cancel()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
}

// TestPodsFile: a file that cannot be used is told once, and what was known stays.
func TestPodsFile(t *testing.T) {
	a, _, log, write := probesAgent(t)
	known := func() int { return len(a.probes.containers) }
	a.probes.round(t.Context(), runs("c1"))
	if known() != 0 || log.Len() != 0 {
		t.Errorf("without a file: %d, %s", known(), log)
	}
	many := answers.Pods{}
	for i := range answers.MaxPodContainers + 10 {
		c := cartPod(fmt.Sprint("c", i), time.Now())
		c.UID = fmt.Sprint("uid-", i)
		c.Restarts = slices.Repeat([]answers.Restart{{ExitCode: i}}, answers.MaxRestarts+1)
		many.Containers = append(many.Containers, c)
	}
	write(many)
	a.probes.round(t.Context(), runs("c1"))
	if c := a.probes.byCgroup[7]; known() != answers.MaxPodContainers || c == nil ||
		len(c.told.Restarts) != answers.MaxRestarts {
		t.Errorf("%d containers of a file that is too large", known())
	}
	for _, bad := range []string{"{", `{"schema":"other","version":1}`, `{"schema":"node_pods","version":2}`,
		`{"schema":"node_pods","version":1,"containers":[` + strings.Repeat(" ", answers.MaxPodsBytes)} {
		log.Reset()
		if err := os.WriteFile(a.probes.file, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			a.probes.round(t.Context(), runs("c1"))
		}
		if known() != answers.MaxPodContainers || strings.Count(log.String(), a.probes.file) != 1 {
			t.Errorf("%.60s: %d known, %s", bad, known(), log)
		}
	}
}

func TestADay(t *testing.T) {
	for _, c := range []struct {
		n    [2]float64
		want string
	}{
		{[2]float64{}, "never"}, {[2]float64{0, 0.04}, "never"}, {[2]float64{2, 2.01}, "about 2 times a day"},
		{[2]float64{0.01, 1.26}, "0 to 1.3 times a day"}, {[2]float64{19.7, 24}, "20 to 24 times a day"},
		{[2]float64{8640, 8640}, "about 8640 times a day"},
	} {
		if got := aDay(c.n); got != c.want {
			t.Errorf("%v: %q, want %q", c.n, got, c.want)
		}
	}
}
