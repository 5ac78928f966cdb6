package systemd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/unthrottle/unthrottle/internal/kernel/systemd/unitprop"
)

// controlDir is where systemd keeps what was set until the next boot, a file for each unit and property.
const controlDir = "/run/systemd/system.control"

// reloadTime bounds a reload, in which systemd reads every unit anew.
const reloadTime = 90 * time.Second

// dropInNames are the files' names after the property's key in unit files, which differs for times.
var dropInNames = map[string]string{unitprop.AllowedCPUs: "AllowedCPUs", unitprop.AllowedMemoryNodes: "AllowedMemoryNodes",
	unitprop.CPUQuotaPerSecUSec: "CPUQuota", unitprop.CPUQuotaPeriodUSec: "CPUQuotaPeriodSec", unitprop.CPUWeight: "CPUWeight",
	unitprop.CPUShares: "CPUShares"}

// Forget removes what Set left in /run for properties that have their former values again, by unit and property. Without it a
// later change of the unit's own file would have no effect before the next boot. systemd reads its units anew once; a property
// that then has another value than the given one, which others had set until the next boot, is set to it again. It does
// nothing where nothing is left.
func (m *Manager) Forget(ctx context.Context, values map[string]map[string]string) error {
	var errs []error
	removed := map[string]map[string]string{}
	for unit, properties := range values {
		for property, value := range properties {
			if unitType(unit) == "" || dropInNames[property] == "" {
				continue
			}
			err := os.Remove(filepath.Join(m.control, unit+".d", "50-"+dropInNames[property]+".conf"))
			switch {
			case errors.Is(err, fs.ErrNotExist):
				continue
			case err != nil:
				errs = append(errs, fmt.Errorf("systemd keeps it until the next boot: %w; remove that file, then "+
					"systemctl daemon-reload", err))
				continue
			}
			if removed[unit] == nil {
				removed[unit] = map[string]string{}
			}
			removed[unit][property] = value
		}
		_ = os.Remove(filepath.Join(m.control, unit+".d")) // fails where other properties are in it
	}
	if len(removed) == 0 {
		return errors.Join(errs...)
	}
	reloading, cancel := context.WithTimeout(ctx, reloadTime)
	defer cancel()
	if err := m.conn.ReloadContext(reloading); err != nil {
		errs = append(errs, &Error{Op: "reload the units after a drop-in was removed", Err: named(err)})
	}
	for unit, properties := range removed {
		for property, value := range properties {
			now, err := m.Get(ctx, unit, property)
			if err == nil && now != value {
				err = m.Set(ctx, unit, map[string]string{property: value}, true)
			}
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
