package placefile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/strictyaml"
	"github.com/unthrottle/unthrottle/placement"
	"github.com/unthrottle/unthrottle/topology"
)

// currentJSON is what is read of a placement; further keys are passed over.
type currentJSON struct {
	Containers []struct {
		Name         string   `json:"name"`
		CPUs         *string  `json:"cpus"`
		Class        string   `json:"class"`
		Wanted       *float64 `json:"wanted"`
		Dedicated    *string  `json:"dedicated"`
		Idle         string   `json:"idle"`
		FullCores    bool     `json:"full_cores"`
		IdleSiblings bool     `json:"idle_siblings"`
		Lends        bool     `json:"lends"`
		Stays        bool     `json:"stays"`
	} `json:"containers"`
	Shared string `json:"shared"`
}

// Current reads a placement as JSON: which container has which CPUs. What it
// leaves out of a container is told by its CPUs: it is exclusive, and wants as
// many as it has. Shared is the shared pool it tells of. Errors are *Error.
func Current(file string, data []byte) (containers []placement.Container, shared cpuset.CPUSet, err error) {
	if len(data) > MaxFile {
		return nil, shared, &Error{file, 0, "", fmt.Sprintf("larger than %d bytes", MaxFile)}
	}
	var in currentJSON
	if err := json.Unmarshal(data, &in); err != nil {
		return nil, shared, jsonError(file, data, err)
	}
	if in.Containers == nil {
		return nil, shared, &Error{file, 1, "containers", "is missing: give what `unthrottle place --json` prints"}
	}
	if shared, err = topology.ParseList(in.Shared); err != nil {
		return nil, shared, &Error{file, keyLine(data, "shared"), "shared", err.Error()}
	}
	out, seen := []placement.Container{}, map[string]bool{}
	for i, c := range in.Containers {
		wrong := func(key, why string) error {
			return &Error{file, entryLine(data, "containers", i, key), fmt.Sprintf("containers[%d].%s", i, key), why}
		}
		if c.Name == "" || len(c.Name) > maxName {
			return nil, shared, wrong("name", fmt.Sprintf("%s: give a name of 1 to %d bytes", strictyaml.Shown(c.Name), maxName))
		}
		if seen[c.Name] {
			return nil, shared, wrong("name", strictyaml.Shown(c.Name)+" is there twice")
		}
		seen[c.Name] = true
		if c.CPUs == nil {
			return nil, shared, wrong("cpus", "is missing: give a list such as \"0-3,8\"")
		}
		cpus, err := topology.ParseList(*c.CPUs)
		if err != nil {
			return nil, shared, wrong("cpus", err.Error())
		}
		p := placement.Container{Name: c.Name, Class: placement.Class(c.Class), Current: cpus, SharesIdle: c.Lends,
			FullCores: c.FullCores, IdleSiblings: c.IdleSiblings}
		if c.Stays {
			p.Immovable = "asked to stay"
		}
		if p.Idle, err = topology.ParseList(c.Idle); err != nil {
			return nil, shared, wrong("idle", err.Error())
		}
		switch p.Class {
		case "":
			p.Class = placement.Exclusive
		case placement.Exclusive, placement.Hybrid, placement.Floating:
		case placement.Secondary:
			p.Current = cpuset.New()
		default:
			return nil, shared, wrong("class", strictyaml.Shown(c.Class)+": choose from exclusive, hybrid, floating, secondary")
		}
		if c.Dedicated != nil && p.Class != placement.Floating {
			if p.Current, err = topology.ParseList(*c.Dedicated); err != nil {
				return nil, shared, wrong("dedicated", err.Error())
			}
		} else if p.Class == placement.Hybrid {
			p.Current = cpus.Difference(shared)
		}
		p.CPUs = max(float64(p.Current.Size()), 0.001)
		if c.Wanted != nil {
			p.CPUs = *c.Wanted
		}
		out = append(out, p)
	}
	return out, shared, nil
}

// Merge gives the containers of a placement the wishes that events tell of them:
// a placement that another program made knows only their CPUs.
func Merge(current []placement.Container, shared cpuset.CPUSet, events []placement.Event) {
	for i := range current {
		c := &current[i]
		for _, e := range events {
			if e.Name != c.Name || e.Leaves {
				continue
			}
			was := *c
			*c = e.Container
			c.Current, c.Idle = was.Current, was.Idle
			switch {
			case c.Class == placement.Secondary:
				c.Current = cpuset.New()
			case c.Class == placement.Hybrid && was.Class != placement.Hybrid:
				c.Current = was.Current.Difference(shared)
			}
			break
		}
	}
}

// entryLine is the line of a key of one entry of a list, or of the entry itself; 0
// where it cannot be told. JSON is YAML enough for a parser that knows lines.
func entryLine(data []byte, of string, i int, key string) int {
	list := valueOf(parsed(data), of)
	if list == nil || i >= len(list.Content) {
		return 0
	}
	if value := valueOf(list.Content[i], key); value != nil {
		return value.Line
	}
	return list.Content[i].Line
}

// keyLine is the line of a key of the whole; 0 where it cannot be told.
func keyLine(data []byte, key string) int {
	if value := valueOf(parsed(data), key); value != nil {
		return value.Line
	}
	return 0
}

func parsed(data []byte) *yaml.Node {
	var doc yaml.Node
	// YAML allows no tabs for indentation; JSON does.
	if err := yaml.Unmarshal(bytes.ReplaceAll(data, []byte("\t"), []byte(" ")), &doc); err != nil || len(doc.Content) != 1 {
		return nil
	}
	return doc.Content[0]
}

func valueOf(n *yaml.Node, key string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

// jsonError names the line or the key.
func jsonError(file string, data []byte, err error) *Error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return &Error{file, line(data, syntax.Offset), "", "not JSON: " + err.Error()}
	case errors.As(err, &kind):
		return &Error{file, line(data, kind.Offset), kind.Field,
			fmt.Sprintf("%s stands where %s belongs", article(kind.Value), jsonName(kind.Type))}
	}
	return &Error{file, 0, "", "not JSON: " + err.Error()}
}

// jsonName is what JSON calls a type of Go.
func jsonName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Slice:
		return "an array"
	case reflect.String:
		return "a string"
	case reflect.Int, reflect.Int64, reflect.Uint64:
		return "a whole number"
	case reflect.Bool:
		return "true or false"
	case reflect.Float64:
		return "a number"
	}
	return "a " + t.String()
}

// article puts "a" or "an" before what encoding/json found.
func article(found string) string {
	if found != "" && strings.ContainsRune("aeiou", rune(found[0])) {
		return "an " + found
	}
	return "a " + found
}

// line is the line on which a byte is.
func line(data []byte, offset int64) int {
	n := 1
	for _, b := range data[:min(max(offset, 0), int64(len(data)))] {
		if b == '\n' {
			n++
		}
	}
	return n
}
