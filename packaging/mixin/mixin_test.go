package mixin

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestAlertsAreTold: each alert has what its reader needs, and a row in the page of metrics. The page has no other, and
// what it shows of the files stands in them.
func TestAlertsAreTold(t *testing.T) {
	const page = "docs/reference/metrics.md"
	rules, err := Rules()
	if err != nil {
		t.Fatal(err)
	}
	text := read(t, page)
	runbook := regexp.MustCompile(`^https://github\.com/unthrottle/unthrottle/blob/main/(docs/[\w/-]+\.md)(?:#([\w-]+))?$`)
	var names []string
	for _, r := range rules {
		if r.Alert == "" {
			continue
		}
		names = append(names, r.Alert)
		if !strings.Contains(text, "\n| `"+r.Alert+"` |") {
			t.Errorf("%s has no row in %s", r.Alert, page)
		}
		if !slices.Contains([]string{"warning", "info"}, r.Labels["severity"]) || r.Annotations["summary"] == "" ||
			r.Annotations["description"] == "" {
			t.Errorf("%s: severity %q, annotations %q", r.Alert, r.Labels["severity"], r.Annotations)
		}
		m := runbook.FindStringSubmatch(r.Annotations["runbook_url"])
		if m == nil {
			t.Errorf("%s: its runbook %q is no page of docs", r.Alert, r.Annotations["runbook_url"])
			continue
		}
		if m[2] != "" && !slices.Contains(anchors(read(t, m[1])), m[2]) {
			t.Errorf("%s: %s has no heading %s", r.Alert, m[1], m[2])
		}
	}
	for _, row := range regexp.MustCompile("(?m)^\\| `([A-Z]\\w+)` \\|").FindAllStringSubmatch(text, -1) {
		if !slices.Contains(names, row[1]) {
			t.Errorf("%s has a row for %s, which is no alert", page, row[1])
		}
	}
	shown := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(text, -1)
	if len(shown) == 0 {
		t.Errorf("%s shows no alert", page)
	}
	for _, s := range shown {
		if !strings.Contains(read(t, "packaging/mixin/alerts.yaml"), s[1]) {
			t.Errorf("%s shows what alerts.yaml has not:\n%s", page, s[1])
		}
	}
}

// anchors are a page's headings as links name them.
func anchors(page string) []string {
	var all []string
	for _, h := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(page, -1) {
		all = append(all, strings.ReplaceAll(regexp.MustCompile(`[^\w -]`).ReplaceAllString(strings.ToLower(h[1]), ""), " ", "-"))
	}
	return all
}

// TestPagesNameRules: what the pages name as a recorded series is one.
func TestPagesNameRules(t *testing.T) {
	rules, err := Rules()
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, r := range rules {
		known[r.Record] = true
	}
	found := 0
	for _, page := range []string{"docs/howto/prometheus.md", "docs/reference/metrics.md"} {
		for _, name := range regexp.MustCompile(`\b[a-z_]+:unthrottle_[\w:]+`).FindAllString(read(t, page), -1) {
			if found++; !known[name] {
				t.Errorf("%s names %s, which no rule records", page, name)
			}
		}
	}
	if found < 3 {
		t.Errorf("%d recorded series found in the pages: mend the pattern of this test", found)
	}
}

// selectors are the series of a query, with their braces if they have some.
var selectors = regexp.MustCompile(`\b(?:unthrottle_\w+|up)\b(?:\{[^}]*\})?`)

// TestDashboards: each query is of the clusters that are chosen, panels have a number each, do not overlap, stay within Grafana's 24
// columns, and fill in every
// variable.
func TestDashboards(t *testing.T) {
	boards, err := Dashboards()
	if err != nil || len(boards) != 3 {
		t.Fatalf("%d dashboards, %v", len(boards), err)
	}
	for _, d := range boards {
		ids, cells := map[int]bool{}, map[[2]int]string{}
		if d.UID == "" || d.Title == "" || len(d.Panels) == 0 {
			t.Errorf("%s: uid %q, title %q, %d panels", d.File, d.UID, d.Title, len(d.Panels))
		}
		for _, p := range d.Panels {
			if ids[p.ID] || p.Title == "" || len(p.Targets) == 0 {
				t.Errorf("%s: panel %d %q: its number is taken, or it has no title or no query", d.File, p.ID, p.Title)
			}
			ids[p.ID] = true
			if p.GridPos.X+p.GridPos.W > 24 || p.GridPos.W == 0 || p.GridPos.H == 0 {
				t.Errorf("%s: panel %q is at %+v", d.File, p.Title, p.GridPos)
			}
			for x := range p.GridPos.W {
				for y := range p.GridPos.H {
					at := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
					if cells[at] != "" {
						t.Fatalf("%s: panels %q and %q overlap", d.File, p.Title, cells[at])
					}
					cells[at] = p.Title
				}
			}
			for _, target := range p.Targets {
				for _, selector := range selectors.FindAllString(target.Expr, -1) {
					if !strings.Contains(selector, ByCluster) {
						t.Errorf("%s: panel %q mixes clusters: %s", d.File, p.Title, selector)
					}
				}
				if query := d.Query(target); strings.Contains(query, "$") {
					t.Errorf("%s: panel %q has a variable that the dashboard has not: %s", d.File, p.Title, query)
				}
			}
		}
	}
}
