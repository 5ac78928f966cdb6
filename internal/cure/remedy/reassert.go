package remedy

import (
	"slices"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/cure/hoststate"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/systemd/unitprop"
	"github.com/unthrottle/unthrottle/placement"
)

// Misplaced are the containers of a state that cannot stay where they are, as
// moves to where they belong: a CPU went offline or has another owner.
// node is what placement made of the state. Those that stay are left out.
func Misplaced(s placement.State, node *placement.Node) []placement.Move {
	var moves []placement.Move
	for _, c := range s.Containers {
		h, ok := node.Find(c.Name)
		if !ok || c.Immovable != "" || c.Current.IsEmpty() || c.Class == placement.Floating {
			continue
		}
		if to := node.Placed(h).Own; !to.IsEmpty() && !to.Equals(c.Current) {
			moves = append(moves, placement.Move{Container: c.Name, From: c.Current, To: to, Cost: to.Difference(c.Current).Size()})
		}
	}
	return moves
}

// worthMoving is by how much, in CPUs of load, a narrowed container's CPUs must
// be busier than those it could have: less is noise, and a move costs caches.
const worthMoving = 1.0

// Respread says where a narrowed container should be instead, by the load of
// the CPUs without its own: where it lost CPUs to others, or where it would meet
// less of others' work, by a CPU or more. false: it is well where it is, or the
// load is not known.
func Respread(host hoststate.Facts, id string) (placement.Move, bool) {
	f, err := decode(host)
	if err != nil {
		return placement.Move{}, false
	}
	i := slices.IndexFunc(f.Held, func(h Held) bool { return h.ID == id })
	if i < 0 {
		return placement.Move{}, false
	}
	h := f.Held[i]
	from, ok := floatingCPUs(h)
	set, exists := f.Sets[h.CPUSet]
	if !ok || !exists || f.over(h) || h.Immovable {
		return placement.Move{}, false
	}
	used := f.Groups[h.Target].UsedCPUs
	if used == nil || len(f.Load) == 0 {
		return placement.Move{}, false
	}
	others := make(map[int]float64, len(f.Load))
	for id, load := range f.Load {
		if from.Contains(id) {
			load = max(0, load-*used/float64(from.Size()))
		}
		others[id] = load
	}
	f.Load = others
	p := &planner{f: f, r: Request{Kind: Narrow}, target: container.Container{Group: cgroup.Group{Path: h.Target}}}
	at := targetCpuset{path: h.CPUSet, allowed: f.Sets[parent(h.CPUSet)].Effective}
	choice, err := p.float(at, from.Size())
	if err != nil || choice.own.Equals(from) {
		return placement.Move{}, false
	}
	lost := !from.IsSubsetOf(set.Effective)
	if !lost && sum(from, others)-sum(choice.own, others) < worthMoving {
		return placement.Move{}, false
	}
	return placement.Move{Container: h.Target, From: from, To: choice.own, Cost: choice.own.Difference(from).Size()}, true
}

// sum is the load of CPUs together.
func sum(cpus cpuset.CPUSet, load map[int]float64) float64 {
	var all float64
	for _, id := range cpus.List() {
		all += load[id]
	}
	return all
}

// Reassert plans to write CPUs again that another program overwrote: those of the
// named transactions, and of all others that hold one of the changed settings,
// because their part of it is lost as well. Carry the plans out together.
func Reassert(host hoststate.Facts, ids []string) ([]Plan, error) {
	f, err := decode(host)
	if err != nil {
		return nil, err
	}
	touched := map[string]bool{}
	for _, d := range f.Drift {
		if slices.Contains(ids, d.ID) && !d.Gone {
			touched[d.Path+" "+d.File] = true
		}
	}
	var together []string
	for _, h := range f.Held {
		if _, ok := placed(h); !ok || f.over(h) {
			continue
		}
		mine := slices.Contains(ids, h.ID)
		for _, t := range f.Held {
			if t.ID != h.ID && t.For != h.ID {
				continue
			}
			for _, c := range t.Changes {
				mine = mine || touched[c.Path+" "+c.File]
			}
		}
		if mine {
			together = append(together, h.ID)
		}
	}
	var plans []Plan
	for _, h := range f.Held {
		if !slices.Contains(together, h.ID) {
			continue
		}
		set, _ := placed(h)
		plan, err := MoveTo(host, h.ID, set, together...)
		if err != nil {
			return nil, err
		}
		plans = append(plans, plan)
	}
	return plans, nil
}

// Conflicts are the transactions that gave CPUs and whose cpusets another program
// changed since, by the path of the container.
// The error is an *Unreadable.
func Conflicts(host hoststate.Facts) (map[string]string, error) {
	f, err := decode(host)
	if err != nil {
		return nil, err
	}
	conflicts := map[string]string{}
	for _, d := range f.Drift {
		for _, h := range f.Held {
			_, ok := placed(h)
			if ok && !d.Gone && isCPUs(d.File) && (d.ID == h.ID || slices.ContainsFunc(f.Held, func(t Held) bool {
				return t.ID == d.ID && t.For == h.ID
			})) {
				conflicts[h.Target] = h.ID
			}
		}
	}
	return conflicts, nil
}

func isCPUs(file string) bool { return file == cgroup.FileCPUs || file == unitprop.AllowedCPUs }
