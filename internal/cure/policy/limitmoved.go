package policy

import (
	"slices"

	"github.com/unthrottle/unthrottle/internal/cure/hoststate"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/see/observe"
	"github.com/unthrottle/unthrottle/internal/see/recording"
)

// limitMoved says that a limit of the container, or of an ancestor, was not the same all the while: when it was observed, when it was
// recorded, and when the facts were gathered of which a plan is made. Nothing may be planned then, since what was forecast is of
// another limit than what would be written. "": it was the same. known may be nil.
func limitMoved(o observe.Observation, f hoststate.Facts, known *Known) string {
	path := o.Container.Group.Path
	if changes := limitChanges(o, known); len(changes) > 0 {
		return recording.LimitsChanged(path, changes)
	}
	changes := observe.CompareLimits(o.Levels, LevelsOf(f, o.Levels))
	now := observe.RecordingLevels(LevelsOf(f, o.Levels))
	if known != nil && known.Explanation != nil {
		changes = append(recording.CompareLimits(known.Explanation.Levels, now), changes...)
	}
	if known != nil && known.Forecast != nil {
		changes = append(recording.CompareLimits(known.Forecast.Levels, now), changes...)
	}
	return recording.LimitsChanged(path, changes)
}

// limitChanges are those within the looks themselves.
func limitChanges(o observe.Observation, known *Known) []recording.LimitChange {
	if known != nil && known.Explanation != nil && len(known.Explanation.LimitChanges) > 0 {
		return known.Explanation.LimitChanges
	}
	return o.LimitChanges
}

// LevelsOf are levels with the limits that they have by the facts, and the IDs of their cgroups.
func LevelsOf(f hoststate.Facts, levels []cgroup.Level) []cgroup.Level {
	now := slices.Clone(levels)
	for i := range now {
		if group, ok := f.Groups[now[i].Path]; ok {
			now[i].Limit, now[i].ID = group.Limit, group.ID
		}
	}
	return now
}
