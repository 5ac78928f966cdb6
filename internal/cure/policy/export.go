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
	// KeepFor and KeepBytes bound what this node has in the folder: older files go.
	KeepFor   time.Duration
	KeepBytes int64
}

// Bounds on KeepFor.
const (
	LeastKeepFor = 24 * time.Hour
	MostKeepFor  = 3660 * 24 * time.Hour
)

// DefaultExport is what is kept where the file does not say: a month, and a GiB. 200 containers make 260 MB a month.
func DefaultExport() Export { return Export{KeepFor: 30 * 24 * time.Hour, KeepBytes: 1 << 30} }

// SetKeepSize reads a number of MiB, such as 1024MiB.
func (e *Export) SetKeepSize(size string) error { return mebibytes(size, &e.KeepBytes) }

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
		"cluster":   func(n *yaml.Node) error { return words(n, &e.Cluster) },
		"node":      func(n *yaml.Node) error { return words(n, &e.Node) },
		"keep_for":  func(n *yaml.Node) error { return duration(n, &e.KeepFor, LeastKeepFor, MostKeepFor) },
		"keep_size": set(e.SetKeepSize),
		"every":     func(n *yaml.Node) error { var d time.Duration; return duration(n, &d, exportSlot, exportSlot) },
	})
	if err == nil && e.Dir == "" {
		return wrong(n, "export without dir: name the folder for the rows")
	}
	return err
}
