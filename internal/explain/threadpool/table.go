package threadpool

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"go.yaml.in/yaml/v3"
)

//go:embed pools.yaml
var known []byte

// Known returns the table that comes with the program: pools.yaml. Each call decodes it again.
func Known() *Table {
	t, err := decode(known)
	if err != nil {
		panic("pools.yaml, which is part of this program: " + err.Error()) // a test decodes it
	}
	return t
}

// Table has the known thread pools, and how runtimes count CPUs.
type Table struct {
	rows     []Row
	runtimes []runtimeCPUs
	settings []Setting
	// strangers are names that no row may match. They and the examples of the rows are for tests.
	strangers []string
}

// Bounds of a table.
const (
	maxTable = 1 << 20 // bytes
	maxRows  = 2000
)

// file has the format of pools.yaml.
type file struct {
	Runtimes []struct {
		Key    string   `yaml:"key"`
		Name   string   `yaml:"name"`
		CPUs   string   `yaml:"cpus"`
		When   evidence `yaml:"when"`
		Since  string   `yaml:"since"`
		Until  string   `yaml:"until"`
		Source string   `yaml:"source"`
	} `yaml:"runtimes"`
	Settings []settingEntry `yaml:"settings"`
	Pools    []struct {
		Key           string    `yaml:"key"`
		Names         []string  `yaml:"names"`
		Library       string    `yaml:"library"`
		Class         Class     `yaml:"class"`
		Helps         string    `yaml:"helps"`
		Runtime       string    `yaml:"runtime"`
		Setting       string    `yaml:"setting"`
		OtherSettings []string  `yaml:"other_settings"`
		Least         int       `yaml:"least"`
		Formula       string    `yaml:"formula"`
		Default       string    `yaml:"default"`
		Fit           string    `yaml:"fit"`
		Live          bool      `yaml:"live"`
		LiveHow       string    `yaml:"live_how"`
		When          evidence  `yaml:"when"`
		Generic       bool      `yaml:"generic"`
		Source        string    `yaml:"source"`
		Unverified    bool      `yaml:"unverified"`
		Processes     bool      `yaml:"processes"`
		Since         string    `yaml:"since"`
		Until         string    `yaml:"until"`
		Examples      []example `yaml:"examples"`
	} `yaml:"pools"`
	// Strangers are names that no row may match.
	Strangers []string `yaml:"strangers"`
}

// example is a real thread of a row. Tests match the row's patterns against it.
type example struct {
	Thread string   `yaml:"thread"` // its full name; "": only the comm is known, or the name is the program's
	Comm   string   `yaml:"comm"`   // as measured; "": not measured
	Exe    string   `yaml:"exe"`
	Maps   []string `yaml:"maps"`
	Args   []string `yaml:"args"`
	Holds  []string `yaml:"holds"`
	Go     string   `yaml:"go"`
}

// decode reads a table: YAML as in pools.yaml. The error names the wrong row and says why.
func decode(data []byte) (*Table, error) {
	f, err := decodeFile(data)
	if err != nil {
		return nil, err
	}
	t := &Table{}
	for _, r := range f.Runtimes {
		rule, err := parseFormula(r.CPUs, "limit", "host")
		if err != nil {
			return nil, fmt.Errorf("runtime %s: cpus: %w", r.Key, err)
		}
		if _, twice := t.runtime(r.Key); r.Key == "" || twice {
			return nil, fmt.Errorf("runtime %q: needs a unique key", r.Key)
		}
		if err := r.When.check(); err != nil {
			return nil, fmt.Errorf("runtime %s: when: %w", r.Key, err)
		}
		t.runtimes = append(t.runtimes, runtimeCPUs{Key: r.Key, Name: r.Name, Rule: r.CPUs, Since: r.Since, Until: r.Until,
			Source: r.Source, rule: rule, when: r.When})
	}
	for _, p := range f.Pools {
		row := Row{Key: p.Key, Names: p.Names, Library: p.Library, Class: p.Class, Helps: p.Helps, Runtime: p.Runtime, Setting: p.Setting,
			OtherSettings: p.OtherSettings, Least: p.Least, Formula: p.Formula, Default: p.Default, Live: p.Live,
			LiveHow: p.LiveHow, Source: p.Source, Unverified: p.Unverified, Processes: p.Processes, Since: p.Since, Until: p.Until,
			when: p.When, generic: p.Generic, examples: p.Examples}
		if err := t.compile(&row, p.Fit); err != nil {
			return nil, fmt.Errorf("pool %q: %w", p.Key, err)
		}
		t.rows = append(t.rows, row)
	}
	for _, e := range f.Settings {
		if err := t.addSetting(e); err != nil {
			return nil, fmt.Errorf("setting %q: %w", e.Key, err)
		}
	}
	t.strangers = f.Strangers
	return t, nil
}

