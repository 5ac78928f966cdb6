// Package listing is the JSON of containers with what was observed of them: that of `ls -o json` and of the agent's
// GET /containers. It reads that JSON too, so that a program elsewhere shows the same table.
package listing

import (
	"time"

	"github.com/unthrottle/unthrottle/internal/see/observe"
	"github.com/unthrottle/unthrottle/internal/text"
)

// Schema and Version begin the document.
const (
	Schema  = "ls"
	Version = 1
)

// Item is one container in `ls -o json`: the contract. Keys are only ever added. null is "not measured", except for
// limit_cpus (no limit), throttled_by (nothing), and names, which the container has not or which are not known.
type Item struct {
	Path                string   `json:"path"` // bytes that are no UTF-8 as \xNN, see text.EscapePath
	Name                string   `json:"name"`
	LimitCPUs           *float64 `json:"limit_cpus"` // effective
	WindowSeconds       float64  `json:"window_seconds"`
	UsedCPUs            *float64 `json:"used_cpus"`
	Periods             *uint64  `json:"periods"`
	ThrottledPeriods    *uint64  `json:"throttled_periods"`
	ThrottledSeconds    *float64 `json:"throttled_seconds"`     // own and inherited, summed over CPUs
	OwnThrottledSeconds *float64 `json:"own_throttled_seconds"` // summed over CPUs
	StoppedSecondsLow   *float64 `json:"stopped_seconds_low"`
	StoppedSecondsHigh  *float64 `json:"stopped_seconds_high"`
	ThrottledBy         *string  `json:"throttled_by"`
	ThrottledByAll      []Share  `json:"throttled_by_all"`
	CPUs                *string  `json:"cpus"`

	LimitAt *string `json:"limit_at"` // the level that sets limit_cpus
	Scope   *string `json:"scope"`    // what limit_at is: own, pod, slice
	Levels  []Level `json:"levels"`

	Namespace *string `json:"namespace"`
	Pod       *string `json:"pod"`
	Container *string `json:"container"`
	Image     *string `json:"image"`
	Runtime   *string `json:"runtime"`
	QoS       *string `json:"qos"`
	Project   *string `json:"project"`
	Service   *string `json:"service"`

	ID          string    `json:"container_id"`
	PodUID      string    `json:"pod_uid"`
	Unit        string    `json:"unit"`
	Start       time.Time `json:"start"`
	NotMeasured []string  `json:"not_measured"`
}

// Share is one level's part in the throttled time.
type Share struct {
	Path    string  `json:"path"`
	Seconds float64 `json:"seconds"` // summed over CPUs
}

// Level is the limit of one level; quota_seconds null: none.
type Level struct {
	Path          string   `json:"path"`
	LimitCPUs     *float64 `json:"limit_cpus"`
	QuotaSeconds  *float64 `json:"quota_seconds"`
	PeriodSeconds float64  `json:"period_seconds"`
	BurstSeconds  float64  `json:"burst_seconds"`
}

// Document is `ls -o json`, and what the agent answers to GET /containers.
type Document struct {
	Containers []Item `json:"containers"`
}

// Of is the document's entry of one observation.
func Of(o observe.Observation) Item {
	c := o.Container
	item := Item{
		Path: text.EscapePath(c.Group.Path), Name: c.Name, LimitCPUs: o.LimitCPUs,
		WindowSeconds: o.Window.Seconds(), UsedCPUs: o.UsedCPUs,
		Periods: o.Periods, ThrottledPeriods: o.ThrottledPeriods,
		ThrottledSeconds: o.ThrottledSeconds, OwnThrottledSeconds: o.OwnThrottledSeconds,
		StoppedSecondsLow: seconds(o.StoppedLow), StoppedSecondsHigh: seconds(o.StoppedHigh),
		ThrottledByAll: []Share{}, Levels: []Level{}, NotMeasured: []string{},
		Namespace: known(c.Namespace), Pod: known(c.Pod), Container: known(c.ContainerName), Image: known(c.Image),
		Runtime: known(c.Runtime), QoS: known(c.QoS), Project: known(c.Project), Service: known(c.Service),
		ID: text.EscapePath(c.ID), PodUID: c.PodUID, Unit: text.EscapePath(c.Unit), Start: o.Start.UTC(),
	}
	if o.ThrottledBy != "" {
		item.ThrottledBy = new(text.EscapePath(o.ThrottledBy))
	}
	for _, s := range o.ThrottledByAll {
		item.ThrottledByAll = append(item.ThrottledByAll, Share{text.EscapePath(s.Path), s.Seconds})
	}
	if !o.CPUsAllowed.IsEmpty() {
		item.CPUs = new(o.CPUsAllowed.String())
	}
	if o.LimitCPUs != nil {
		item.LimitAt, item.Scope = new(text.EscapePath(o.LimitAt)), known(c.ScopeOf(o.LimitAt))
	}
	for _, l := range o.Levels {
		level := Level{Path: text.EscapePath(l.Path), PeriodSeconds: l.Limit.Period.Seconds(),
			BurstSeconds: l.Limit.Burst.Seconds()}
		if cpus, limited := l.Limit.Bound(); limited {
			level.LimitCPUs, level.QuotaSeconds = new(cpus), new(l.Limit.Quota.Seconds())
		}
		item.Levels = append(item.Levels, level)
	}
	for _, note := range o.NotMeasured {
		item.NotMeasured = append(item.NotMeasured, text.EscapePath(note))
	}
	return item
}

// known is nil for a name that is not there.
func known(name string) *string {
	if name == "" {
		return nil
	}
	return &name
}

func seconds(d *time.Duration) *float64 {
	if d == nil {
		return nil
	}
	return new(d.Seconds())
}
