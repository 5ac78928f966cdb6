package placefile

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v3"

	"github.com/unthrottle/unthrottle/internal/strictyaml"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/placement"
	"github.com/unthrottle/unthrottle/topology"
)

// Bounds of a file.
const (
	MaxFile    = 4 << 20
	MaxEvents  = 100_000
	maxName    = 253 // of a Kubernetes object; long enough for a path
	mostWanted = topology.MaxCPUs
)

// Error is what is wrong with a file, and where.
type Error struct {
	File string
	Line int    // from 1; 0: the whole file
	Key  string // such as containers[2].cpus
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

// Containers reads a YAML list of containers in the order of arrival; there
// tells which names are on the node before the first of them. Errors are *Error.
func Containers(file string, data []byte, there func(name string) bool) ([]placement.Event, error) {
	root, wrong := strictyaml.Document(data, MaxFile)
	if wrong != nil {
		return nil, &Error{file, wrong.Line, "", wrong.Why}
	}
	if root == nil {
		return nil, nil
	}
	if root.Kind != yaml.SequenceNode {
		return nil, &Error{file, root.Line, "", "must be a list of containers, each \"- {name: NAME, cpus: NUMBER}\""}
	}
	if len(root.Content) > MaxEvents {
		return nil, &Error{file, root.Content[MaxEvents].Line, "",
			fmt.Sprintf("%d entries: at most %d are read", len(root.Content), MaxEvents)}
	}
	here := map[string]bool{}
	var events []placement.Event
	for i, n := range root.Content {
		d := entry{file: file, at: fmt.Sprintf("[%d]", i)}
		e := d.read(n)
		known, seen := here[e.Name]
		if !seen && there != nil {
			known = there(e.Name)
		}
		switch {
		case d.err != nil:
		case e.Leaves && !known:
			d.fail(n.Line, "name", "%s leaves, but it is not there", strictyaml.Shown(e.Name))
		case !e.Leaves && seen && known:
			d.fail(n.Line, "name", "%s is there already: it has to leave before it comes again", strictyaml.Shown(e.Name))
		}
		if d.err != nil {
			return nil, d.err
		}
		here[e.Name] = !e.Leaves
		events = append(events, e)
	}
	return events, nil
}

// entry reads one entry of the list; the first error stays.
type entry struct {
	file, at string
	err      *Error
}

func (d *entry) fail(line int, key, format string, args ...any) {
	if d.err != nil {
		return
	}
	at := d.at
	if key != "" {
		at += "." + key
	}
	d.err = &Error{d.file, line, at, fmt.Sprintf(format, args...)}
}

// wrong takes a mistake, or none, of a key's value; the entry's own for "".
func (d *entry) wrong(key string) func(*strictyaml.Error) {
	return func(e *strictyaml.Error) {
		if e != nil {
			d.fail(e.Line, cmp.Or(key, e.Key), "%s", e.Why)
		}
	}
}

// Keys of an entry.
var keys = []string{"name", "cpus", "class", "full_cores", "idle_siblings", "lends", "stays", "quota", "leaves"}

func (d *entry) read(n *yaml.Node) placement.Event {
	var e placement.Event
	line := map[string]int{}
	strictyaml.Members(n, d.wrong(""), func(key, value *yaml.Node) {
		switch {
		case !slices.Contains(keys, key.Value):
			d.wrong("")(strictyaml.Unknown(key, keys))
		case value.Kind != yaml.ScalarNode:
			d.fail(value.Line, key.Value, "must be a single value")
		default:
			line[key.Value] = key.Line
			d.value(&e, key.Value, value)
		}
	})
	switch {
	case d.err != nil:
	case line["name"] == 0:
		d.fail(n.Line, "", "name is missing")
	case e.Leaves && len(line) > 2:
		d.fail(line["leaves"], "leaves", "who leaves is named, and nothing more: leave out the other keys")
	case !e.Leaves && line["cpus"] == 0:
		d.fail(n.Line, "", "cpus is missing")
	case e.FullCores && e.IdleSiblings:
		d.fail(line["idle_siblings"], "idle_siblings", "with idle siblings its cores are its own anyway: leave out full_cores")
	case (e.FullCores || e.IdleSiblings) && (e.Class == placement.Floating || e.Class == placement.Secondary):
		d.fail(line["class"], "class", "%s containers have no cores of their own: leave out full_cores and idle_siblings", e.Class)
	}
	return e
}

func (d *entry) value(e *placement.Event, key string, n *yaml.Node) {
	switch key {
	case "name":
		if e.Name = n.Value; e.Name == "" || len(e.Name) > maxName {
			d.fail(n.Line, key, "%s: give a name of 1 to %d bytes", strictyaml.Shown(n.Value), maxName)
		}
	case "cpus":
		e.CPUs = d.number(key, n)
	case "quota":
		q := d.number(key, n)
		e.Quota = &q
	case "class":
		class, wrong := strictyaml.OneOf(n, string(placement.Exclusive), string(placement.Hybrid),
			string(placement.Floating), string(placement.Secondary))
		d.wrong(key)(wrong)
		e.Class = placement.Class(class)
	case "full_cores":
		e.FullCores = d.truth(key, n)
	case "idle_siblings":
		e.IdleSiblings = d.truth(key, n)
	case "lends":
		e.SharesIdle = d.truth(key, n)
	case "stays":
		if d.truth(key, n) {
			e.Immovable = "asked to stay"
		}
	case "leaves":
		e.Leaves = d.truth(key, n)
	}
}

func (d *entry) number(key string, n *yaml.Node) float64 {
	v, err := text.ParseDecimal(n.Value)
	if err != nil || v < 1e-3 || v > mostWanted {
		d.fail(n.Line, key, "%s: give a number of CPUs from 0.001 to %d", strictyaml.Shown(n.Value), mostWanted)
	}
	return v
}

func (d *entry) truth(key string, n *yaml.Node) bool {
	is, wrong := strictyaml.Truth(n)
	d.wrong(key)(wrong)
	return is
}
