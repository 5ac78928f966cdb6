package apply

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/systemd/unitprop"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/txn/change"
)

const (
	// maxUnitDeviation is by how much, relative to the larger, a unit's quota and its cgroup's may differ: systemd rounds
	// quota and period. leastDeviation, in CPUs, is the kernel's smallest quota in its longest period.
	maxUnitDeviation = 0.01
	leastDeviation   = float64(cgroup.MinQuota) / float64(cgroup.MaxPeriod)
	// realizeTime is how long systemd may take to write a property that was just set to the file.
	realizeTime = 200 * time.Millisecond
)

// UnitDiffers says that a unit's quota is not the one of its cgroup: another program wrote the file directly. To set the
// property would lose the file's value, and a rollback could not restore it.
type UnitDiffers struct {
	Unit, Path string
	// UnitCPUs and FileCPUs are the two limits in CPUs; infinite is none.
	UnitCPUs, FileCPUs float64
}

// Error names both and the way out.
func (e *UnitDiffers) Error() string {
	return fmt.Sprintf("unit %q: its CPUQuota allows %s, the files of its cgroup %q %s: another program wrote the files directly, and "+
		"their values would be lost; make both agree (systemctl set-property --runtime %q CPUQuota=%s, or CPUQuota=%s for "+
		"what the unit says), then plan again", e.Unit, cpusText(e.UnitCPUs), e.Path, cpusText(e.FileCPUs), e.Unit,
		percent(e.FileCPUs), percent(e.UnitCPUs))
}

func cpusText(n float64) string {
	if math.IsInf(n, 1) {
		return "any number of CPUs"
	}
	return text.CPUs(n)
}

// percent is a limit in systemd's notation, which has an empty one for none.
func percent(cpus float64) string {
	if math.IsInf(cpus, 1) {
		return ""
	}
	return strconv.FormatFloat(math.Round(cpus*1e4)/100, 'f', -1, 64) + "%"
}

// possible refuses to set the quota of a unit whose cgroup has another one.
func (w unitProperty) possible(ctx context.Context, c change.Change) error {
	if c.File != unitprop.CPUQuotaPerSecUSec {
		return nil
	}
	err := w.compareUnit(ctx, c)
	if !errors.As(err, new(*UnitDiffers)) {
		return err
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(realizeTime):
	}
	return w.compareUnit(ctx, c)
}

func (w unitProperty) compareUnit(ctx context.Context, c change.Change) error {
	limit, err := cgroup.ReadLimit(w.FS, c.Path)
	if errors.Is(err, cgroup.ErrNoCgroup) || errors.Is(err, cgroup.ErrNoController) {
		return nil // there is no file to differ
	}
	if err != nil {
		return err
	}
	text, err := w.read(ctx, c.Key())
	if err != nil {
		return err
	}
	unit, file := math.Inf(1), math.Inf(1)
	if text != unitprop.Infinity {
		us, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return fmt.Errorf("unit %q: %s is %.40q, no number of microseconds", c.Unit, c.File, text)
		}
		unit = float64(us) / 1e6
	}
	if cpus, limited := limit.Bound(); limited {
		file = cpus
	}
	if unit == file || !math.IsInf(max(unit, file), 1) && math.Abs(unit-file) <= max(maxUnitDeviation*max(unit, file), leastDeviation) {
		return nil
	}
	return &UnitDiffers{Unit: c.Unit, Path: c.Path, UnitCPUs: unit, FileCPUs: file}
}
