package policy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/unthrottle/unthrottle/internal/text"
)

// mapping reads a node whose keys are all known; each may stand once.
func mapping(n *yaml.Node, known map[string]func(*yaml.Node) error) error {
	if n.Kind != yaml.MappingNode {
		return wrong(n, "keys with values are wanted here")
	}
	seen := map[string]bool{}
	var all error
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		read, ok := known[key.Value]
		switch {
		case key.Kind != yaml.ScalarNode || !ok:
			all = together(all, wrong(key, "unknown key %.60q; known here: %s", key.Value, keys(known)))
		case seen[key.Value]:
			all = together(all, wrong(key, "key %q stands twice", key.Value))
		default:
			seen[key.Value] = true
			all = together(all, read(value))
		}
	}
	return all
}

// linesOf has the lines of a mapping's keys, and one level below them those of "key.inner".
func linesOf(n *yaml.Node) map[string]int {
	lines := map[string]int{}
	eachKey(n, func(key, value *yaml.Node) {
		lines[key.Value] = key.Line
		eachKey(value, func(inner, _ *yaml.Node) { lines[key.Value+"."+inner.Value] = inner.Line })
	})
	return lines
}

// eachKey calls a function with each key of a mapping and its value; of another node with none.
func eachKey(n *yaml.Node, do func(key, value *yaml.Node)) {
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		do(n.Content[i], n.Content[i+1])
	}
}

func keys(known map[string]func(*yaml.Node) error) string {
	all := make([]string, 0, len(known))
	for key := range known {
		all = append(all, key)
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// scalar reads a scalar, which may be empty.
func scalar(n *yaml.Node, to *string) error {
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		return wrong(n, "a text is wanted here")
	}
	if len(n.Value) > maxText {
		return wrong(n, "%d bytes, more than %d", len(n.Value), maxText)
	}
	*to = n.Value
	return nil
}

// words reads a scalar that says something.
func words(n *yaml.Node, to *string) error {
	if err := scalar(n, to); err != nil {
		return err
	}
	if strings.TrimSpace(*to) == "" || strings.ContainsRune(*to, 0) {
		return wrong(n, "a text is wanted here, not %.20q", *to)
	}
	return nil
}

func oneOf(n *yaml.Node, to *string, allowed ...string) error {
	var value string
	if err := scalar(n, &value); err != nil {
		return err
	}
	if !slices.Contains(allowed, value) {
		return wrong(n, "%.60q is none of %s", value, strings.Join(allowed, ", "))
	}
	*to = value
	return nil
}

func whole(n *yaml.Node, to *int, least, most int) error {
	var value string
	if err := scalar(n, &value); err != nil {
		return err
	}
	number, err := strconv.Atoi(value)
	if err != nil || number < least || number > most {
		return wrong(n, "%.40q is not a whole number from %d to %d", value, least, most)
	}
	*to = number
	return nil
}

// above reads a number larger than least, up to most.
func above(n *yaml.Node, to *float64, least, most float64) error {
	number, err := number(n)
	if err != nil || !(number > least && number <= most) {
		return wrong(n, "%.40q is not a number above %g, up to %g", n.Value, least, most)
	}
	*to = number
	return nil
}

// share reads a part of a whole: 0.05 or 5%.
func share(n *yaml.Node, to *float64) error {
	value, err := number(n)
	if err != nil || !(value >= 0 && value <= 1) {
		return wrong(n, "%.40q is not a share from 0 to 1 (or 0%% to 100%%)", n.Value)
	}
	*to = value
	return nil
}

func number(n *yaml.Node) (float64, error) {
	var value string
	if err := scalar(n, &value); err != nil {
		return 0, err
	}
	digits, percent := strings.CutSuffix(value, "%")
	number, err := text.ParseDecimal(digits)
	if err != nil {
		return 0, fmt.Errorf("%.40q is no number", value)
	}
	if percent {
		number /= 100
	}
	return number, nil
}

func duration(n *yaml.Node, to *time.Duration, least, most time.Duration) error {
	var value string
	if err := scalar(n, &value); err != nil {
		return err
	}
	d, err := time.ParseDuration(value)
	if err != nil || d < least || d > most {
		return wrong(n, "%.40q is not a time from %v to %v, such as 1s or 500ms", value, least, most)
	}
	*to = d
	return nil
}
