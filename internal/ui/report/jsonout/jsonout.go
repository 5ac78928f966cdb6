// Package jsonout writes the JSON of every command in one form: indented by two
// blanks, with <, > and & as they are.
package jsonout

import (
	"encoding/json"
	"io"
)

// Write writes v as JSON.
func Write(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}
