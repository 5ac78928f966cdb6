package policy

import (
	"path"
	"time"

	"go.yaml.in/yaml/v3"
)

// Export is where the agent keeps rows for questions over many hosts: package fleet.
type Export struct {
	// Dir is the folder; "": none are kept.
	Dir string
	// Cluster and Node are names for the rows; "" as the node: the host's name.
	Cluster, Node string
}

// exportSlot is the stretch of time that a row is of, which cannot be chosen: rows of all hosts must be of the same ones.
const exportSlot = 5 * time.Minute

func (e *Export) read(n *yaml.Node) error {
	err := mapping(n, map[string]func(*yaml.Node) error{
		"dir": func(n *yaml.Node) error {
			if err := words(n, &e.Dir); err != nil {
				return err
			}
			if !path.IsAbs(e.Dir) {
				return wrong(n, "dir %.60q is not an absolute path", e.Dir)
			}
			return nil
		},
		"cluster": func(n *yaml.Node) error { return words(n, &e.Cluster) },
		"node":    func(n *yaml.Node) error { return words(n, &e.Node) },
		"every":   func(n *yaml.Node) error { var d time.Duration; return duration(n, &d, exportSlot, exportSlot) },
	})
	if err == nil && e.Dir == "" {
		return wrong(n, "export without dir: name the folder for the rows")
	}
	return err
}
