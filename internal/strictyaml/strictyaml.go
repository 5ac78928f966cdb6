// Package strictyaml reads YAML that people write by hand, and says what is wrong with it and on which line. It is a leaf.
//
// # Problem
//
// A YAML decoder passes over a key that it does not know, takes the last of two keys, and names no line for a wrong value. A
// mistake in a file then looks like a setting.
//
// # Rule
//
// A file is one [Document]. The keys of a mapping are words, each is there once and none has an anchor ([Members]); what a
// key may be is its reader's ([Unknown]). A value is read as what it is to be, within bounds: [Whole], [Duration], [OneOf],
// [Truth]. Each mistake is an [Error] with its line. What a file says is repeated escaped and cut ([Shown]).
//
// # Worked example
//
//	cpus: 2
//	cpus: 4
//
// has the mistake {2, "cpus", "is there twice"}.
//
// # Limits
//
// The parser names no line for some mistakes, such as an alias without its anchor. [Document] looks for it in the text.
package strictyaml

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// Error is what is wrong with a file.
type Error struct {
	Line int    // from 1; 0: the whole file
	Key  string // of a mapping, where the key itself is wrong
	Why  string
}

func (e *Error) Error() string {
	where := ""
	if e.Line > 0 {
		where = "line " + strconv.Itoa(e.Line) + ": "
	}
	if e.Key != "" {
		where += Shown(e.Key) + ": "
	}
	return where + e.Why
}

// Wrong is a mistake at a node.
func Wrong(n *yaml.Node, format string, args ...any) *Error {
	return &Error{Line: n.Line, Why: fmt.Sprintf(format, args...)}
}

// maxShown bounds the text of a file that an error repeats, in bytes.
const maxShown = 60

// Shown is a text of a file as errors repeat it: escaped, and never long.
func Shown(s string) string {
	if len(s) > maxShown {
		s = s[:maxShown] + "..."
	}
	return strconv.Quote(s)
}

// Document is the one document of a file of at most so many bytes; nil where the file is empty.
func Document(data []byte, most int) (*yaml.Node, *Error) {
	if len(data) > most {
		return nil, &Error{Why: fmt.Sprintf("larger than %d bytes", most)}
	}
	var doc, second yaml.Node
	d := yaml.NewDecoder(bytes.NewReader(data))
	if err := d.Decode(&doc); errors.Is(err, io.EOF) || err == nil && len(doc.Content) != 1 {
		return nil, nil
	} else if err != nil {
		return nil, notYAML(data, err)
	}
	switch err := d.Decode(&second); {
	case errors.Is(err, io.EOF):
	case err != nil:
		return nil, notYAML(data, err)
	default:
		return nil, Wrong(&second, "more than one document")
	}
	return doc.Content[0], nil
}

// notYAML is an error of the YAML parser, which has no field for the line.
func notYAML(data []byte, err error) *Error {
	why := strings.TrimPrefix(fmt.Sprintf("%.300s", err.Error()), "yaml: ")
	at := lineWithout(data, why)
	if rest, ok := strings.CutPrefix(why, "line "); ok {
		if digits, text, ok := strings.Cut(rest, ": "); ok {
			if n, err := strconv.Atoi(digits); err == nil {
				at, why = n, text
			}
		}
	}
	return &Error{Line: at, Why: "not YAML: " + why}
}

// lineWithout finds the line of an error for which the parser names none: an
// alias without its anchor, bytes that are no text, or what is on the first line
// (parser.fail, decode.go, and yaml_parser_set_reader_error, readerc.go).
func lineWithout(data []byte, why string) int {
	if rest, ok := strings.CutPrefix(why, "unknown anchor '"); ok {
		name, _, _ := strings.Cut(rest, "'")
		return lineOf(data, bytes.Index(data, []byte("*"+name)))
	}
	if strings.Contains(why, "control characters") || strings.Contains(why, "UTF-8") {
		return lineOf(data, firstNoText(data))
	}
	return 1
}

// lineOf is the line on which a byte is.
func lineOf(data []byte, at int) int { return 1 + bytes.Count(data[:max(at, 0)], []byte("\n")) }

// firstNoText is where the first control character or broken UTF-8 begins; 0 if there is none.
func firstNoText(data []byte) int {
	for at := 0; at < len(data); {
		r, size := utf8.DecodeRune(data[at:])
		if r == utf8.RuneError && size == 1 || unicode.IsControl(r) && !strings.ContainsRune("\t\n\r\u0085", r) {
			return at
		}
		at += size
	}
	return 0
}

// Members calls do with each key of a mapping and its value, in the file's order, and wrong with what is no such pair.
func Members(n *yaml.Node, wrong func(*Error), do func(key, value *yaml.Node)) {
	if n.Kind != yaml.MappingNode {
		wrong(Wrong(n, "must be a mapping of keys to values"))
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch {
		case key.Kind != yaml.ScalarNode:
			wrong(Wrong(key, "a key must be a word"))
		case value.Kind == yaml.AliasNode || value.Anchor != "" || key.Anchor != "":
			wrong(&Error{key.Line, key.Value, "anchors and aliases are not read: write it out"})
		case seen[key.Value]:
			wrong(&Error{key.Line, key.Value, "is there twice"})
		default:
			seen[key.Value] = true
			do(key, value)
		}
	}
}

// Unknown is the mistake that a key is none of those that are known here.
func Unknown(key *yaml.Node, known []string) *Error {
	return Wrong(key, "unknown key %s: choose from %s", Shown(key.Value), strings.Join(known, ", "))
}

// Scalar is a single value as it is written.
func Scalar(n *yaml.Node) (string, *Error) {
	if n.Kind != yaml.ScalarNode {
		return "", Wrong(n, "must be a single value")
	}
	return n.Value, nil
}

// Text is a single value of at most so many bytes.
func Text(n *yaml.Node, most int) (string, *Error) {
	text, wrong := Scalar(n)
	if wrong == nil && len(text) > most {
		wrong = Wrong(n, "%d bytes, more than %d", len(text), most)
	}
	return text, wrong
}

// Whole is a whole number within bounds.
func Whole(n *yaml.Node, least, most int) (int, *Error) {
	text, wrong := Scalar(n)
	if wrong != nil {
		return 0, wrong
	}
	v, err := strconv.Atoi(text)
	if err != nil || v < least || v > most {
		return 0, Wrong(n, "%s: give a whole number from %d to %d", Shown(text), least, most)
	}
	return v, nil
}

// Duration is a time within bounds.
func Duration(n *yaml.Node, least, most time.Duration) (time.Duration, *Error) {
	text, wrong := Scalar(n)
	if wrong != nil {
		return 0, wrong
	}
	v, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return 0, Wrong(n, "%s: give a time with its unit, such as 10ms", Shown(text))
	case v < least || v > most:
		return 0, Wrong(n, "%v: give a time from %v to %v", v, least, most)
	}
	return v, nil
}

// OneOf is one of a few words.
func OneOf(n *yaml.Node, words ...string) (string, *Error) {
	text, wrong := Scalar(n)
	if wrong == nil && !slices.Contains(words, text) {
		wrong = Wrong(n, "%s: choose from %s", Shown(text), strings.Join(words, ", "))
	}
	return text, wrong
}

// Truth is true or false.
func Truth(n *yaml.Node) (bool, *Error) {
	text, wrong := Scalar(n)
	if wrong == nil && text != "true" && text != "false" {
		wrong = Wrong(n, "%s: give true or false", Shown(text))
	}
	return text == "true", wrong
}
