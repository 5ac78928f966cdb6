package scenario

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/strictyaml"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/topology"
)

// Error is an error in a scenario, with its place.
type Error struct {
	File string
	Line int    // from 1; 0: the whole file
	Key  string // such as cgroups.app.quota
	Why  string
}

func (e *Error) Error() string {
	where := e.File
	if e.Line > 0 {
		where += ":" + strconv.Itoa(e.Line)
	}
	if e.Key != "" {
		where += ": " + e.Key
	}
	return where + ": " + e.Why
}

// decoder reads nodes into values until the first error. It keeps that error and skips the rest.
type decoder struct {
	file  string
	lines map[string]int // line of each key
	err   *Error
}

func (d *decoder) fail(line int, key, format string, args ...any) {
	if d.err == nil {
		d.err = &Error{File: d.file, Line: line, Key: key, Why: fmt.Sprintf(format, args...)}
	}
}

// failAt is fail at a key, or at its nearest ancestor that is in the file.
func (d *decoder) failAt(key, format string, args ...any) {
	for at := key; ; {
		if line, ok := d.lines[at]; ok {
			d.fail(line, key, format, args...)
			return
		}
		i := strings.LastIndexByte(at, '.')
		if i < 0 {
			d.fail(0, key, format, args...)
			return
		}
		at = at[:i]
	}
}

// read fills one value from a node.
type read func(n *yaml.Node, key string)

// fields of a mapping by key; a key that ends in "!" is required.
type fields map[string]read

// take keeps a mistake, or none, of a key.
func (d *decoder) take(key string, e *strictyaml.Error) {
	if e != nil {
		d.fail(e.Line, key, "%s", e.Why)
	}
}

// members calls do for each key of a mapping, in the file's order, until the first error.
func (d *decoder) members(n *yaml.Node, key string, do func(name string, at, value *yaml.Node)) {
	wrong := func(e *strictyaml.Error) {
		if e.Key != "" {
			d.take(join(key, strictyaml.Shown(e.Key)), e)
		} else {
			d.take(key, e)
		}
	}
	if d.err != nil {
		return
	}
	strictyaml.Members(n, wrong, func(at, value *yaml.Node) {
		if d.err == nil {
			do(at.Value, at, value)
		}
	})
}

func join(key, name string) string {
	if key == "" {
		return name
	}
	return key + "." + name
}

// object reads a mapping with known keys.
func (d *decoder) object(n *yaml.Node, key string, known fields) {
	if _, ok := d.lines[key]; !ok {
		d.lines[key] = n.Line
	}
	seen := map[string]bool{}
	d.members(n, key, func(name string, at, value *yaml.Node) {
		as, ok := known[name]
		if !ok {
			as, ok = known[name+"!"]
		}
		if !ok || strings.HasSuffix(name, "!") {
			d.take(key, strictyaml.Unknown(at, names(known)))
			return
		}
		seen[name] = true
		inner := join(key, name)
		d.lines[inner] = at.Line
		as(value, inner)
	})
	for _, name := range slices.Sorted(maps.Keys(known)) {
		if required, ok := strings.CutSuffix(name, "!"); ok && !seen[required] && d.err == nil {
			d.fail(n.Line, key, "%s is missing", required)
		}
	}
}

func names(known fields) []string {
	var all []string
	for name := range known {
		all = append(all, strings.TrimSuffix(name, "!"))
	}
	slices.Sort(all)
	return all
}

func (d *decoder) scalar(n *yaml.Node, key string) string {
	v, wrong := strictyaml.Scalar(n)
	d.take(key, wrong)
	return v
}

// maxText bounds a free text, in bytes.
const maxText = 1000

func (d *decoder) text(into *string) read {
	return func(n *yaml.Node, key string) {
		v, wrong := strictyaml.Text(n, maxText)
		d.take(key, wrong)
		*into = v
	}
}

func (d *decoder) integer(into *int, least, most int) read {
	return func(n *yaml.Node, key string) {
		v, wrong := strictyaml.Whole(n, least, most)
		d.take(key, wrong)
		*into = v
	}
}

// number reads a number above 0.
func (d *decoder) number(into *float64, most float64) read {
	return func(n *yaml.Node, key string) {
		v, err := text.ParseDecimal(d.scalar(n, key))
		if d.err == nil && (err != nil || v < 1e-6 || v > most) {
			d.fail(n.Line, key, "%s: give a number above 0, at most %g", strictyaml.Shown(n.Value), most)
		}
		*into = v
	}
}

func (d *decoder) duration(into *time.Duration, least, most time.Duration) read {
	return func(n *yaml.Node, key string) {
		v, wrong := strictyaml.Duration(n, least, most)
		d.take(key, wrong)
		*into = v
	}
}

// choice reads one of a few words.
func (d *decoder) choice(into *string, words ...string) read {
	return func(n *yaml.Node, key string) {
		v, wrong := strictyaml.OneOf(n, words...)
		d.take(key, wrong)
		*into = v
	}
}

func (d *decoder) cpus(into *cpuset.CPUSet) read {
	return d.list(into, "CPUs", "0-3,8")
}

func (d *decoder) mems(into *cpuset.CPUSet) read {
	return d.list(into, "memory nodes", "0 or 0-1")
}

// list reads numbers in the kernel's list format.
func (d *decoder) list(into *cpuset.CPUSet, what, such string) read {
	return func(n *yaml.Node, key string) {
		text := d.scalar(n, key)
		if d.err != nil {
			return
		}
		set, err := topology.ParseList(text)
		if err != nil || set.IsEmpty() {
			d.fail(n.Line, key, "%s: give %s as the kernel writes them, such as %s", strictyaml.Shown(text), what, such)
		}
		*into = set
	}
}

// distribution reads "5ms", {exponential: 5ms} or {uniform: [1ms, 9ms]}.
func (d *decoder) distribution(into *Duration) read {
	return func(n *yaml.Node, key string) {
		if n.Kind != yaml.MappingNode {
			into.Shape = Constant
			d.duration(&into.Mean, minTime, maxTime)(n, key)
			return
		}
		d.object(n, key, fields{
			"exponential": func(n *yaml.Node, key string) {
				into.Shape = Exponential
				d.duration(&into.Mean, minTime, maxTime)(n, key)
			},
			"uniform": func(n *yaml.Node, key string) {
				into.Shape = Uniform
				if n.Kind != yaml.SequenceNode || len(n.Content) != 2 {
					d.fail(n.Line, key, "give the shortest and the longest, such as [1ms, 9ms]")
					return
				}
				d.duration(&into.Low, minTime, maxTime)(n.Content[0], key)
				d.duration(&into.High, into.Low, maxTime)(n.Content[1], key)
			},
		})
		if d.err == nil && len(n.Content) != 2 {
			d.fail(n.Line, key, "choose one of exponential, uniform")
		}
	}
}

// maxName bounds a name, as goodName does.
const maxName = 63

var goodName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$`)

func (d *decoder) name(at *yaml.Node, key string) {
	if !goodName.MatchString(at.Value) {
		d.fail(at.Line, key, "%s: a name has 1 to 63 of the characters A-Z a-z 0-9 _ . - and begins with a letter or "+
			"digit", strictyaml.Shown(at.Value))
	}
}
