package mixin

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"strings"

	"go.yaml.in/yaml/v3"
)

//go:embed rules.yaml alerts.yaml dashboards/*.json
var files embed.FS

// Rule is one rule of Prometheus: a recording rule or an alert.
type Rule struct {
	Record      string            `yaml:"record"` // the name of the new series; "": an alert
	Alert       string            `yaml:"alert"`
	Expr        string            `yaml:"expr"`
	For         string            `yaml:"for"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

// Rules returns all rules, in the order in which Prometheus evaluates them. An error names the file.
func Rules() ([]Rule, error) {
	var rules []Rule
	for _, name := range []string{"rules.yaml", "alerts.yaml"} {
		text, err := files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		var file struct {
			Groups []struct {
				Name  string `yaml:"name"`
				Rules []Rule `yaml:"rules"`
			} `yaml:"groups"`
		}
		d := yaml.NewDecoder(bytes.NewReader(text))
		d.KnownFields(true)
		if err := d.Decode(&file); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		for _, g := range file.Groups {
			rules = append(rules, g.Rules...)
		}
	}
	return rules, nil
}

// FleetDashboard is the file of the one whose figures come from 'unthrottle fleet report --metrics', and not from agents.
const FleetDashboard = "dashboards/fleet.json"

// ByCluster selects the clusters that are chosen in a dashboard. The label is of who collects a series, such as Thanos or Mimir.
const ByCluster = `cluster=~"$cluster"`

// Dashboard is one of Grafana, as far as it asks Prometheus.
type Dashboard struct {
	File       string `json:"-"`
	UID        string `json:"uid"`
	Title      string `json:"title"`
	Templating struct {
		List []Variable `json:"list"`
	} `json:"templating"`
	Panels []Panel `json:"panels"`
}

// Variable is what a user chooses above a dashboard. Definition is a query for its values, label_values(METRIC, LABEL);
// "" for the data source.
type Variable struct {
	Name       string `json:"name"`
	Definition string `json:"definition"`
}

// Panel is one figure of a dashboard.
type Panel struct {
	ID      int    `json:"id"`
	Title   string `json:"title"`
	GridPos struct {
		X, Y, W, H int
	} `json:"gridPos"`
	Targets []Target `json:"targets"`
}

// Target is one query of a panel.
type Target struct {
	Expr   string `json:"expr"`
	Legend string `json:"legendFormat"`
}

// Dashboards returns all dashboards, by name of their files. An error names the file.
func Dashboards() ([]Dashboard, error) {
	names, err := fs.Glob(files, "dashboards/*.json")
	if err != nil {
		return nil, err
	}
	var dashboards []Dashboard
	for _, name := range names {
		text, err := files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		d := Dashboard{File: name}
		if err := json.Unmarshal(text, &d); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		dashboards = append(dashboards, d)
	}
	return dashboards, nil
}

// Query returns the target's query with the dashboard's variables filled in: any value, and a rate over five minutes.
func (d *Dashboard) Query(t Target) string {
	query := strings.ReplaceAll(t.Expr, "$__rate_interval", "5m")
	for _, v := range d.Templating.List {
		query = strings.ReplaceAll(query, `"$`+v.Name+`"`, `".*"`)
	}
	return query
}
