package remedy

import (
	"strconv"
	"strings"
	"time"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/systemd/unitprop"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/txn/change"
)

// viaSystemd turns changes of a unit's own cgroup into runtime properties, so
// that a daemon-reload does not undo them. Files for which systemd has no
// property (burst, an idle weight; on v1 cpusets) are written all the same.
func (p *planner) viaSystemd() {
	var unowned []string
	for i, c := range p.plan.Changes {
		if c.Kind != change.KindFile {
			continue
		}
		unit := p.f.Groups[c.Path].Unit
		if unit == "" {
			if p.f.Systemd && looksLikeUnit(c.Path) {
				unowned = append(unowned, c.Path)
			}
			continue
		}
		if property, to, ok := p.property(c); ok {
			p.plan.Changes[i] = change.Change{Kind: change.KindSystemd, Op: c.Op, Path: c.Path, Unit: unit,
				File: property, To: to, Why: c.Why}
			continue
		}
		p.warn("%s of %s is written past systemd, which has no property for it: a reload may undo it", c.File, text.Name(c.Path))
	}
	if len(unowned) > 0 {
		p.warn("systemd cannot be asked over D-Bus: a daemon-reload may undo what is written to %s", text.Names(unowned))
	}
}

// looksLikeUnit tells whether a cgroup bears the name of a systemd unit.
func looksLikeUnit(path string) bool {
	for _, suffix := range []string{".slice", ".service", ".scope"} {
		if strings.HasSuffix(path, suffix) {
			return true
		}
	}
	return false
}

// property translates one change; false: there is no such property.
func (p *planner) property(c change.Change) (name, to string, ok bool) {
	cpu := p.f.CPUVersion
	switch {
	case c.To == cgroup.WeightIdle:
		return "", "", false // only since 252, which cannot be asked for
	case c.File == cgroup.FileCPUs:
		return unitprop.AllowedCPUs, c.To, p.f.CPUSetVersion == cgroup.V2
	case c.File == cgroup.WeightFile(cpu) && cpu == cgroup.V2:
		return unitprop.CPUWeight, c.To, true
	case c.File == cgroup.WeightFile(cpu):
		shares, err := strconv.ParseUint(c.To, 10, 64)
		return unitprop.CPUWeight, strconv.FormatUint(cgroup.WeightOfShares(shares), 10), err == nil
	case c.File == cgroup.LimitFiles(cpu)[0]:
		return p.quotaProperty(c)
	}
	return "", "", false
}

// quotaProperty is CPU time per second, in microseconds. A period that changes
// as well is not ours to give to systemd, which has a period of its own.
func (p *planner) quotaProperty(c change.Change) (name, to string, ok bool) {
	l := p.f.Groups[c.Path].Limit
	if p.f.CPUVersion == cgroup.V2 {
		want, err := cgroup.ParseMax(c.To)
		if err != nil || want.Period != l.Period {
			return "", "", false
		}
		l = want
	} else {
		us, err := strconv.ParseInt(c.To, 10, 64)
		if err != nil || p.changes(c.Path, cgroup.LimitFiles(cgroup.V1)[1]) {
			return "", "", false
		}
		l.Quota = time.Duration(us) * time.Microsecond
	}
	n, limited := l.Bound()
	if !limited {
		return unitprop.CPUQuotaPerSecUSec, unitprop.Infinity, true
	}
	return unitprop.CPUQuotaPerSecUSec, strconv.FormatInt(int64(n*1e6+0.5), 10), true
}

// changes tells whether the plan changes a file, and does not only hold it as it is.
func (p *planner) changes(path, file string) bool {
	for _, c := range p.plan.Changes {
		if c.Path == path && c.File == file && c.From != c.To {
			return true
		}
	}
	return false
}
