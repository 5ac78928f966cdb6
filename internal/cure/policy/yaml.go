package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/unthrottle/unthrottle/internal/strictyaml"
	"github.com/unthrottle/unthrottle/internal/text"
)

// taken is a mistake, or none, as one of the configuration.
func taken(e *strictyaml.Error) error {
	switch {
	case e == nil:
		return nil
	case e.Key != "":
		return &ConfigError{e.Line, fmt.Sprintf("key %s %s", strictyaml.Shown(e.Key), e.Why)}
	}
	return &ConfigError{e.Line, e.Why}
}

// mapping reads a node whose keys are all known; each may stand once.
func mapping(n *yaml.Node, known map[string]func(*yaml.Node) error) error {
	var all error
	strictyaml.Members(n, func(e *strictyaml.Error) { all = together(all, taken(e)) }, func(key, value *yaml.Node) {
		if read, ok := known[key.Value]; ok {
			all = together(all, read(value))
		} else {
			all = together(all, taken(strictyaml.Unknown(key, slices.Sorted(maps.Keys(known)))))
		}
	})
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

// scalar reads a scalar, which may be empty.
func scalar(n *yaml.Node, to *string) error {
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		return wrong(n, "a text is wanted here")
	}
	text, mistake := strictyaml.Text(n, maxText)
	*to = text
	return taken(mistake)
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
	word, mistake := strictyaml.OneOf(n, allowed...)
	*to = word
	return taken(mistake)
}

func whole(n *yaml.Node, to *int, least, most int) error {
	number, mistake := strictyaml.Whole(n, least, most)
	*to = number
	return taken(mistake)
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
	d, mistake := strictyaml.Duration(n, least, most)
	*to = d
	return taken(mistake)
}

func truth(n *yaml.Node, to *bool) error {
	is, mistake := strictyaml.Truth(n)
	*to = is
	return taken(mistake)
}
