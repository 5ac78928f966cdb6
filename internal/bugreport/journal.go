package bugreport

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// Fields of the journal's records, by what is kept of them. Numbers and truth values are always kept.
var (
	keptFields = map[string]bool{"txn": true, "time": true, "created": true, "remedy": true, "kind": true, "controller": true, "file": true,
		"op": true, "verdict": true, "until": true, "at": true, "of": true, "txns": true, "also": true,
		"replaced": true, "members_controller": true, "figure": true}
	textFields = map[string]bool{"error": true, "reason": true, "why": true, "note": true, "by": true}
	pathFields = map[string]bool{"path": true, "target": true, "members_path": true}
	nameFields = map[string]bool{"name": true, "unit": true, "boot": true}
	// settingValue is the value of a setting that says nothing private: numbers, lists of CPUs, and the kernel's words.
	settingValue = regexp.MustCompile(`^([-0-9., \n]|max|idle|root|member|isolated|[+-](cpu|cpuset))*$`)
)

// JournalNames are the names of containers in a journal, and the components of their paths: texts may name a container that
// has ended.
func JournalNames(data []byte) []string {
	var names []string
	for line := range bytes.Lines(data) {
		var record map[string]any
		if json.Unmarshal(line, &record) == nil {
			names = appendNames(names, "", record)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// appendNames appends those of a field.
func appendNames(names []string, key string, v any) []string {
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			names = appendNames(names, name, value)
		}
	case []any:
		for _, value := range v {
			names = appendNames(names, key, value)
		}
	case string:
		switch {
		case pathFields[key]:
			names = append(names, strings.Split(v, "/")...)
		case key == "name", key == "unit":
			names = append(names, v)
		}
	}
	return names
}

// Journal is the last records of a journal, without names and users. Lines that are no record are counted, not kept.
func (r *Redactor) Journal(data []byte, last int) string {
	lines := bytes.Split(bytes.TrimSpace(data), []byte("\n"))
	left := max(0, len(lines)-last)
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	damaged := 0
	for _, line := range lines[left:] {
		var record map[string]any
		d := json.NewDecoder(bytes.NewReader(line))
		d.UseNumber()
		if d.Decode(&record) != nil {
			damaged++
			continue
		}
		_ = e.Encode(r.field("", record)) // maps of strings and numbers can be written
	}
	_ = e.Encode(map[string]int{"earlier_records": left, "lines_that_are_no_record": damaged})
	return out.String()
}

// field is what is kept of a field's value.
func (r *Redactor) field(key string, v any) any {
	switch v := v.(type) {
	case map[string]any:
		kept := make(map[string]any, len(v))
		for name, value := range v {
			if key == "parameters" {
				value = setting(value)
			} else {
				value = r.field(name, value)
			}
			kept[name] = value
		}
		return kept
	case []any:
		kept := make([]any, len(v))
		for i, value := range v {
			kept[i] = r.field(key, value)
		}
		return kept
	case string:
		switch {
		case keptFields[key]:
			return v
		case key == "by": // "unthrottle fix, user root for alice"
			program, _, _ := strings.Cut(v, ",")
			return program
		case textFields[key]:
			return r.Text(v)
		case pathFields[key]:
			return r.Path(v)
		case nameFields[key]:
			return r.Name(v)
		case settingValue.MatchString(v):
			return v
		}
		return r.Name(v)
	}
	return v
}

// setting keeps a setting's value, or leaves it out.
func setting(v any) any {
	if text, ok := v.(string); ok && !settingValue.MatchString(text) && !safeParameter.MatchString(text) {
		return leftOut
	}
	return v
}

// safeParameter is a remedy's parameter, such as 60ms, true or hybrid.
var safeParameter = regexp.MustCompile(`^[0-9.]+(ns|us|µs|ms|s)?$|^(true|false|exclusive|hybrid|floating|secondary|sched_ext|cpuset|auto)$`)
