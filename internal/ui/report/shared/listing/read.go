package listing

import (
	"time"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/see/observe"
	"github.com/unthrottle/unthrottle/topology"
)

// Observation is what an entry says, for views of observations. Paths and the raw ids stay escaped. Widths, cells and the
// cgroup's id are not in the document, and neither is whether stopped time was measured exactly. A list of CPUs that cannot
// be read counts as not measured: an entry comes over the network.
func (i *Item) Observation() observe.Observation {
	o := observe.Observation{
		Container: container.Container{Group: cgroup.Group{Path: i.Path}, ID: i.ID, Name: i.Name, Runtime: value(i.Runtime),
			Pod: value(i.Pod), Namespace: value(i.Namespace), ContainerName: value(i.Container), Image: value(i.Image),
			Project: value(i.Project), Service: value(i.Service), QoS: value(i.QoS), PodUID: i.PodUID, Unit: i.Unit},
		Start: i.Start, Window: duration(i.WindowSeconds), LimitCPUs: i.LimitCPUs, LimitAt: value(i.LimitAt), UsedCPUs: i.UsedCPUs,
		Periods: i.Periods, ThrottledPeriods: i.ThrottledPeriods, ThrottledSeconds: i.ThrottledSeconds,
		OwnThrottledSeconds: i.OwnThrottledSeconds, StoppedLow: durations(i.StoppedSecondsLow),
		StoppedHigh: durations(i.StoppedSecondsHigh),
		ThrottledBy: value(i.ThrottledBy), NotMeasured: i.NotMeasured,
	}
	if i.CPUs != nil {
		if set, err := topology.ParseList(*i.CPUs); err == nil {
			o.CPUsAllowed = set
		}
	}
	for _, s := range i.ThrottledByAll {
		o.ThrottledByAll = append(o.ThrottledByAll, observe.Share{Path: s.Path, Seconds: s.Seconds})
	}
	for _, l := range i.Levels {
		limit := cgroup.Limit{Quota: -1, Period: duration(l.PeriodSeconds), Burst: duration(l.BurstSeconds)}
		if l.QuotaSeconds != nil {
			limit.Quota = duration(*l.QuotaSeconds)
		}
		o.Levels = append(o.Levels, cgroup.Level{Path: l.Path, Limit: limit})
	}
	return o
}

func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func duration(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }

func durations(seconds *float64) *time.Duration {
	if seconds == nil {
		return nil
	}
	return new(duration(*seconds))
}
