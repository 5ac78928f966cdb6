package agent

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/internal/clock"
	"github.com/unthrottle/unthrottle/internal/cure/hoststate"
	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/placing/rebalance"
	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/internal/txn/apply"
	"github.com/unthrottle/unthrottle/placement"
)

const (
	// maxReasserts is how often the agent rewrites a container's CPUs after another program
	// overwrote them. Then it gives up.
	maxReasserts = 3
	// conflictMemory is how long a conflict counts.
	conflictMemory = time.Hour
	// persistSpread is how many looks in a row a narrowed container must be
	// worth moving: load comes and goes.
	persistSpread = 3
	// movesAtOnce is how many moves may be saved up, so that a repair whose
	// moves belong together has room.
	movesAtOnce = 2 * placement.DefaultPerCrossing
)

// placer keeps containers well placed. Of the acting goroutine alone, but for
// its figures.
type placer struct {
	figures   placeFigures
	conflicts map[string][]time.Time // by the container's path
	gaveUp    map[string]bool
	worth     map[string]int // looks in a row in which moving was worth it
	moves     float64        // that there may be now
	refill    time.Time
}

// place judges where containers are, and, where the rules allow, moves them:
// first what others changed is set again, then who cannot stay where it is goes
// where it belongs, then crossings are repaired and narrowed ones spread.
func (a *agent) place(ctx context.Context, facts hoststate.Facts, now time.Time) {
	p := &a.placer
	state, err := remedy.State(facts, nil, rebalance.Immovable(a.Env.FS, a.Env.Proc, facts.Held))
	if err != nil {
		a.Log.Error("the placement cannot be judged", "error", err)
		return
	}
	node, refused, err := placement.NewNode(state)
	if err != nil {
		a.Log.Warn("the placement cannot be judged", "error", err)
		return
	}
	for _, r := range refused {
		a.Log.Warn("no CPUs are left for it", "cgroup", boundedPath(r.Name), "why", r.Err)
	}
	p.figures.set(state, node.Score(), len(p.gaveUp))
	if a.Rules.Mode != policy.Apply {
		return
	}
	if a.reassert(ctx, facts, now) {
		return // what was planned on these facts is out of date
	}
	rate := a.Rules.Placement.MovesPerMinute
	if !p.mayMove(rate, now) {
		return
	}
	moves := remedy.Misplaced(state, node)
	if len(moves) == 0 {
		moves = firstRepair(node.Repair(placement.Budget{Moves: int(p.moves)}))
	}
	if len(moves) == 0 {
		moves = p.spread(facts)
	}
	if len(moves) == 0 {
		return
	}
	p.moves -= float64(len(moves))
	defer a.resume(a.busy("moving containers", moveLimit))
	done, err := rebalance.Run(ctx, rebalance.Env{Apply: a.Env, Wait: clock.Sleep, Pager: rebalance.HostPager{},
		Facts: func(ctx context.Context) (hoststate.Facts, error) {
			containers, err := a.List()
			if err != nil {
				return hoststate.Facts{}, err
			}
			return a.Facts(ctx, containers, map[string]float64{})
		}}, rebalance.Options{Moves: moves})
	for _, m := range done {
		a.Log.Info("moved", "cgroup", boundedPath(m.Container), "from", m.From.String(), "to", m.To.String(),
			"transaction", m.ID, "gain", m.Gain)
	}
	p.figures.moved(len(done), err != nil)
	if err != nil && ctx.Err() == nil {
		a.Log.Warn("not moved", "error", err)
	}
}

// mayMove refills what may be moved, and tells whether there is any.
func (p *placer) mayMove(rate int, now time.Time) bool {
	if rate <= 0 {
		return false
	}
	if p.refill.IsZero() {
		p.moves = float64(min(rate, movesAtOnce))
	} else {
		p.moves = min(p.moves+now.Sub(p.refill).Minutes()*float64(rate), max(movesAtOnce, float64(rate)))
	}
	p.refill = now
	return p.moves >= 1
}

// firstRepair are the moves of the first repair: they belong together, and what
// comes after is planned anew.
func firstRepair(moves []placement.Move) []placement.Move {
	for i, m := range moves {
		if m.Repair != moves[0].Repair {
			return moves[:i]
		}
	}
	return moves
}