func decodeFile(data []byte) (*file, error) {
	if len(data) > maxTable {
		return nil, fmt.Errorf("a pool table of %d bytes: at most %d", len(data), maxTable)
	}
	d := yaml.NewDecoder(bytes.NewReader(data))
	d.KnownFields(true)
	var f file
	if err := d.Decode(&f); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("a pool table is YAML as in pools.yaml: %.300w", err)
	}
	if len(f.Pools) > maxRows || len(f.Runtimes) > maxRows || len(f.Settings) > maxRows {
		return nil, fmt.Errorf("%d pools, %d runtimes, %d settings: at most %d", len(f.Pools), len(f.Runtimes), len(f.Settings), maxRows)
	}
	return &f, nil
}

// compile parses the formulas and patterns of a row, and returns an error if one is wrong.
func (t *Table) compile(row *Row, fit string) (err error) {
	classes := []Class{IO, App, Blocking, Background, VM}
	switch {
	case row.Key == "" || slices.ContainsFunc(t.rows, func(r Row) bool { return r.Key == row.Key }):
		return errors.New("needs a unique key")
	case !slices.Contains(classes, row.Class):
		return fmt.Errorf("class %q: known are %v", row.Class, classes)
	case row.Library == "" || row.Source == "" || len(row.Names) == 0:
		return errors.New("needs names, library and source")
	case row.Formula == "" && row.Default == "":
		return errors.New("needs formula or default")
	case row.Helps != "" && !slices.ContainsFunc(t.rows, func(r Row) bool { return r.Key == row.Helps }):
		return fmt.Errorf("helps %q: no row above has that key", row.Helps)
	case row.Least < 0 || row.Least > math.MaxInt32:
		return fmt.Errorf("least %d: needs a count", row.Least)
	}
	if row.Runtime != "" {
		runtime, ok := t.runtime(row.Runtime)
		if !ok {
			return fmt.Errorf("runtime %q is not in the table", row.Runtime)
		}
		row.rule = runtime.rule
		if row.when.none() {
			row.when = runtime.when
		}
	}
	if err := row.when.check(); err != nil {
		return fmt.Errorf("when: %w", err)
	}
	for _, name := range row.Names {
		form, err := parsePattern(name)
		if err != nil {
			return err
		}
		row.generic = row.generic || form.program
		row.forms = append(row.forms, form)
	}
	if row.generic && row.when.none() {
		return errors.New("a name that any program may use needs evidence: when")
	}
	if row.Formula != "" {
		if row.size, err = parseFormula(row.Formula, "n"); err != nil {
			return err
		}
	}
	if fit != "" {
		if row.fit, err = parseFormula(fit, "limit", "threads", "widest"); err != nil {
			return fmt.Errorf("fit: %w", err)
		}
	}
	return nil
}

// Row returns the row of a key.
func (t *Table) Row(key string) (Row, bool) {
	if i := slices.IndexFunc(t.rows, func(r Row) bool { return r.Key == key }); i >= 0 {
		return t.rows[i], true
	}
	return Row{}, false
}

func (t *Table) runtime(key string) (runtimeCPUs, bool) {
	for _, r := range t.runtimes {
		if r.Key == key {
			return r, true
		}
	}
	return runtimeCPUs{}, false
}

// allRows returns all rows, in the table's order.
func (t *Table) allRows() []Row { return slices.Clone(t.rows) }
