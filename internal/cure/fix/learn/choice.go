package learn

import (
	"context"
	"fmt"
	"time"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/cure/fix"
	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/sim/parallel"
)

// Setting is what a chosen remedy leaves in force.
type Setting struct {
	// Name is the remedy with its settings, for people.
	Name  string
	Limit cgroup.Limit
	// CPUs is how many it may use; 0: all.
	CPUs int
}

// Choice records a cgroup for that long. What it returns then says what fix chooses for the cgroup, without any change of it.
func (h Host) Choice(ctx context.Context, group cgroup.Group, length time.Duration) (func(context.Context) (Setting, error), error) {
	limit, err := cgroup.ReadLimit(h.Cgroups, group.Path)
	if err != nil {
		return nil, err
	}
	learned, err := h.Learn(ctx, container.Container{Group: group, Name: "service"}, length)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) (Setting, error) { return settingOf(ctx, learned, limit) }, nil
}

// settingOf is what fix chooses for a container with a limit.
func settingOf(ctx context.Context, learned fix.Learned, limit cgroup.Limit) (Setting, error) {
	if learned.Load == nil {
		return Setting{}, fmt.Errorf("nothing can be forecast: %s", learned.Missing)
	}
	made, err := policy.Forecast(learned.Load, nil, false, parallel.OnAllCores(ctx))
	if err != nil {
		return Setting{}, err
	}
	choice := policy.Choose(made, policy.Terms{})
	if choice.Answer != policy.AnswerRemedy {
		return Setting{Name: "to leave it: " + choice.Why, Limit: limit}, nil
	}
	row := made.Rows[choice.Row].Remedy
	left, cpus, err := row.Setting(limit, made.CPUs)
	if err != nil {
		return Setting{}, err
	}
	chosen := Setting{Name: row.Text(made.Limit), Limit: left, CPUs: cpus}
	if !left.Limited() {
		chosen.Limit = cgroup.Unlimited()
	}
	return chosen, nil
}
