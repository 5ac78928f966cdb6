package simulate

import (
	"time"

	"github.com/unthrottle/unthrottle/bandwidth"
	"github.com/unthrottle/unthrottle/internal/scenario"
)

// touch brings a group's sums up to now, before they change.
func (h *host) touch(g int) {
	gr := &h.groups[g]
	d := h.now - gr.since
	if d == 0 {
		return
	}
	gr.width[gr.running] += d
	if gr.narrow != nil && gr.narrow.credit != nil {
		gr.narrow.credit.settle(d, gr.running)
	}
	if gr.held > 0 {
		gr.stopped += d
	}
	if gr.timeline != nil {
		gr.timeline.add(gr.since, h.now, gr.running, gr.held > 0)
	}
	gr.since = h.now
}

// occupy counts CPUs in use by a group and its ancestors.
func (h *host) occupy(g, n int) {
	for ; g > 0; g = h.groups[g].parent {
		h.touch(g)
		h.groups[g].running += n
	}
}

// hold marks a thread as held by a quota, or as free again.
func (h *host) hold(t int, held bool) {
	th := &h.threads[t]
	if th.held == held {
		return
	}
	th.held = held
	n := 1
	if !held {
		n = -1
	}
	for g := th.group; g > 0; g = h.groups[g].parent {
		h.touch(g)
		h.groups[g].held += n
	}
}

// holdAll is hold for the threads that are linked below a group on a CPU.
func (h *host) holdAll(g, c int, held bool) {
	for _, m := range h.rq(g, c).list {
		if m < 0 {
			h.holdAll(^m, c, held)
		} else {
			h.hold(m, held)
		}
	}
}

// outcome sums up at the end.
func (h *host) outcome() scenario.Outcome {
	o := scenario.Outcome{
		Seconds: h.now.Seconds(), Cgroups: map[string]scenario.CgroupOutcome{}, Workloads: map[string]scenario.WorkloadOutcome{},
	}
	usage := make([]time.Duration, len(h.groups))
	for i := range h.works {
		w := &h.works[i]
		for g := w.group; g > 0; g = h.groups[g].parent {
			usage[g] += w.used
		}
		if w.Shards != nil && w.Shard == 0 {
			o.Workloads[w.Shards.Name] = h.wholeOutcome(w.service.clients)
		}
		o.Workloads[w.Name] = h.workOutcome(w)
	}
	for i := range h.scenario.Cgroups {
		g := &h.groups[i+1]
		h.touch(i + 1)
		var stat bandwidth.Stat
		if g.bw != nil {
			stat = g.bw.Stat(h.now)
		}
		stopped := g.stopped.Seconds()
		c := scenario.CgroupOutcome{
			Periods: stat.Periods, ActivePeriods: &stat.ActivePeriods, ThrottledPeriods: stat.ThrottledPeriods,
			ThrottledSeconds: stat.Throttled.Seconds(), UsageSeconds: usage[i+1].Seconds(), StoppedSeconds: &stopped,
			Width: []scenario.Width{},
		}
		for cpus, d := range g.width {
			if d > 0 {
				c.Width = append(c.Width, scenario.Width{CPUs: cpus, Seconds: d.Seconds()})
			}
		}
		o.Cgroups[h.scenario.Cgroups[i].Name] = c
	}
	return o
}

func (h *host) workOutcome(w *work) scenario.WorkloadOutcome {
	used := w.used.Seconds()
	switch {
	case w.Shards != nil:
		return h.shardOutcome(w)
	case w.service != nil:
		return h.wholeOutcome(w.service.clients)
	}
	o := scenario.WorkloadOutcome{Latencies: w.latency.figures(w.latency.n)}
	o.CPUSeconds = &used
	if w.collector != nil {
		o.CPUSeconds = nil // its service has them
		if w.collector.stopping {
			o.Unfinished = 1
		}
	}
	for _, t := range h.threads[w.first : w.first+w.count] {
		if t.busy {
			o.Unfinished++
		}
	}
	return o
}
