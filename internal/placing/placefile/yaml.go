package placefile

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// yamlError is an error of the YAML parser, which has no field for the line.
func yamlError(file string, data []byte, err error) *Error {
	why := strings.TrimPrefix(fmt.Sprintf("%.300s", err.Error()), "yaml: ")
	at := lineWithout(data, why)
	if rest, ok := strings.CutPrefix(why, "line "); ok {
		if digits, text, ok := strings.Cut(rest, ": "); ok {
			if n, err := strconv.Atoi(digits); err == nil {
				at, why = n, text
			}
		}
	}
	return &Error{file, at, "", "not YAML: " + why}
}

// lineWithout finds the line of an error for which the parser names none: an
// alias without its anchor, bytes that are no text, or what is on the first line
// (parser.fail, decode.go, and yaml_parser_set_reader_error, readerc.go).
func lineWithout(data []byte, why string) int {
	if rest, ok := strings.CutPrefix(why, "unknown anchor '"); ok {
		name, _, _ := strings.Cut(rest, "'")
		return line(data, int64(bytes.Index(data, []byte("*"+name))))
	}
	if strings.Contains(why, "control characters") || strings.Contains(why, "UTF-8") {
		return line(data, int64(firstNoText(data)))
	}
	return 1
}

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
