package policy

import "go.yaml.in/yaml/v3"

// Flight is what the agent keeps for later questions.
type Flight struct {
	// Probe: the kernel's scheduling events are counted; without it there are no widths and no flight recorder.
	Probe bool
	// RecordAbove is the stopped time per second, as a share, above which the agent records a container by itself;
	// 1: never.
	RecordAbove float64
}

// DefaultFlight is what holds when the file does not say.
func DefaultFlight() Flight { return Flight{Probe: true, RecordAbove: 0.1} }

func (f *Flight) read(n *yaml.Node) error {
	return mapping(n, map[string]func(*yaml.Node) error{
		"probe":        func(n *yaml.Node) error { return truth(n, &f.Probe) },
		"record_above": func(n *yaml.Node) error { return share(n, &f.RecordAbove) },
	})
}
