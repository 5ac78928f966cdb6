package rebalance

import (
	"context"
	"time"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/cure/hoststate"
	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/txn/apply"
	"github.com/unthrottle/unthrottle/placement"
)

// DefragmentOptions of Defragment.
type DefragmentOptions struct {
	// Plan: nothing is changed.
	Plan bool
	// Reserve are the CPUs that are never given away; nil: placement.Reserve.
	Reserve *cpuset.CPUSet
	// MaxMoves bounds the moves of this run.
	MaxMoves int
	// Pause between moves; 0: DefaultPause.
	Pause time.Duration
	// Say is told of warnings; nil: not wanted.
	Say func(text string)
}

// Step is one planned move.
type Step struct {
	placement.Move
	Name string // the container's
	// Done is what came of it; nil: it was not done.
	Done *Moved
}

// LeftAlone is a container that is not moved, by its path, and why.
type LeftAlone struct{ Path, Name, Why string }

// Defragmented is what repairing a node would do, or did.
type Defragmented struct {
	Steps     []Step
	LeftAlone []LeftAlone
	// Before and After are what the placement costs; After that of the plan where
	// nothing was done.
	Before, After placement.Score
	Planned       bool
}

// Defragment moves the containers that have CPUs by a remedy so that fewer of them
// cross sockets, NUMA nodes and L3s. With an error, what was done by then is in
// force and in the result.
func Defragment(ctx context.Context, env Env, o DefragmentOptions) (Defragmented, error) {
	out := Defragmented{Planned: o.Plan}
	if o.Say == nil {
		o.Say = func(string) {}
	}
	if !o.Plan {
		recovered, err := apply.Recover(ctx, env.Apply)
		if err != nil {
			return out, err
		}
		for _, warning := range recovered.Warnings {
			o.Say(warning)
		}
	}
	facts, err := env.Facts(ctx)
	if err != nil {
		return out, err
	}
	moves, err := out.plan(facts, env.Apply, o)
	if err != nil || o.Plan || len(moves) == 0 {
		return out, err
	}
	done, err := Run(ctx, env, Options{Moves: moves, Pause: o.Pause})
	for i, m := range done {
		out.Steps[i].Done = &m
		for _, warning := range m.Result.Warnings {
			o.Say(out.Steps[i].Name + ": " + warning)
		}
	}
	if score, scoreErr := scoreNow(ctx, env, o); scoreErr == nil {
		out.After = score
	}
	return out, err
}

// scoreNow judges the node as the moves have left it.
func scoreNow(ctx context.Context, env Env, o DefragmentOptions) (placement.Score, error) {
	facts, err := env.Facts(ctx)
	if err != nil {
		return placement.Score{}, err
	}
	state, err := remedy.State(facts, o.Reserve, nil)
	if err != nil {
		return placement.Score{}, err
	}
	node, _, err := placement.NewNode(state)
	if err != nil {
		return placement.Score{}, err
	}
	return node.Score(), nil
}

// plan chooses the moves and fills in what is known before any is done.
func (d *Defragmented) plan(facts hoststate.Facts, env apply.Env, o DefragmentOptions) ([]placement.Move, error) {
	names := map[string]string{}
	for _, held := range facts.Held {
		names[held.Target] = held.Name
	}
	state, err := remedy.State(facts, o.Reserve, Immovable(env.FS, env.Proc, facts.Held))
	if err != nil {
		return nil, err
	}
	node, _, err := placement.NewNode(state)
	if err != nil {
		return nil, err
	}
	d.Before = node.Score()
	for _, c := range state.Containers {
		if c.Immovable != "" {
			d.LeftAlone = append(d.LeftAlone, LeftAlone{c.Name, names[c.Name], c.Immovable})
		}
	}
	moves := node.Repair(placement.Budget{Moves: o.MaxMoves})
	for _, m := range moves {
		d.Steps = append(d.Steps, Step{Move: m, Name: names[m.Container]})
	}
	d.After = node.Score()
	return moves, nil
}
