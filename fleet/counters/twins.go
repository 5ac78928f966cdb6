package counters

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/prometheus/common/model"

	"github.com/unthrottle/unthrottle/internal/text"
)

// cgroups are labels that differ where a container was started again: its series come one after the other, and are
// added up.
var cgroups = []model.LabelName{"id", "name", "image"}

// clusters are labels by which one store keeps several clusters apart.
var clusters = []model.LabelName{"cluster", "cluster_name", "cluster_id"}

// mostShown bounds what is told of a label's values.
const mostShown = 3

// twins finds what is there twice in the series of one moment. What one cgroup has twice is told by the labels that
// differ, since the largest counts. What cannot be told apart by its names is an error that names the flag which takes
// one of them.
func twins(raw model.Matrix, nodeLabel string) (note string, err error) {
	var series []model.Metric
	for _, stream := range raw {
		series = append(series, stream.Metric)
	}
	for _, label := range clusters {
		if values := valuesOf(series, label); len(values) > 1 {
			return "", fmt.Errorf("series are of %s: take one: %s", shown(label, values), match(label, values))
		}
	}
	groups := map[Key][]model.Metric{}
	for _, m := range series {
		k := Key{string(m[model.LabelName(nodeLabel)]), string(m["namespace"]), string(m["pod"]), string(m["container"])}
		if k.Node == "" {
			other := "name the label that has the node: --node-label LABEL"
			if m["instance"] != "" && nodeLabel != "instance" {
				other = "they have the label instance: --node-label instance"
			}
			return "", fmt.Errorf("series of %s have no label %s, so that two nodes would count as one: %s", k.name(), nodeLabel,
				other)
		}
		groups[k] = append(groups[k], m)
	}
	two := map[model.LabelName][]Key{} // containers that a label tells apart
	for _, k := range slices.SortedFunc(maps.Keys(groups),
		func(a, b Key) int { return strings.Compare(a.name(), b.name()) }) {
		byID := map[model.LabelValue][]model.Metric{}
		for _, m := range groups[k] {
			byID[m["id"]] = append(byID[m["id"]], m)
		}
		same := map[model.LabelName]bool{} // labels that differ for one cgroup
		for _, metrics := range byID {
			for _, label := range differing(metrics) {
				same[label] = true
			}
		}
		for _, label := range differing(groups[k]) {
			if !same[label] && !slices.Contains(cgroups, label) {
				two[label] = append(two[label], k)
			}
		}
		delete(same, "cpu") // these are added up
		for _, label := range slices.Sorted(maps.Keys(same)) {
			if note == "" && !slices.Contains(cgroups, label) {
				note = fmt.Sprintf("series are there twice, of %s, such as those of %s: the largest counts",
					shown(label, valuesOf(groups[k], label)), k.name())
			}
		}
	}
	for _, label := range slices.Sorted(maps.Keys(two)) {
		// Of few it may be chance: a container that ends for one scrape job before the other.
		if keys := two[label]; chance*len(keys) >= len(groups) {
			values := valuesOf(groups[keys[0]], label)
			return "", fmt.Errorf("%s is two containers: series are of %s: take one: %s", keys[0].name(), shown(label, values),
				match(label, values))
		}
	}
	return note, nil
}

// chance: one container of so many may be told apart by a label by chance.
const chance = 20

// match is the flag that takes one of a label's values.
func match(label model.LabelName, values []string) string {
	return fmt.Sprintf(`--match '%s="%s"'`, text.Sanitize(string(label), 0), text.Shown(values[len(values)-1]))
}

// differing are the labels whose values differ, or that only some have.
func differing(series []model.Metric) (labels []model.LabelName) {
	seen := map[model.LabelName]bool{}
	for _, m := range series {
		for label := range m {
			if !seen[label] && len(valuesOf(series, label)) > 1 {
				seen[label] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// valuesOf are a label's values, "" where one has none.
func valuesOf(series []model.Metric, label model.LabelName) []string {
	values := map[string]bool{}
	for _, m := range series {
		values[string(m[label])] = true
	}
	return slices.Sorted(maps.Keys(values))
}

func shown(label model.LabelName, values []string) string {
	var some []string
	for _, v := range values[:min(len(values), mostShown)] {
		some = append(some, text.Quoted(v))
	}
	return fmt.Sprintf("%d values of the label %s (%s)", len(values), text.Sanitize(string(label), 0),
		strings.Join(some, ", "))
}
