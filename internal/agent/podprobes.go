package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/unthrottle/unthrottle/internal/agent/answers"
	"github.com/unthrottle/unthrottle/internal/explain/prober"
	"github.com/unthrottle/unthrottle/internal/infile"
	"github.com/unthrottle/unthrottle/internal/see/observe"
	"github.com/unthrottle/unthrottle/internal/see/probe"
	"github.com/unthrottle/unthrottle/internal/text"
)

const (
	day = 24 * time.Hour
	// observedLeast is for how long a probe is watched before anything is said of a day, unless the container was restarted
	// and stops that were seen make it miss as often as fails it. They need not be in a row: one that is restarted again and
	// again hardly runs, and its first seconds are not seen.
	observedLeast = 10 * time.Minute
	// missesADay make a finding, of the slower answer and by the least figure.
	missesADay = 1
	// maxProbeFindings bounds the answer; the worst come first.
	maxProbeFindings = 64
)

// podProbes counts what the probes of this node's pods miss, by the same rows per period that the flight recorder
// keeps. nil: no file tells of pods.
type podProbes struct {
	file string
	tell func(why error) // why the file cannot be read

	// Of the goroutine that watches alone: the file as it was read last, and when findings were told.
	was    os.FileInfo
	toldAt time.Time

	mu         sync.Mutex
	containers map[podKey]*probedContainer
	byCgroup   map[uint64]*probedContainer // those that run, by cgroup id
	rows       bool                        // rows come
}

// podKey names a container over its restarts.
type podKey struct{ uid, container string }

// probedContainer is a container with probes.
type probedContainer struct {
	told   answers.PodContainer
	probes []watchedProbe
	hours  [24]stoppedHour // by the hour of the clock

	cgroup  uint64   // 0: it was not seen yet
	labels  []string // of its metrics
	lastRow time.Time
	stopped bool // ever
}

type stoppedHour struct {
	from    time.Time
	stopped time.Duration
}

type watchedProbe struct {
	spec   answers.PodProbe
	watch  *prober.Watch
	takes  []time.Duration
	saidAt time.Time
}

func newPodProbes(file string, tell func(error)) *podProbes {
	if file == "" {
		return nil
	}
	return &podProbes{file: file, tell: tell, containers: map[podKey]*probedContainer{},
		byCgroup: map[uint64]*probedContainer{}}
}

// begin is called where rows begin to come, or some were lost: what comes is not known to follow what came.
func (p *podProbes) begin(rows bool) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rows = rows
	for _, c := range p.containers {
		c.cut()
	}
}

func (c *probedContainer) cut() {
	for _, w := range c.probes {
		w.watch.Cut()
	}
}

