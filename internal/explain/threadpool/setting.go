package threadpool

import (
	"errors"
	"fmt"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Setting is a figure that a runtime decides when it starts, and how it is told to decide otherwise.
type Setting struct {
	Key string
	// Runtime is the name of the runtime, or of the library in it, for people, Of the runtime's key.
	Runtime, Of string
	// Pool is the key of the library's pool that the figure is of; "": it is the runtime's own. Each is the flag that says how
	// many of its threads fit each CPU; "": fit does.
	Pool, Each string
	// Decides names the figure, such as "processors" or "gc_threads".
	Decides string
	// Env is the environment variable that sets it. With Option, the variable holds several options and this is one. ""
	// is a figure that has none.
	Env, Option string
	// Argument is the argument that sets it, for programs whose file has one of these names.
	Argument string
	Program  []string
	// Why says why this value fits; Source is where the row comes from; Unverified says that it was not tried.
	Why, Source string
	Unverified  bool
	// Live says that the runtime itself follows a limit that changes, unless it was told a value.
	Live bool
	// Collectors are the collectors of a JVM that have the figure; nil: all.
	Collectors []string
	// Since and Before are the versions of the runtime that have the figure, and have it no longer: "3.13"; "": all.
	Since, Before string

	written string
	rule    *expr // of the runtime: limit and host to n
	size    *expr // n to the figure
	fit     *expr // limit and host to what fits; with follows, to that setting's figure
	follows bool

	// reads is how the runtime reads a value.
	reads reader
	// spellings are all that the runtime takes, the strongest first; with passesOver one that it ignores makes way for the next.
	// otherwise are those that give it in another measure.
	spellings, otherwise []Spelling
	passesOver           bool
	// zero is what 0 and less mean; nil: that the runtime decides by itself. most is the most that the runtime makes of it; nil: no bound.
	zero, most *expr
}

// settingEntry has the format of a setting in pools.yaml.
type settingEntry struct {
	Key        string   `yaml:"key"`
	Runtime    string   `yaml:"runtime"`
	Decides    string   `yaml:"decides"`
	Env        string   `yaml:"env"`
	Option     string   `yaml:"option"`
	Argument   string   `yaml:"argument"`
	Program    []string `yaml:"program"`
	As         string   `yaml:"as"`
	Reads      string   `yaml:"reads"`
	Formula    string   `yaml:"formula"`
	Fit        string   `yaml:"fit"`
	Pool       string   `yaml:"pool"`    // whose formula it is
	Library    string   `yaml:"library"` // that has the pool
	Each       string   `yaml:"each"`
	Follows    string   `yaml:"follows"` // the setting whose figure is its n, when told
	Why        string   `yaml:"why"`
	Live       bool     `yaml:"live"`
	Source     string   `yaml:"source"`
	Unverified bool     `yaml:"unverified"`
	Collectors []string `yaml:"collectors"`
	Since      string   `yaml:"since"`
	Before     string   `yaml:"before"`
	Spellings  []string `yaml:"spellings"`
	Otherwise  []string `yaml:"otherwise"`
	PassesOver bool     `yaml:"passes_over"`
	Zero       string   `yaml:"zero"`
	Most       string   `yaml:"most"`
}

// addSetting checks an entry and appends it.
func (t *Table) addSetting(e settingEntry) (err error) {
	s := Setting{Key: e.Key, Of: e.Runtime, Decides: e.Decides, Env: e.Env, Option: e.Option, Argument: e.Argument, Program: e.Program,
		Why: e.Why, Source: e.Source, Unverified: e.Unverified, Live: e.Live, Collectors: e.Collectors, Since: e.Since,
		Before: e.Before, written: e.As}
	runtime, known := t.runtime(e.Runtime)
	switch {
	case e.Key == "" || slices.ContainsFunc(t.settings, func(o Setting) bool { return o.Key == e.Key }):
		return errors.New("needs a unique key")
	case !known:
		return fmt.Errorf("runtime %q is not in the table", e.Runtime)
	case e.Decides == "":
		return errors.New("needs decides")
	case e.Option != "" && e.Env == "" || e.Argument != "" && (e.Env != "" || len(e.Program) == 0):
		return errors.New("needs env for its option, and program for its argument")
	}
	for _, name := range e.Program {
		if _, err := path.Match(name, ""); err != nil {
			return fmt.Errorf("program %q: %w", name, err)
		}
	}
	s.Runtime, s.rule = runtime.Name, runtime.rule
	if e.Follows != "" {
		return t.addFollower(s, e)
	}
	if e.Env+e.Argument+e.Before == "" || e.Why == "" || e.Source == "" {
		return errors.New("needs env or argument, why and source")
	}
	for _, version := range []string{e.Since, e.Before} {
		if _, ok := ordered(version); !ok && version != "" {
			return fmt.Errorf("%.20q is no version such as 3.13", version)
		}
	}
	if err := t.figureOf(&s, e); err != nil {
		return err
	}
	if err := s.spell(e); err != nil {
		return err
	}
	t.settings = append(t.settings, s)
	return nil
}

// figureOf adds what the runtime or its library decides by itself, and what fits.
func (t *Table) figureOf(s *Setting, e settingEntry) (err error) {
	if e.Library+e.Pool+e.Each != "" {
		row, ok := t.Row(e.Pool)
		if !ok || row.size == nil || e.Library == "" || e.Formula != "" {
			return errors.New("needs library, and a pool with a formula")
		}
		s.Runtime, s.Pool, s.Each, s.size = e.Library, e.Pool, e.Each, row.size
		if s.Each != "" {
			return nil
		}
	} else if s.size, err = parseFormula(e.Formula, "n"); err != nil {
		return err
	}
	if s.fit, err = parseFormula(e.Fit, "limit", "host"); err != nil {
		return fmt.Errorf("fit: %w", err)
	}
	return nil
}

// spell adds the ways to give a setting, and what the runtime makes of figures.
func (s *Setting) spell(e settingEntry) (err error) {
	if s.reads = readers[e.Reads]; s.reads == nil && s.CanBeTold() {
		return fmt.Errorf("reads: %.20q is no rule of reads.go", e.Reads)
	}
	s.passesOver = e.PassesOver
	if len(e.Spellings) == 0 && s.Name() != "" {
		e.Spellings = []string{s.Name()}
	}
	for _, list := range []struct {
		from []string
		to   *[]Spelling
	}{{e.Spellings, &s.spellings}, {e.Otherwise, &s.otherwise}} {
		for _, text := range list.from {
			spelling, err := parseSpelling(text)
			if err != nil {
				return err
			}
			*list.to = append(*list.to, spelling)
		}
	}
	if !slices.ContainsFunc(s.spellings, func(spelling Spelling) bool { return spelling.Name() == s.Name() }) && s.CanBeTold() {
		return fmt.Errorf("spellings: %s is not among them", s.Name())
	}
	if e.Zero != "" {
		if s.zero, err = parseFormula(e.Zero, "n", "host"); err != nil {
			return fmt.Errorf("zero: %w", err)
		}
	}
	if e.Most != "" {
		if s.most, err = parseFormula(e.Most, "n", "host"); err != nil {
			return fmt.Errorf("most: %w", err)
		}
	}
	return nil
}

// addFollower adds a figure that follows another setting, by the formula of a pool.
func (t *Table) addFollower(s Setting, e settingEntry) error {
	i := slices.IndexFunc(t.settings, func(o Setting) bool { return o.Key == e.Follows })
	p := slices.IndexFunc(t.rows, func(r Row) bool { return r.Key == e.Pool })
	if i < 0 || t.settings[i].follows || p < 0 || t.rows[p].size == nil {
		return errors.New("follows a setting above it, by the formula of a pool")
	}
	s.follows = true
	if setting := t.rows[p].Setting; strings.HasPrefix(setting, "-") {
		s.Option = setting
		for _, spelling := range t.settings[i].spellings { // an option of the same runtime comes by the same ways
			if spelling.Option != "" {
				s.spellings = append(s.spellings, Spelling{spelling.Variable, setting})
			}
		}
	}
	s.size, s.fit, s.reads = t.rows[p].size, t.settings[i].fit, t.settings[i].reads
	s.Live, s.Source, s.Unverified = false, t.rows[p].Source, t.rows[p].Unverified
	t.settings = append(t.settings, s)
	return nil
}

// Settings are all of them, in the table's order.
func (t *Table) Settings() []Setting { return slices.Clone(t.settings) }

// Decided is the figure that the runtime decides by itself, under a limit in CPUs (0 or less: none) where it may run on host
// CPUs.
func (s Setting) Decided(limitCPUs float64, host int) int {
	return s.figure(float64(visibleCPUs(s.rule, limitCPUs, host)))
}

// Told is the figure that follows from a number of processors that the runtime was told.
func (s Setting) Told(processors int) int { return s.figure(float64(processors)) }

func (s Setting) figure(n float64) int {
	whole, _ := count(math.Floor(s.size.eval(map[string]float64{"n": n})))
	return max(whole, 1)
}

// Fits is the figure that fits the limit.
func (s Setting) Fits(limitCPUs float64, host int) int {
	n := visibleCPUs(s.fit, limitCPUs, host)
	if s.follows {
		return s.Told(n)
	}
	return n
}

// FitsEach is the figure that fits the limit with so many threads for each CPU.
func (s Setting) FitsEach(limitCPUs, each float64) int {
	n, _ := count(math.Floor(limitCPUs * each))
	return max(1, n)
}

// usualCollector is the one of a JVM that does not say which it has.
const usualCollector = "G1"

// IsOf reports whether a process of the setting's runtime has the figure, in a version of the runtime. A version that is not
// known ("") counts as a new one.
func (s Setting) IsOf(p *Process, version string) bool {
	at, known := ordered(version)
	since, _ := ordered(s.Since)
	before, _ := ordered(s.Before)
	if known && at < since || s.Before != "" && (!known || at >= before) {
		return false
	}
	collector := usualCollector
	if p.JVM != nil && p.JVM.Collector != "" {
		collector = p.JVM.Collector
	}
	return s.Collectors == nil || slices.Contains(s.Collectors, collector)
}

// ordered is a version's major and minor number as one that grows with them.
func ordered(version string) (n int, ok bool) {
	var major, minor int
	if _, err := fmt.Sscanf(version, "%d.%d", &major, &minor); err != nil || major < 0 || minor < 0 || max(major, minor) >= 1000 {
		return 0, false
	}
	return 1000*major + minor, true
}

// CanBeTold reports whether the figure has a variable or an argument of its own.
func (s Setting) CanBeTold() bool { return s.Env+s.Argument != "" }

// Follows reports whether the figure has no setting of its own here, because it follows the runtime's processors.
func (s Setting) Follows() bool { return s.follows }

// Written is how a figure is given to the setting: "2", or "2:2".
func (s Setting) Written(n int) string {
	if s.written == "" {
		return strconv.Itoa(n)
	}
	return strings.ReplaceAll(s.written, "{n}", strconv.Itoa(n))
}

// Read is the figure that the runtime makes of a value, under a limit in CPUs where it may run on host CPUs; false: it is none, and
// the runtime decides by itself.
func (s Setting) Read(value string, limitCPUs float64, host int) (int, bool) {
	if s.reads == nil {
		return 0, false
	}
	cpus := visibleCPUs(s.rule, limitCPUs, host)
	n, what := s.reads(value, cpus, max(host, 1))
	ok := what == counted
	figures := map[string]float64{"n": float64(cpus), "host": float64(host)}
	if ok && n <= 0 && s.zero != nil {
		n, ok = count(s.zero.eval(figures))
	}
	if ok && s.most != nil {
		most, _ := count(s.most.eval(figures))
		n = min(n, max(most, 1))
	}
	return n, ok && n > 0 && n <= maxThreads
}

// ignores reports whether the runtime decides as if the value were not there.
func (s Setting) ignores(value string) bool {
	if s.reads == nil {
		return false
	}
	_, what := s.reads(value, 1, 1)
	return what == ignored
}

// Name is the variable or flag, for people.
func (s Setting) Name() string {
	switch {
	case s.Argument != "":
		return s.Argument
	case s.Option != "":
		return strings.TrimSpace(s.Env + " " + s.Option)
	}
	return s.Env
}

// RuntimesOf are the keys of the runtimes that a process has, by the evidence of its executable and libraries.
func (t *Table) RuntimesOf(p *Process) []string {
	var keys []string
	for _, r := range t.runtimes {
		if v, _ := r.when.judge(p, false); v == met {
			keys = append(keys, r.Key)
		}
	}
	return keys
}
