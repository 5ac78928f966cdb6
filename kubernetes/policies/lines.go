package policies

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/unthrottle/unthrottle/internal/cure/policy"
)

// lines is a YAML file with the field of the policy that each line is of.
type lines struct {
	text   bytes.Buffer
	fields []string
}

func (l *lines) add(field, line string) {
	l.text.WriteString(line)
	l.text.WriteByte('\n')
	l.fields = append(l.fields, field)
}

func (l *lines) bytes() []byte { return l.text.Bytes() }

// rule writes a rule with a key on each line, so that a mistake's line is a field. The namespace of a ThrottlePolicy is part of
// its rules' match, whatever they say.
func (l *lines) rule(field string, o Object, mode policy.Mode, given map[string]any) {
	l.add(field, "- policy: "+quoted(o.Key().String()))
	l.add("spec.mode", "  mode: "+quoted(string(mode)))
	match, ok := given["match"].(map[string]any)
	if given["match"] == nil {
		ok = true
	}
	switch {
	case !ok: // for the parser to refuse
		l.value(field+".match", "  ", "match", given["match"])
	case o.Kind == ThrottlePolicy:
		inner := maps.Clone(match)
		if inner == nil {
			inner = map[string]any{}
		}
		inner["namespace"] = o.Namespace
		l.value(field+".match", "  ", "match", inner)
	case len(match) > 0:
		l.value(field+".match", "  ", "match", match)
	}
	for _, key := range slices.Sorted(maps.Keys(given)) {
		if key != "match" {
			l.value(field+"."+shownKey(key), "  ", key, given[key])
		}
	}
}

// shownKey is a key in a path of fields.
func shownKey(key string) string {
	if strings.ContainsFunc(key, func(r rune) bool { return r < ' ' || r > '~' }) || len(key) > 60 {
		return quoted(key)[:min(len(quoted(key)), 62)]
	}
	return key
}

// value writes one key. Objects have their keys on lines of their own; lists stay on one.
func (l *lines) value(field, indent, key string, value any) {
	inner, ok := value.(map[string]any)
	if !ok || len(inner) == 0 {
		l.add(field, indent+quoted(key)+": "+flow(value))
		return
	}
	l.add(field, indent+quoted(key)+":")
	for _, k := range slices.Sorted(maps.Keys(inner)) {
		l.value(field+"."+shownKey(k), indent+"  ", k, inner[k])
	}
}

// flow is a value on one line. A number or a truth value is as it is, all else is a quoted text.
func flow(value any) string {
	switch v := value.(type) {
	case nil:
		return "null"
	case string:
		return quoted(v)
	case bool:
		return strconv.FormatBool(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case []any:
		parts := make([]string, len(v))
		for i := range v {
			parts[i] = flow(v[i])
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case map[string]any:
		var parts []string
		for _, k := range slices.Sorted(maps.Keys(v)) {
			parts = append(parts, quoted(k)+": "+flow(v[k]))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	return quoted(fmt.Sprint(value))
}

// quoted is a text as YAML's double quotes write it, of printable ASCII alone: nothing in it ends the line or the quotes.
func quoted(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r >= ' ' && r <= '~':
			b.WriteRune(r)
		case r > 0xffff:
			fmt.Fprintf(&b, `\U%08x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
