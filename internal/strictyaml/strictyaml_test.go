package strictyaml

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

// mistakes are those of a file whose document is a mapping.
func mistakes(data string) (errors []Error) {
	n, wrong := Document([]byte(data), 100)
	if wrong != nil {
		return []Error{*wrong}
	}
	if n == nil {
		return nil
	}
	note := func(e *Error) {
		if e != nil {
			errors = append(errors, *e)
		}
	}
	Members(n, note, func(key, value *yaml.Node) {
		switch key.Value {
		case "text":
			_, wrong := Text(value, 5)
			note(wrong)
		case "cpus":
			_, wrong := Whole(value, 1, 8)
			note(wrong)
		case "for":
			_, wrong := Duration(value, time.Second, time.Minute)
			note(wrong)
		case "mode":
			_, wrong := OneOf(value, "a", "b")
			note(wrong)
		case "on":
			_, wrong := Truth(value)
			note(wrong)
		default:
			note(Unknown(key, []string{"cpus", "for"}))
		}
	})
	return errors
}

func TestMistakes(t *testing.T) {
	for data, want := range map[string][]Error{
		"":           nil,
		"# nothing":  nil,
		"text: abcd": nil,
		"cpus: 8\nfor: 1m\nmode: b\non: true\ntext: ''\n": nil,
		strings.Repeat("a", 101):                          {{0, "", "larger than 100 bytes"}},
		"- a":                                             {{1, "", "must be a mapping of keys to values"}},
		"cpus: 2\ncpus: 4\nmode: c":                       {{2, "cpus", "is there twice"}, {3, "", `"c": choose from a, b`}},
		"? [a]\n: 1":                                      {{1, "", "a key must be a word"}},
		"\ncpus: &x 2\nmode: *x": {
			{2, "cpus", "anchors and aliases are not read: write it out"}, {3, "mode", "anchors and aliases are not read: write it out"}},
		"hz: 2": {{1, "", `unknown key "hz": choose from cpus, for`}},
		"text: abcdef\ncpus: 9\nfor: 5\non: yes": {{1, "", "6 bytes, more than 5"},
			{2, "", `"9": give a whole number from 1 to 8`}, {3, "", `"5": give a time with its unit, such as 10ms`},
			{4, "", `"yes": give true or false`}},
		"for: 2m\ncpus: []\ntext: {}": {{1, "", "2m0s: give a time from 1s to 1m0s"},
			{2, "", "must be a single value"}, {3, "", "must be a single value"}},
		"for: []\non: []\nmode: []": {{1, "", "must be a single value"},
			{2, "", "must be a single value"}, {3, "", "must be a single value"}},
		"cpus: 1\n---\ncpus: 2": {{2, "", "more than one document"}},
	} {
		if got := mistakes(data); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %+v, want %+v", data, got, want)
		}
	}
	for data, line := range map[string]int{
		"a: [": 1, "a: 1\nb: \"b": 2, "a: 1\nb: \"b\x00\"": 2, "a: 1\n\nb: \xff": 3, "a: 1\nb: *who": 2, "a: 1\n---\nb: \"b": 3,
	} {
		got := mistakes(data)
		if len(got) != 1 || got[0].Line != line || !strings.HasPrefix(got[0].Why, "not YAML: ") {
			t.Errorf("%q: %+v, want line %d", data, got, line)
		}
	}
	if got := (&Error{2, "a\nb", "is there twice"}).Error(); got != `line 2: "a\nb": is there twice` {
		t.Error(got)
	}
	if got := Shown(strings.Repeat("x", 100)); len(got) != maxShown+5 {
		t.Error(got)
	}
}

// A mistake of any file is on one of its lines, and short.
func FuzzDocument(f *testing.F) {
	for _, data := range []string{"cpus: 2\ncpus: 4", "a: [", "a: *b", "a: \xff", "a: 1\n---\nb: 2", "? [a]\n: &x 1"} {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data string) {
		for _, e := range mistakes(data) {
			if e.Line < 0 || e.Line > 2+strings.Count(data, "\n")+strings.Count(data, "\r") || len(e.Why) > 1000 {
				t.Fatalf("%q: %+v", data, e)
			}
		}
	})
}
