package placefile

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/unthrottle/unthrottle/topology"
)

// Machine reads a machine as `unthrottle topology --json` prints it. Errors are
// *Error, with the line of the entry that is wrong.
func Machine(file string, data []byte) (topology.Machine, error) {
	var m topology.Machine
	if len(data) > MaxFile {
		return m, &Error{file, 0, "", fmt.Sprintf("larger than %d bytes: no machine needs that much", MaxFile)}
	}
	err := json.Unmarshal(data, &m)
	if err == nil {
		return m, nil
	}
	var entries struct {
		CPUs      []json.RawMessage `json:"cpus"`
		NUMANodes []json.RawMessage `json:"numa_nodes"`
	}
	if err := json.Unmarshal(data, &entries); err != nil {
		return m, jsonError(file, data, err)
	}
	at := map[string]map[int]int{"cpus": {}, "numa_nodes": {}} // list -> id -> the last entry of it
	for i, raw := range entries.CPUs {
		var c topology.CPU
		if err := json.Unmarshal(raw, &c); err != nil {
			return m, &Error{file, entryLine(data, "cpus", i, ""), fmt.Sprintf("cpus[%d]", i), inWords(err)}
		}
		at["cpus"][c.ID] = i
	}
	for i, raw := range entries.NUMANodes {
		var n topology.NUMANode
		if err := json.Unmarshal(raw, &n); err != nil {
			return m, &Error{file, entryLine(data, "numa_nodes", i, ""), fmt.Sprintf("numa_nodes[%d]", i), inWords(err)}
		}
		at["numa_nodes"][n.ID] = i
	}
	var wrong *topology.EntryError
	if errors.As(err, &wrong) {
		return m, &Error{file, entryLine(data, wrong.List, at[wrong.List][wrong.ID], "id"), "", wrong.Why}
	}
	return m, &Error{file, max(1, keyLine(data, "cpus")), "", strings.TrimPrefix(err.Error(), "topology: ")}
}

// inWords says without Go's words what stands in the wrong place.
func inWords(err error) string {
	var kind *json.UnmarshalTypeError
	if !errors.As(err, &kind) {
		return err.Error()
	}
	text := fmt.Sprintf("%s stands where %s belongs", article(kind.Value), jsonName(kind.Type))
	if kind.Field != "" {
		text = kind.Field + ": " + text
	}
	return text
}
