package agent

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/unthrottle/unthrottle/packaging/mixin"
)

// labelsOf holds the labels of metrics by name.
type labelsOf map[string][]string

// scraped are the labels that Prometheus adds to each series.
var scraped = []string{"job", "instance", "cluster"}

// exported returns the labels of all metrics that an agent exports, as Prometheus stores them.
func exported(t *testing.T) labelsOf {
	t.Helper()
	desc := regexp.MustCompile(`fqName: "(\w+)".*constLabels: \{(.*?)\}, variableLabels: \{(.*?)\}`)
	name := regexp.MustCompile(`\w+`)
	all := labelsOf{"up": scraped}
	for _, c := range new(agent).collectors() {
		ch := make(chan *prometheus.Desc)
		go func() { c.Describe(ch); close(ch) }()
		for d := range ch {
			m := desc.FindStringSubmatch(d.String())
			if m == nil {
				t.Fatalf("%s: mend the pattern of this test", d)
			}
			labels := slices.Concat(scraped, name.FindAllString(m[3], -1))
			for pair := range strings.SplitSeq(m[2], ",") {
				labels = append(labels, name.FindString(pair))
			}
			all[m[1]] = labels
		}
	}
	for _, d := range []*prometheus.Desc{widthDesc, wantDesc} {
		n := desc.FindStringSubmatch(d.String())[1]
		all[n+"_bucket"], all[n+"_sum"], all[n+"_count"] = append(slices.Clone(all[n]), "le"), all[n], all[n]
	}
	return all
}

var (
	// quoted is a text, in which PromQL names nothing.
	quoted = regexp.MustCompile(`"[^"]*"`)
	// named is a metric that a query names, with its selector.
	named = regexp.MustCompile(`\b((?:[a-z_]+:)?unthrottle_[\w:]+|up)\b *(?:\{([^}]*)\})?`)
	// matcher is a label in a selector; grouped are those of a clause.
	matcher = regexp.MustCompile(`(\w+) *(?:=~|!~|!=|=)`)
	grouped = regexp.MustCompile(`\b(by|without|on|ignoring|group_left|group_right) *\(([^)]*)\)`)
	word    = regexp.MustCompile(`\w+`)
)

// check reports what a query names that is not there, and returns the labels of its result or more.
func (all labelsOf) check(t *testing.T, where, query string) []string {
	t.Helper()
	query = quoted.ReplaceAllString(query, `""`)
	var labels []string
	found := named.FindAllStringSubmatch(query, -1)
	if len(found) == 0 {
		t.Errorf("%s names no metric: %s", where, query)
	}
	for _, f := range found {
		of, ok := all[f[1]]
		if !ok {
			t.Errorf("%s names %s, which no agent exports and no rule records", where, f[1])
		}
		for _, m := range matcher.FindAllStringSubmatch(f[2], -1) {
			if !slices.Contains(of, m[1]) {
				t.Errorf("%s selects by %s, which %s has not", where, m[1], f[1])
			}
		}
		labels = append(labels, of...)
	}
	for _, clause := range grouped.FindAllStringSubmatch(query, -1) {
		for _, l := range word.FindAllString(clause[2], -1) {
			if !slices.Contains(labels, l) {
				t.Errorf("%s: %s names %s, which none of its metrics has", where, clause[0], l)
			}
		}
		if clause[1] == "by" && strings.HasPrefix(query, "sum by") {
			return word.FindAllString(clause[2], -1)
		}
	}
	return labels
}

// TestMixinNamesWhatIsExported: rules, alerts and dashboards name metrics and labels of a real agent.
func TestMixinNamesWhatIsExported(t *testing.T) {
	all := exported(t)
	if len(all) < 60 || !slices.Contains(all["unthrottle_container_waiting_seconds_total"], "cause") {
		t.Fatalf("%d metrics found: mend the patterns of this test", len(all))
	}
	rules, err := mixin.Rules()
	if err != nil {
		t.Fatal(err)
	}
	inText := regexp.MustCompile(`\$labels\.(\w+)`)
	for _, r := range rules {
		labels := all.check(t, r.Record+r.Alert, r.Expr)
		if r.Record != "" {
			all[r.Record] = labels
		}
		for _, text := range r.Annotations {
			for _, l := range inText.FindAllStringSubmatch(text, -1) {
				if !slices.Contains(labels, l[1]) {
					t.Errorf("%s tells the label %s, which none of its metrics has", r.Alert, l[1])
				}
			}
		}
	}
	boards, err := mixin.Dashboards()
	if err != nil {
		t.Fatal(err)
	}
	inLegend, values := regexp.MustCompile(`\{\{(\w+)\}\}`), regexp.MustCompile(`^label_values\((.*), (\w+)\)$`)
	for _, d := range boards {
		if d.File == mixin.FleetDashboard { // internal/ui/report/fleet has its test
			continue
		}
		for _, v := range d.Templating.List {
			if v.Definition == "" {
				continue
			}
			m := values.FindStringSubmatch(v.Definition)
			if m == nil {
				t.Errorf("%s: variable %s asks %q, want label_values(METRIC, LABEL)", d.File, v.Name, v.Definition)
			} else if !slices.Contains(all.check(t, d.File, m[1]), m[2]) {
				t.Errorf("%s: variable %s lists %s, which its metric has not", d.File, v.Name, m[2])
			}
		}
		for _, p := range d.Panels {
			for _, target := range p.Targets {
				where := d.File + ", " + p.Title
				labels := all.check(t, where, d.Query(target))
				for _, l := range inLegend.FindAllStringSubmatch(target.Legend, -1) {
					if !slices.Contains(labels, l[1]) {
						t.Errorf("%s: its legend has %s, which its query does not return", where, l[1])
					}
				}
			}
		}
	}
}
