package agent

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/unthrottle/unthrottle/internal/cure/policy"
)

var notTreatedDesc = containerDesc("not_treated", "1, with the reason why no remedy is in force for the container. "+
	"Absent: one is.", "reason")

// notTreated exports why containers are not treated: one series for each, for those of them that are exported at all.
type notTreated struct{ chooser *chooser }

// Describe implements prometheus.Collector.
func (notTreated) Describe(ch chan<- *prometheus.Desc) { ch <- notTreatedDesc }

// Collect implements prometheus.Collector.
func (n notTreated) Collect(ch chan<- prometheus.Metric) {
	n.chooser.mu.Lock()
	defer n.chooser.mu.Unlock()
	for _, s := range n.chooser.standings {
		if s.exported && s.treatment.Reason != "" {
			ch <- prometheus.MustNewConstMetric(notTreatedDesc, prometheus.GaugeValue, 1,
				slices.Concat(s.labels, []string{string(s.treatment.Reason)})...)
		}
	}
}

// report is what GET /policy answers.
func (a *agent) report() policy.Report {
	c := a.chooser
	a.mu.Lock()
	at := a.lastRound
	a.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	out := policy.Report{Config: a.ConfigFile, Agent: &policy.ReportAgent{Version: a.Version, At: at.UTC().Truncate(time.Millisecond)},
		Containers: make([]policy.ReportContainer, 0, len(c.standings))}
	for _, s := range c.standings {
		if s.exported {
			out.Containers = append(out.Containers, c.rules.Container(s.container, s.effective, s.treatment))
		}
	}
	slices.SortFunc(out.Containers, func(x, y policy.ReportContainer) int { return strings.Compare(x.Cgroup, y.Cgroup) })
	return out
}

// policyPage answers GET /policy.
func policyPage(report func() policy.Report) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(policy.Document{Schema: policy.ReportSchema, Version: policy.ReportVersion, Report: report()})
	})
}
