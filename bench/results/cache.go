package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/unthrottle/unthrottle/internal/experiment/capacity"
)

// measured is one part as it is kept: the page is made from all that are there,
// so that parts can be measured one at a time. One of its results is set.
type measured struct {
	Part   string           `json:"part"`
	Scale  string           `json:"scale"`
	Host   string           `json:"host"`
	Begun  time.Time        `json:"begun"`
	Took   time.Duration    `json:"took_ns"`
	Failed string           `json:"failed,omitempty"` // why there is no result
	Shape  *capacity.Result `json:"shape,omitempty"`
	// Predicted has the forecasts of the shape's rows, from a recording at a load.
	// NotPredicted says why there are none.
	Recorded     float64          `json:"recorded_load_rps,omitempty"`
	Predicted    *predicted       `json:"foretold,omitempty"`
	NotPredicted string           `json:"not_foretold,omitempty"`
	Spiral       *capacity.Spiral `json:"spiral,omitempty"`
	Price        *capacity.Price  `json:"price,omitempty"`
	Repeats      int              `json:"repeats"`
	Steps        int              `json:"steps"`
	Step         time.Duration    `json:"step_ns"`
}

func keptName(dir, part string) string { return filepath.Join(dir, part+".json") }

// recordedName is the recording that a part's forecasts are made of.
func recordedName(dir, part string) string { return filepath.Join(dir, part+".rec") }

// keep writes a part down, whole or not at all.
func keep(dir string, m measured) error {
	text, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		return fmt.Errorf("part %s: %w", m.Part, err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return replaceFile(keptName(dir, m.Part), append(text, '\n'))
}

// kept is every part that was measured, in the parts' usual order.
func kept(dir string) ([]measured, error) {
	var all []measured
	for _, part := range parts() {
		text, err := os.ReadFile(keptName(dir, part))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		var m measured
		if err := json.Unmarshal(text, &m); err != nil || m.Part != part {
			return nil, fmt.Errorf("%s: not a part that was kept (%v): remove it, and it is measured again", keptName(dir, part), err)
		}
		all = append(all, m)
	}
	return all, nil
}

// replaceFile puts text into a file through another beside it.
func replaceFile(name string, text []byte) error {
	f, err := os.CreateTemp(filepath.Dir(name), ".results-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // of no effect once it has its name
	_, err = f.Write(text)
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}
