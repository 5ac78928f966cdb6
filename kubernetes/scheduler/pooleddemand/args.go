package pooleddemand

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// Args are the plugin's arguments in a profile.
type Args struct {
	// Risk is the share of the time for which a node's pods may want more CPUs than it has, above 0 and below 0.5; 0.001 by
	// default.
	Risk float64 `json:"risk"`
	// MaxRequestsRatio is the most that a node's requests of CPU may add up to, as a multiple of what it can allocate, 1 to 10.
	// At 1, the default, the plugin refuses no node and only scores.
	MaxRequestsRatio float64 `json:"maxRequestsRatio"`
	// Reserve is the share of each node's CPUs that measured demand may not use, 0 to 0.9; a tenth by default. Demand differs from what
	// it was the days before.
	Reserve float64 `json:"reserve"`
	// MaxAge is how old a node's newest row may be; 15 minutes by default, at least 5.
	MaxAge metav1.Duration `json:"maxAge"`
	// Scoring is LeastWanted, the default, or MostWanted, which uses few nodes.
	Scoring string `json:"scoring"`
}

// Values of Args.Scoring.
const (
	LeastWanted = "LeastWanted"
	MostWanted  = "MostWanted"
)

const (
	usualRisk    = 0.001
	usualReserve = 0.1
	usualAge     = 15 * time.Minute
	leastAge     = 5 * time.Minute // a slot
	mostRatio    = 10
	mostReserve  = 0.9
)

// argsOf reads the arguments, with defaults for what is not there.
func argsOf(given runtime.Object) (Args, error) {
	a := Args{Risk: usualRisk, MaxRequestsRatio: 1, Reserve: usualReserve, MaxAge: metav1.Duration{Duration: usualAge},
		Scoring: LeastWanted}
	if given == nil {
		return a, nil
	}
	unknown, ok := given.(*runtime.Unknown)
	if !ok {
		return a, fmt.Errorf("plugin %s: its arguments are of type %T; give an object in pluginConfig", Name, given)
	}
	if len(unknown.Raw) > 0 {
		text, err := yaml.YAMLToJSON(unknown.Raw) // JSON is YAML
		if err != nil {
			return a, fmt.Errorf("plugin %s: args: %w", Name, err)
		}
		d := json.NewDecoder(bytes.NewReader(text))
		d.DisallowUnknownFields()
		if err := d.Decode(&a); err != nil && !errors.Is(err, io.EOF) {
			return a, fmt.Errorf("plugin %s: args: %w", Name, err)
		}
	}
	switch {
	case !(a.Risk > 0 && a.Risk < 0.5):
		return a, fmt.Errorf("plugin %s: args.risk: %v; give a share of the time above 0 and below 0.5", Name, a.Risk)
	case !(a.MaxRequestsRatio >= 1 && a.MaxRequestsRatio <= mostRatio):
		return a, fmt.Errorf("plugin %s: args.maxRequestsRatio: %v; give 1 (off) to %d", Name, a.MaxRequestsRatio, mostRatio)
	case !(a.Reserve >= 0 && a.Reserve <= mostReserve):
		return a, fmt.Errorf("plugin %s: args.reserve: %v; give a share of a node's CPUs, 0 to %v", Name, a.Reserve, mostReserve)
	case a.MaxAge.Duration < leastAge:
		return a, fmt.Errorf("plugin %s: args.maxAge: %v; give at least %v, the time between two rows", Name, a.MaxAge.Duration, leastAge)
	case a.Scoring != LeastWanted && a.Scoring != MostWanted:
		return a, fmt.Errorf("plugin %s: args.scoring: %q; give %s or %s", Name, a.Scoring, LeastWanted, MostWanted)
	}
	return a, nil
}
