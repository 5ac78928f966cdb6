package fleet

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/packaging/mixin"
)

// measured is a report of which every figure is known.
func measured() Document {
	return Document{Containers: 7, Hosts: 2, Until: time.Unix(1700000000, 0),
		Ledger:   Ledger{CoresNow: 20, CoresAfter: 12, Saved: 8, SavedLow: 5, SavedHigh: 9},
		Services: []Service{saving("app\x1b[2J\"\n", nil), {Name: "idle", Containers: 1}},
		Unknown:  []Unknown{{Reason: "no limit of its own", Containers: 1, Cores: 2}},
		Applied:  []Applied{{Remedy: "burst", Containers: 1, StoppedBefore: new(0.2), StoppedAfter: new(0.05)}},
		Input:    Input{GoneAfter: 15 * time.Minute, Rows: 99, Refused: []Refused{{"a", "b"}}, RefusedMore: 2}}
}

func TestMetrics(t *testing.T) {
	var b strings.Builder
	if err := Metrics(&b, measured()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`unthrottle_fleet_cores{state="after_high"} 15`, `unthrottle_fleet_cores{state="now"} 20`,
		"unthrottle_fleet_hosts 2", "unthrottle_fleet_files_left_out 3",
		`unthrottle_fleet_unknown_cores{reason="no limit of its own"} 2`,
		`unthrottle_fleet_applied_stopped_ratio{remedy="burst",state="after"} 0.05`,
		`unthrottle_fleet_service_cores{service="shop/cart/app\\x1b[2J\"\\n",state="after"} 4.5`,
		"unthrottle_fleet_rows_until_timestamp_seconds 1.7e+09",
	} {
		if !strings.Contains(b.String(), want+"\n") {
			t.Errorf("%s is missing in\n%s", want, b.String())
		}
	}
	if strings.Contains(b.String(), `"forecast"`) || strings.Contains(b.String(), `service="idle"`) {
		t.Errorf("what is not known has a series:\n%s", b.String())
	}
}

// The dashboard of the fleet names metrics and labels that Metrics writes, and so does its page.
func TestTheDashboardNamesWhatIsWritten(t *testing.T) {
	d := measured()
	d.Services[0].StoppedShare, d.Services[0].ContendedShareLow, d.Services[0].RunnablePerCore = new(0.1), new(0.2), new(3.0)
	var b strings.Builder
	if err := Metrics(&b, d); err != nil {
		t.Fatal(err)
	}
	written := map[string][]string{}
	for _, m := range regexp.MustCompile(`(?m)^(\w+)(?:\{(.*)\})? `).FindAllStringSubmatch(b.String(), -1) {
		written[m[1]] = append(written[m[1]], regexp.MustCompile(`\w+="[^"]*"`).FindAllString(m[2], -1)...)
	}
	page, err := os.ReadFile("../../../../docs/reference/fleet.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range regexp.MustCompile(`unthrottle_fleet_\w+`).FindAllString(string(page), -1) {
		if _, ok := written[name]; !ok {
			t.Errorf("docs/reference/fleet.md names %s, which is not written", name)
		}
	}
	boards, err := mixin.Dashboards()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(boards, func(d mixin.Dashboard) bool { return d.File == mixin.FleetDashboard })
	if i < 0 {
		t.Fatal("there is no dashboard of the fleet")
	}
	named := regexp.MustCompile(`\b(unthrottle_\w+)(?:\{([^}]*)\})?`)
	for _, p := range boards[i].Panels {
		for _, target := range p.Targets {
			found := named.FindAllStringSubmatch(target.Expr, -1)
			if len(found) == 0 {
				t.Errorf("%s names no metric", p.Title)
			}
			for _, f := range found {
				of, ok := written[f[1]]
				if !ok {
					t.Errorf("%s names %s, which is not written", p.Title, f[1])
				}
				// the label of the cluster is of who collects it
				if by := strings.TrimPrefix(strings.TrimPrefix(f[2], mixin.ByCluster), ", "); by != "" && !slices.Contains(of, by) {
					t.Errorf("%s selects by %s, which %s has not: %q", p.Title, by, f[1], of)
				}
				for _, l := range regexp.MustCompile(`\{\{(\w+)\}\}`).FindAllStringSubmatch(target.Legend, -1) {
					if !strings.Contains(strings.Join(of, " "), l[1]+"=") {
						t.Errorf("%s: its legend has %s, which %s has not", p.Title, l[1], f[1])
					}
				}
			}
		}
	}
}
