package policy

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// ConfigError is what is wrong with a configuration, and on which line.
type ConfigError struct {
	// Line counts from 1; 0: it is about no line.
	Line int
	// Why names the mistake and what is wanted instead.
	Why string
}

func (e *ConfigError) Error() string {
	if e.Line == 0 {
		return "config: " + e.Why
	}
	return fmt.Sprintf("config line %d: %s", e.Line, e.Why)
}

func wrong(n *yaml.Node, format string, args ...any) error {
	return &ConfigError{n.Line, fmt.Sprintf(format, args...)}
}

// Mistakes are all that is wrong with a configuration, by line.
type Mistakes []*ConfigError

// maxMistakes bounds how many mistakes are named.
const maxMistakes = 20

func (m Mistakes) Error() string {
	var lines []string
	for i, e := range m {
		if i == maxMistakes {
			lines = append(lines, "and more after these")
			break
		}
		lines = append(lines, e.Error())
	}
	return strings.Join(lines, "\n")
}

// Unwrap gives errors.As the first mistake.
func (m Mistakes) Unwrap() error { return m[0] }

// together adds the mistakes of two parts of a configuration. Each of them is nil, a *ConfigError or a Mistakes. One
// mistake alone stays a *ConfigError.
func together(a, b error) error {
	mistakes := append(mistakesIn(a), mistakesIn(b)...)
	slices.SortStableFunc(mistakes, func(a, b *ConfigError) int { return cmp.Compare(a.Line, b.Line) })
	mistakes = mistakes[:min(len(mistakes), maxMistakes+1)]
	switch len(mistakes) {
	case 0:
		return nil
	case 1:
		return mistakes[0]
	}
	return mistakes
}

// mistakesIn returns the mistakes of an error of this package's parser.
func mistakesIn(err error) Mistakes {
	if err == nil {
		return nil
	}
	if several := Mistakes(nil); errors.As(err, &several) {
		return slices.Clone(several)
	}
	if configError := new(ConfigError); errors.As(err, &configError) {
		return Mistakes{configError}
	}
	return Mistakes{{0, err.Error()}}
}