// spread is the move of one narrowed container, where that was worth it for some
// time.
func (p *placer) spread(facts hoststate.Facts) []placement.Move {
	worth := map[string]int{}
	var moves []placement.Move
	for _, h := range facts.Held {
		move, ok := remedy.Respread(facts, h.ID)
		if !ok {
			continue
		}
		if worth[h.Target] = p.worth[h.Target] + 1; worth[h.Target] >= persistSpread && len(moves) == 0 {
			moves = append(moves, move)
			worth[h.Target] = 0
		}
	}
	p.worth = worth
	return moves
}

// reassert sets again what others changed of our containers' CPUs. After maxReasserts times it gives up: two programs that overwrite each
// other for ever help no container. A try that another moment may not refuse, such as one while the journal is locked, is none of them. It
// tells whether anything was written.
func (a *agent) reassert(ctx context.Context, facts hoststate.Facts, now time.Time) bool {
	p := &a.placer
	conflicts, err := remedy.Conflicts(facts)
	if err != nil {
		a.Log.Warn("whether another program changed CPUs cannot be told", "error", err)
		return false
	}
	p.forget(facts, now)
	a.giveUp(conflicts)
	if len(conflicts) == 0 {
		return false
	}
	plans, planned, refused := planReasserts(facts, conflicts)
	for target, why := range refused {
		p.count(now, target)
		a.Log.Warn("CPUs that another program changed could not be set again", "cgroup", boundedPath(target), "error", why)
	}
	if len(plans) == 0 {
		return false
	}
	var parts []txn.Part
	for _, plan := range plans {
		parts = append(parts, plan.Part())
	}
	done, err := apply.Replace(ctx, a.Env, parts)
	if apply.Passing(err) { // each look tries again
		a.Log.Debug("CPUs that another program changed are set again later", "why", err)
		return len(done.Writes) > 0
	}
	p.count(now, planned...)
	if err != nil {
		a.Log.Warn("CPUs that another program changed could not be set again", "error", err)
		return len(done.Writes) > 0
	}
	a.Log.Warn("another program changed CPUs of ours: set again", "containers", len(plans), "writes", len(done.Writes))
	return true
}

// giveUp takes those out of the conflicts for which the agent has set its CPUs again often enough, and says so once.
func (a *agent) giveUp(conflicts map[string]string) {
	p := &a.placer
	for target, id := range conflicts {
		if len(p.conflicts[target]) < maxReasserts {
			continue
		}
		delete(conflicts, target)
		if p.gaveUp[target] {
			continue
		}
		p.gaveUp[target] = true
		a.Log.Error("another program keeps changing its CPUs: the agent gives up, and its CPUs are no longer "+
			"exclusive; find out which program "+
			"writes its cpuset (kubelet, a DRA driver, systemd, an administrator), then restore it or apply its remedy again",
			"cgroup", boundedPath(target), "conflicts", maxReasserts, "transaction", id)
	}
}

// count notes that the CPUs of containers were set again, or cannot be.
func (p *placer) count(now time.Time, targets ...string) {
	for _, target := range targets {
		p.conflicts[target] = append(p.conflicts[target], now)
	}
}

// planReasserts plans to set the CPUs of all conflicts again, by target. Where that is refused, it plans those of the first that can be
// planned alone, since one of them must not keep the others from theirs: the next look, with facts of its own, takes the next. refused says
// why those before it cannot.
func planReasserts(facts hoststate.Facts, conflicts map[string]string) (plans []remedy.Plan, planned []string, refused map[string]error) {
	planned = slices.Sorted(maps.Keys(conflicts))
	plans, err := remedy.Reassert(facts, slices.Collect(maps.Values(conflicts)))
	if err == nil {
		return plans, planned, nil
	}
	refused = map[string]error{}
	for i, target := range planned {
		plans, err := remedy.Reassert(facts, []string{conflicts[target]})
		if err == nil {
			return plans, planned[i : i+1], refused
		}
		refused[target] = err
	}
	return nil, nil, refused
}

// forget drops old fights, and what is known of containers that are gone.
func (p *placer) forget(facts hoststate.Facts, now time.Time) {
	if p.conflicts == nil {
		p.conflicts, p.gaveUp = map[string][]time.Time{}, map[string]bool{}
	}
	for target, times := range p.conflicts {
		_, ours, _ := remedy.Placing(facts, target) // reassert has read all of them
		for len(times) > 0 && now.Sub(times[0]) >= conflictMemory && !p.gaveUp[target] {
			times = times[1:]
		}
		if p.conflicts[target] = times; !ours || len(times) == 0 {
			delete(p.conflicts, target)
			delete(p.gaveUp, target)
		}
	}
}