// row takes in one row, which ended then.
func (p *podProbes) row(row probe.PeriodRow, end time.Time) {
	if p == nil {
		return
	}
	if row.Lost {
		p.begin(true)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.byCgroup[row.Cgroup]
	if c == nil {
		return
	}
	length := time.Duration(row.LengthNS)
	stopped := time.Duration(row.StoppedShare * float64(length))
	c.lastRow, c.stopped = end, c.stopped || stopped > 0
	hour := end.UTC().Truncate(time.Hour)
	if h := &c.hours[hour.Hour()]; h.from.Equal(hour) {
		h.stopped += stopped
	} else {
		*h = stoppedHour{hour, stopped}
	}
	for _, w := range c.probes {
		if end.Add(-length).Before(w.spec.From) {
			continue // before the first probe
		}
		w.watch.Add(time.Duration(row.EndNS), length, stopped)
	}
}

// round reads the file if it changed, and finds the containers of the round that it names.
func (p *podProbes) round(ctx context.Context, s observe.Snapshot) {
	if p == nil {
		return
	}
	if err := p.read(ctx); err != nil {
		p.tell(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	byID := make(map[string]*probedContainer, len(p.containers))
	for _, c := range p.containers {
		byID[c.told.ID] = c
	}
	clear(p.byCgroup)
	for i := range s.Observations {
		o := &s.Observations[i]
		c := byID[o.Container.ID]
		if c == nil || o.CgroupID == 0 || o.Container.ID == "" {
			continue
		}
		if c.cgroup != o.CgroupID { // it was restarted
			c.cut()
			c.cgroup, c.labels = o.CgroupID, labels(o.Container)
		}
		p.byCgroup[o.CgroupID] = c
	}
}

// read reads the file if it changed. Without a file what is known stays.
func (p *podProbes) read(ctx context.Context) error {
	is, err := os.Stat(p.file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if infile.Unchanged(p.was, is) {
		return nil
	}
	p.was = is
	data, err := infile.ReadAll(ctx, p.file, nil, answers.MaxPodsBytes)
	if err != nil {
		return err
	}
	var pods answers.Pods
	if len(data) > answers.MaxPodsBytes {
		return fmt.Errorf("%s is larger than %d bytes: what was known of the node's pods stays", p.file,
			answers.MaxPodsBytes)
	}
	if err := json.Unmarshal(data, &pods); err != nil {
		return fmt.Errorf("%s: %w; what was known of the node's pods stays", p.file, err)
	}
	if pods.Schema != answers.PodsSchema || pods.Version != answers.Version {
		return fmt.Errorf("%s is %q version %d, not %q version %d: use one version of both images", p.file,
			text.Sanitize(pods.Schema, maxLabel), pods.Version, answers.PodsSchema, answers.Version)
	}
	p.take(pods.Containers)
	return nil
}

// take replaces what is known by what a file tells. What was counted of the same probes stays.
func (p *podProbes) take(told []answers.PodContainer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	next := make(map[podKey]*probedContainer, len(told))
	for _, t := range told[:min(len(told), answers.MaxPodContainers)] {
		key := podKey{t.UID, t.Container}
		c := p.containers[key]
		if c == nil {
			c = &probedContainer{}
		}
		var probes []watchedProbe
		for _, spec := range t.Probes {
			takes := prober.Answers(spec.Handler, time.Duration(spec.TimeoutSeconds)*time.Second)
			kind := spec.Probe == "liveness" || spec.Probe == "readiness"
			if takes == nil || !kind || spec.TimeoutSeconds <= 0 || spec.PeriodSeconds <= 0 ||
				spec.FailureThreshold <= 0 ||
				max(spec.TimeoutSeconds, spec.PeriodSeconds) > int(day/time.Second) ||
				slices.ContainsFunc(probes, func(w watchedProbe) bool { return w.spec.Probe == spec.Probe }) {
				continue
			}
			w := watchedProbe{spec: spec, takes: takes, watch: prober.New(prober.Timing{
				Timeout:   time.Duration(spec.TimeoutSeconds) * time.Second,
				Period:    time.Duration(spec.PeriodSeconds) * time.Second,
				Threshold: spec.FailureThreshold}, takes)}
			for _, old := range c.probes {
				same := old.spec
				if same.From = spec.From; same == spec {
					w.watch, w.saidAt = old.watch, old.saidAt
				}
			}
			probes = append(probes, w)
		}
		t.Restarts = t.Restarts[max(0, len(t.Restarts)-answers.MaxRestarts):]
		c.told, c.probes = t, probes
		next[key] = c
	}
	p.containers = next
}

// findings are the probes that stops make miss more often than missesADay, the worst first.
func (p *podProbes) findings(now time.Time) []answers.ProbeFinding {
	found := []answers.ProbeFinding{}
	if p == nil {
		return found
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.containers {
		for i := range c.probes {
			if f, ok := c.finding(&c.probes[i], p.rows && p.byCgroup[c.cgroup] == c, now); ok {
				found = append(found, f)
			}
		}
	}
	slices.SortFunc(found, func(a, b answers.ProbeFinding) int {
		return cmp.Or(-cmp.Compare(slower(a).MissesPerDay[0], slower(b).MissesPerDay[0]),
			cmp.Compare(a.Namespace, b.Namespace),
			cmp.Compare(a.Pod, b.Pod), cmp.Compare(a.Container, b.Container), cmp.Compare(a.Probe.Probe, b.Probe.Probe))
	})
	return found[:min(len(found), maxProbeFindings)]
}

// slower is what a finding says of the slower answer.
func slower(f answers.ProbeFinding) answers.ProbeAnswer { return f.Answers[len(f.Answers)-1] }

// finding is what is to be said of a probe. Without rows of a container that runs nothing is known since the last one.
func (c *probedContainer) finding(w *watchedProbe, rows bool, now time.Time) (answers.ProbeFinding, bool) {
	observed, figures, restarts := w.watch.Observed(), w.watch.Figures(), c.restarts(now)
	if rows && observed > 0 { // a container that idles has no rows, and no stops
		observed += max(0, now.Sub(c.lastRow))
	}
	restarted := len(restarts) > 0 && figures[len(figures)-1].MissesLow >= float64(w.spec.FailureThreshold)
	if observed < observedLeast && !restarted {
		return answers.ProbeFinding{}, false
	}
	low, high := w.watch.Lowest()
	f := answers.ProbeFinding{Namespace: text.Sanitize(c.told.Namespace, maxLabel),
		Pod: text.Sanitize(c.told.Pod, maxLabel),
		UID: text.Sanitize(c.told.UID, maxLabel), Container: text.Sanitize(c.told.Container, maxLabel), Probe: w.spec,
		ObservedSeconds: observed.Seconds(), LowestRunningSeconds: [2]float64{low.Seconds(), high.Seconds()}}
	days := observed.Seconds() / day.Seconds()
	for i, of := range figures {
		f.Answers = append(f.Answers, answers.ProbeAnswer{TakesSeconds: w.takes[i].Seconds(),
			MissesPerDay:   [2]float64{of.MissesLow / days, of.MissesHigh / days},
			FailuresPerDay: [2]float64{of.FailuresLow / days, of.FailuresHigh / days}})
	}
	f.WorstHour = c.worstHour(now)
	f.Says = says(f, restarts)
	return f, slower(f).MissesPerDay[0] >= missesADay
}

// worstHour is the hour of the last day in which the container was stopped most; nil: it never was.
func (c *probedContainer) worstHour(now time.Time) *answers.ProbeHour {
	var worst stoppedHour
	for _, h := range c.hours {
		if h.stopped > worst.stopped && now.Sub(h.from) < day {
			worst = h
		}
	}
	if worst.stopped == 0 {
		return nil
	}
	return &answers.ProbeHour{From: worst.from, StoppedSeconds: worst.stopped.Seconds(), Restarts: c.restartsIn(worst)}
}

// restarts are those of the hours of the last day in which the container was stopped.
func (c *probedContainer) restarts(now time.Time) (all []answers.Restart) {
	for _, h := range c.hours {
		if h.stopped > 0 && now.Sub(h.from) < day {
			all = append(all, c.restartsIn(h)...)
		}
	}
	slices.SortFunc(all, func(a, b answers.Restart) int { return a.At.Compare(b.At) })
	return all
}

// restartsIn are those of an hour, without those for want of memory.
func (c *probedContainer) restartsIn(h stoppedHour) []answers.Restart {
	found := []answers.Restart{}
	for _, r := range c.told.Restarts {
		if !r.At.Before(h.from) && r.At.Before(h.from.Add(time.Hour)) && r.Reason != "OOMKilled" {
			r.Reason = text.Sanitize(r.Reason, maxLabel)
			found = append(found, r)
		}
	}
	return found
}

// says tells a finding in words. It claims no cause of a restart: a container's status does not have it.
func says(f answers.ProbeFinding, restarts []answers.Restart) string {
	seconds := func(s float64) string { return text.Duration(time.Duration(s * float64(time.Second))) }
	var b strings.Builder
	fmt.Fprintf(&b, "%s probe (%s, timeout %d s, every %d s): a CPU quota stops the container while it waits. ",
		f.Probe.Probe,
		f.Probe.Handler, f.Probe.TimeoutSeconds, f.Probe.PeriodSeconds)
	for _, a := range slices.Backward(f.Answers) {
		fmt.Fprintf(&b, "An answer that takes %s of running time misses %s", seconds(a.TakesSeconds),
			aDay(a.MissesPerDay))
		if a.FailuresPerDay[1] > 0 {
			fmt.Fprintf(&b, ", %d in a row %s", f.Probe.FailureThreshold, aDay(a.FailuresPerDay))
		}
		b.WriteString(". ")
	}
	fmt.Fprintf(&b, "In %d s it may run for %s only.", f.Probe.TimeoutSeconds, seconds(f.LowestRunningSeconds[0]))
	switch h := f.WorstHour; {
	case f.ObservedSeconds < observedLeast.Seconds():
		fmt.Fprintf(&b, " It was watched for %s while it ran, and was restarted %s.", seconds(f.ObservedSeconds), ended(restarts))
	case h != nil && len(h.Restarts) > 0:
		fmt.Fprintf(&b, " In the hour from %s UTC, in which it was stopped most (%s), it was restarted %s.",
			h.From.UTC().Format("15:04"), seconds(h.StoppedSeconds), ended(h.Restarts))
	}
	return b.String()
}

// ended is how often a container ended, and how.
func ended(restarts []answers.Restart) string {
	codes := make([]string, len(restarts))
	for i, r := range restarts {
		codes[i] = strconv.Itoa(r.ExitCode)
	}
	code := "exit codes"
	if len(codes) == 1 {
		code = "exit code"
	}
	return fmt.Sprintf("%s (%s %s)", text.Count(len(restarts), "time"), code, strings.Join(codes, ", "))
}

// aDay is a number of times a day, between two.
func aDay(n [2]float64) string {
	low, high := rounded(n[0]), rounded(n[1])
	switch {
	case high == "0":
		return "never"
	case low == high:
		return "about " + low + " times a day"
	}
	return low + " to " + high + " times a day"
}

// rounded keeps a decimal of small numbers.
func rounded(v float64) string {
	if v >= 9.95 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strings.TrimSuffix(strconv.FormatFloat(v, 'f', 1, 64), ".0")
}

// tellProbes writes each finding into the log once a day.
func (a *agent) tellProbes(now time.Time) {
	p := a.probes
	if p == nil || now.Sub(p.toldAt) < time.Minute {
		return
	}
	p.toldAt = now
	for _, f := range p.findings(now) {
		if p.say(f, now) {
			a.Log.Warn("a probe misses its timeout", "namespace", f.Namespace, "pod", f.Pod, "container", f.Container,
				"why", f.Says)
		}
	}
}

// say tells whether a finding is to be said again.
func (p *podProbes) say(f answers.ProbeFinding, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.containers {
		for i := range c.probes {
			if w := &c.probes[i]; c.told.UID == f.UID && c.told.Container == f.Container && w.spec == f.Probe {
				if !w.saidAt.IsZero() && now.Sub(w.saidAt) < day {
					return false
				}
				w.saidAt = now
				return true
			}
		}
	}
	return false
}

// probesPage answers GET /probes.
func (a *agent) probesPage(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answers.Probes{Schema: answers.ProbesSchema, Version: answers.Version,
		Findings: a.probes.findings(a.time())})
}

var (
	probeMissesLow = containerDesc("probe_misses_low_total",
		"Lower bound of the probes of the kubelet that miss their timeout since "+
			"a quota stops the container, on average: those whose answer takes that many seconds of running time.",
		"probe", "answer_seconds")
	probeMissesHigh  = containerDesc("probe_misses_high_total", "Upper bound of them.", "probe", "answer_seconds")
	probeFailuresLow = containerDesc("probe_failures_low_total",
		"Lower bound of how often failureThreshold of them miss in a row.", "probe", "answer_seconds")
	probeFailuresHigh = containerDesc("probe_failures_high_total", "Upper bound of it.", "probe", "answer_seconds")
	probeLowest       = containerDesc("probe_lowest_running_seconds",
		"The least time that the container could run within the timeout "+
			"of a probe, since the agent began.", "probe")
)

// Describe implements prometheus.Collector.
func (p *podProbes) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{probeMissesLow, probeMissesHigh, probeFailuresLow, probeFailuresHigh,
		probeLowest} {
		ch <- d
	}
}

// Collect implements prometheus.Collector: the containers of the last round that were stopped at least once.
func (p *podProbes) Collect(ch chan<- prometheus.Metric) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.byCgroup {
		if !c.stopped {
			continue
		}
		for _, w := range c.probes {
			labels := slices.Concat(c.labels, []string{w.spec.Probe})
			for i, f := range w.watch.Figures() {
				of := slices.Concat(labels, []string{strconv.FormatFloat(w.takes[i].Seconds(), 'g', -1, 64)})
				for d, v := range map[*prometheus.Desc]float64{probeMissesLow: f.MissesLow,
					probeMissesHigh:  f.MissesHigh,
					probeFailuresLow: f.FailuresLow, probeFailuresHigh: f.FailuresHigh} {
					ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v, of...)
				}
			}
			if low, _ := w.watch.Lowest(); w.watch.Observed() > 0 {
				ch <- prometheus.MustNewConstMetric(probeLowest, prometheus.GaugeValue, low.Seconds(), labels...)
			}
		}
	}
}
