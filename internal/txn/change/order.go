package change

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
)

// Order turns changes into single steps, in an order that the kernel accepts (see the package comment). From of each
// change must be the present value and To the wanted one; "remove_cpus" is resolved against From. A change whose
// value is there already yields no step; one change may yield several. Two changes of one setting are an error.
func Order(s State, changes []Change) ([]Change, error) {
	parts, err := classify(s, changes)
	if err != nil {
		return nil, err
	}
	falling, rising, err := orderLimits(s, parts.limits)
	if err != nil {
		return nil, err
	}
	grow, shrink, err := orderSets(s, parts.sets)
	if err != nil {
		return nil, err
	}
	lowered, raised := splitQuotas(parts.quotas)
	topDown(parts.make)
	topDown(parts.rest)
	bottomUp(parts.remove)
	slices.SortStableFunc(parts.moves, func(a, b Change) int { return cmp.Compare(a.To, b.To) })
	losing, gaining := splitPolicies(parts.policies)
	return slices.Concat(parts.make, losing, lowered, falling, grow, parts.moves, parts.lists, shrink, raised, rising,
		parts.rest, parts.interrupts, gaining, parts.remove), nil
}

// parts is the changes by what rule of order they obey.
type parts struct {
	make, remove []Change // cgroups and controllers
	limits       []Change
	sets         []Change
	moves        []Change
	quotas       []Change // of systemd
	lists        []Change // of systemd
	interrupts   []Change
	policies     []Change // of threads
	rest         []Change
}

func classify(s State, changes []Change) (parts, error) {
	var p parts
	seen := make(map[Key]bool, len(changes))
	for _, c := range changes {
		if seen[c.Key()] {
			return p, fmt.Errorf("%s is changed twice in one transaction", c.Key())
		}
		seen[c.Key()] = true
		if c.Op == OpRemoveCPUs || c.Op == OpAddCPUs {
			to, err := Fold(c.File, c.From, "", []Hold{{c.Op, c.To}})
			if err != nil {
				return p, fmt.Errorf("%s: %w", c.Key(), err)
			}
			c.To = to
		}
		c.Op = OpSet
		switch c.Kind {
		case KindCgroup:
			if c.From == "" {
				c.To = Present
				p.make = append(p.make, c)
			} else {
				p.remove = append(p.remove, c)
			}
		case KindSubtree:
			if strings.HasPrefix(c.To, "+") {
				p.make = append(p.make, c)
			} else {
				p.remove = append(p.remove, c)
			}
		case KindIRQ:
			if !Same(c.File, c.From, c.To) {
				p.interrupts = append(p.interrupts, c)
			}
		case KindWidth, KindPodCPU:
			if c.From != c.To {
				p.rest = append(p.rest, c)
			}
		case KindSched:
			if c.From != c.To {
				p.policies = append(p.policies, c)
			}
		case KindTask:
			p.moves = append(p.moves, c)
		case KindSystemd:
			p.property(c)
		case KindFile:
			if _, ok := s.Versions[c.Controller]; !ok {
				return p, fmt.Errorf("%s: the %s controller is not mounted", c.Key(), c.Controller)
			}
			p.file(c, s.Versions[c.Controller])
		default:
			return p, fmt.Errorf("%s: unknown kind %q", c.Key(), c.Kind)
		}
	}
	return p, nil
}

func (p *parts) property(c Change) {
	switch {
	case Same(c.File, c.From, c.To):
	case IsList(c.File):
		p.lists = append(p.lists, c)
	case strings.HasPrefix(c.File, "CPUQuota"):
		p.quotas = append(p.quotas, c)
	default:
		p.rest = append(p.rest, c)
	}
}

func (p *parts) file(c Change, v cgroup.Version) {
	switch {
	case Same(c.File, c.From, c.To):
	case slices.Contains(cgroup.LimitFiles(v), c.File):
		p.limits = append(p.limits, c)
	case IsList(c.File):
		p.sets = append(p.sets, c)
	default:
		p.rest = append(p.rest, c)
	}
}

func depth(path string) int {
	if path == "/" {
		return 0
	}
	return strings.Count(path, "/")
}

// rank orders what happens at one path: a cgroup is created before its children get controllers, and the reverse.
func rank(c Change) int {
	if c.Kind == KindCgroup {
		return 0
	}
	return 1
}

func compare(a, b Change) int {
	return cmp.Or(cmp.Compare(depth(a.Path), depth(b.Path)), cmp.Compare(a.Path, b.Path), cmp.Compare(rank(a), rank(b)),
		cmp.Compare(a.File, b.File))
}

func topDown(changes []Change) { slices.SortStableFunc(changes, compare) }
func bottomUp(changes []Change) {
	slices.SortStableFunc(changes, func(a, b Change) int { return compare(b, a) })
}

// splitQuotas parts systemd's quota properties into those that take CPU time away and the others.
func splitQuotas(quotas []Change) (lowered, raised []Change) {
	for _, c := range quotas {
		if microseconds(c.To) < microseconds(c.From) {
			lowered = append(lowered, c)
		} else {
			raised = append(raised, c)
		}
	}
	bottomUp(lowered)
	topDown(raised)
	return lowered, raised
}
