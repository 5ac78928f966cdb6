package apply

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/unthrottle/unthrottle/internal/cure/txn/change"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/irq"
	"github.com/unthrottle/unthrottle/internal/kernel/schedpolicy"
	"github.com/unthrottle/unthrottle/internal/kernel/systemd/unitprop"
)

// withFiles adds, to each list that is set through systemd, the file behind it. systemd cannot empty the file while
// processes are inside (systemd#43846), so that the property alone would not be taken back; and it writes the file only
// after it has answered.
func (w world) withFiles(changes []change.Change) []change.Change {
	behind := map[string]string{unitprop.AllowedCPUs: cgroup.FileCPUs, unitprop.AllowedMemoryNodes: cgroup.FileMems}
	if w.version(cgroup.CPUSet) != cgroup.V2 {
		// On v1 systemd has no CPU sets.
		return changes
	}
	have := map[change.Key]bool{}
	for _, c := range changes {
		have[c.Key()] = true
	}
	all := slices.Clone(changes)
	for _, c := range changes {
		file := behind[c.File]
		if c.Kind != change.KindSystemd || file == "" {
			continue
		}
		c.Kind, c.Controller, c.File, c.Unit, c.From = change.KindFile, cgroup.CPUSet, file, "", ""
		if !have[c.Key()] {
			all = append(all, c)
		}
	}
	return all
}

// normalise fills in what a kind implies and refuses two changes of one setting.
func normalise(changes []change.Change) ([]change.Change, error) {
	all := make([]change.Change, 0, len(changes))
	seen := map[change.Key]bool{}
	for _, c := range changes {
		if c.Op == "" {
			c.Op = change.OpSet
		}
		switch c.Kind {
		case change.KindCgroup:
			c.From, c.To = "", change.Present
		case change.KindTask:
			c.Path = c.To
			if c.From == "" || c.To == "" {
				return nil, errors.New("moving processes needs the cgroup they leave and the one they enter")
			}
		case change.KindSubtree:
			c.File = cgroup.FileSubtreeControl
			if !strings.HasPrefix(c.To, "+") {
				return nil, fmt.Errorf("cgroup %q: controllers are enabled only, not %q", c.Path, c.To)
			}
		case change.KindSystemd:
			c.Controller = ""
			if c.Unit == "" || c.Path == "" {
				return nil, fmt.Errorf("property %s needs its unit and the unit's cgroup", c.File)
			}
		case change.KindIRQ:
			if !irq.IsFile(c.File) {
				return nil, fmt.Errorf("%.80q is no file of an interrupt's CPUs", c.File)
			}
			c.Controller, c.Path = "", "/"
		case change.KindSched:
			if _, one := schedpolicy.Thread(c.File); !one && c.File != schedpolicy.Rest || c.Path == "" {
				return nil, fmt.Errorf("%.80q names no threads", c.File)
			}
			c.Controller = cgroup.CPU
		case change.KindFile:
		default:
			return nil, fmt.Errorf("cgroup %q: unknown kind of change %q", c.Path, c.Kind)
		}
		if seen[c.Key()] {
			return nil, fmt.Errorf("%s is changed twice in one transaction", c.Key())
		}
		seen[c.Key()] = true
		all = append(all, c)
	}
	return all, nil
}
