package remedy

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/bandwidth"
	"github.com/unthrottle/unthrottle/internal/cure/hoststate"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/text"
)

// Cap gives the container beside the target that spends their common quota a quota of its own, below what the others leave of it. Neither
// the target nor the common quota is written.
const Cap Kind = "cap"

// capSibling is the row of Cap. No forecast has it: a recording is of one container, and does not tell how a sibling's work shifts.
var capSibling = Remedy{
	Kind:        Cap,
	Settings:    []Setting{{Flag: "sibling"}, {Flag: "to"}},
	ShowsDemand: true,
	plan:        (*planner).capSibling,
	parameters:  []string{paramTo, paramSibling},
	needs:       []string{paramSibling},
}

const (
	// othersRoom is by how much others' use is multiplied to be what they want: a container that is stopped uses less than it wants.
	othersRoom = 2.0
	// leastKept is the share of a sibling's use that a cap leaves it at least where it was not asked for by number.
	leastKept = 0.5
	// capPeriods is how many periods of the sibling's quota are in one of the common quota. Periods of two cgroups begin at different
	// moments, so that a sibling may spend two quotas of its own within one of the common ones: shorter ones make that little.
	capPeriods = 5
)

// capSibling holds the sibling that spends the common quota to what the others leave of it.
func (p *planner) capSibling() error {
	common, spender, err := p.spender()
	if err != nil {
		return err
	}
	quota, _ := p.f.Groups[common].Limit.Bound()
	used := p.f.usedIn(spender)
	to := p.r.To
	if to == 0 {
		if to, err = p.left(common, spender, quota); err != nil {
			return err
		}
	}
	switch own, limited := p.f.Groups[spender].Limit.Bound(); {
	case to >= quota-epsilon:
		return p.refuse(fmt.Sprintf("%s for %s are no less than the %s of %s", text.CPUs(to), text.Name(spender), text.CPUs(quota),
			text.Name(common)), "give fewer with --to")
	case limited && own <= to+epsilon:
		return p.refuse(fmt.Sprintf("%s has a limit of %s already", text.Name(spender), text.CPUs(own)), "give less with --to", spender)
	}
	if inner := p.above(spender, to); len(inner) > 0 && p.f.CPUVersion == cgroup.V1 {
		return p.refuse(fmt.Sprintf("cgroup v1 takes no limit of %s where cgroups inside have more", text.CPUs(to)), "lower theirs first",
			inner...)
	}
	want := p.f.Groups[spender].Limit
	least := time.Duration(math.Ceil(float64(bandwidth.MinQuota)/to/float64(bandwidth.Unit))) * bandwidth.Unit // for the least quota
	want.Period = max(p.f.Groups[common].Limit.Period/capPeriods, least, bandwidth.MinPeriod).Truncate(bandwidth.Unit)
	want.Quota, want.Burst = bandwidth.QuotaOf(to, want.Period), 0
	if err := want.CheckBounds(); err != nil {
		return p.refuse(err.Error(), "give more with --to")
	}
	why := fmt.Sprintf("held to %s, so that %s is left of the %s of %s", text.CPUs(to), text.CPUs(quota-to), text.CPUs(quota),
		text.Name(common))
	p.setLimit(spender, want, why)
	p.plan.Sibling = spender
	p.plan.Parameters[paramTo], p.plan.Parameters[paramSibling] = fmt.Sprintf("%.3g", to), spender
	if used != nil {
		p.warn("%s, which used %s, gets %s at most", text.Name(spender), text.CPUs(*used), text.CPUs(to))
	}
	if p.isPod(common) {
		p.warn("for good: limits.cpu: %.0fm for that container in the pod's spec; a container that starts again has no cap", 1000*to)
	}
	return nil
}

// spender finds the ancestor whose quota the target shares, and who uses most of it beside the target.
func (p *planner) spender() (common, spender string, err error) {
	onPath, why := p.target.Group.Path, ""
	for _, level := range p.levels()[1:] {
		below := onPath
		onPath = level.Path
		if !level.Limit.Limited() {
			continue
		}
		beside := slices.DeleteFunc(children(p.f.Groups, level.Path), func(c string) bool { return c == below || p.f.Groups[c].Sandbox })
		if p.r.Sibling != "" {
			beside = slices.DeleteFunc(beside, func(c string) bool { return !p.called(c, p.r.Sibling) })
		}
		most := p.most(beside)
		own, its := p.f.usedIn(below), p.f.usedIn(most)
		switch {
		case len(beside) == 0:
		case p.mayChange(level.Path) != nil:
			return "", "", p.mayChange(level.Path)
		case p.r.Sibling != "":
			return level.Path, most, nil
		case its == nil || own == nil:
			why = "what it and the containers beside it use was not measured"
		case *its <= *own:
			why = fmt.Sprintf("no container beside it uses more than it does itself (%s)", text.CPUs(*own))
		default:
			return level.Path, most, nil
		}
	}
	switch {
	case why != "":
		return "", "", p.refuse(why, "name one with --sibling, and its limit with --to")
	case p.r.Sibling != "":
		return "", "", p.refuse(fmt.Sprintf("%.60q shares no quota with it", p.r.Sibling), "name a container of its pod or slice")
	}
	return "", "", p.refuse("it shares no quota with other containers: no ancestor has one", "try burst or period")
}

// called reports whether a cgroup has a name: its own, its path, or that of a container in it.
func (p *planner) called(path, name string) bool {
	return path == name || cgroup.Base(path) == name || slices.ContainsFunc(p.f.Containers, func(c hoststate.Container) bool {
		return c.Name == name && cgroup.Below(c.Group.Path, path)
	})
}

// most is the one of some cgroups that uses most, the first of those that are alike; "": there are none.
func (p *planner) most(of []string) (most string) {
	for _, path := range of {
		used, than := p.f.usedIn(path), p.f.usedIn(most)
		if most == "" || used != nil && (than == nil || *used > *than) {
			most = path
		}
	}
	return most
}

// usedIn is the CPU use of a cgroup, or of the containers in it where its own was not measured; nil: theirs were not either.
func (f facts) usedIn(path string) *float64 {
	if used := f.Groups[path].UsedCPUs; used != nil {
		return used
	}
	var sum *float64
	for _, child := range children(f.Groups, path) {
		if used := f.usedIn(child); used != nil {
			if sum == nil {
				sum = new(float64)
			}
			*sum += *used
		}
	}
	return sum
}

// left is what the others leave of a common quota for the one that spends it.
func (p *planner) left(common, spender string, quota float64) (cpus float64, err error) {
	all, its := p.f.usedIn(common), p.f.usedIn(spender)
	if all == nil || its == nil {
		return 0, p.refuse("what the containers of "+text.Name(common)+" use was not measured", "give the sibling's limit with --to")
	}
	others := max(0, *all-*its)
	left := quota - othersRoom*others
	if left < leastKept**its {
		return 0, p.refuse(fmt.Sprintf("the others use %s of the %s: %s, which uses %s, would lose more than half of that",
			text.CPUs(others), text.CPUs(quota), text.Name(spender), text.CPUs(*its)),
			"give its limit with --to, or raise the common one", spender)
	}
	return left, nil
}

// above are the cgroups inside another whose limit is above so many CPUs.
func (p *planner) above(path string, cpus float64) (all []string) {
	for _, inner := range sorted(p.f.Groups) {
		if limit, ok := p.f.Groups[inner].Limit.Bound(); ok && below(inner, path) && limit > cpus+epsilon {
			all = append(all, inner)
		}
	}
	return all
}
