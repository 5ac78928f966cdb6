// Package jsonout writes the JSON of every command in one form: an object that begins with its schema's name and version,
// indented by two blanks, with <, > and & as they are.
//
// The command schema prints the schemas. A version changes when a key is renamed, removed or means something else;
// keys that are added change nothing.
package jsonout

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

// Version is that of all documents.
const Version = 1

// Write writes v, which must become a JSON object, as the document of a schema such as "ls".
func Write(w io.Writer, schema string, v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	rest, ok := bytes.CutPrefix(b.Bytes(), []byte("{"))
	if !ok {
		return fmt.Errorf("the document %s is no JSON object", schema)
	}
	comma := ","
	if bytes.HasPrefix(bytes.TrimSpace(rest), []byte("}")) {
		comma, rest = "", append([]byte("\n"), bytes.TrimLeft(rest, " \n")...)
	}
	_, err := fmt.Fprintf(w, "{\n  \"schema\": %q,\n  \"version\": %d%s%s", schema, Version, comma, rest)
	return err
}
