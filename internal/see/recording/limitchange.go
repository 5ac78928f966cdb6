package recording

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// LimitChange is a limit that changed while a container was looked at, as VPA, a start-up boost and docker update do it.
// What was measured over such a time is of two limits at once: no remedy may be chosen by it.
type LimitChange struct {
	// Before is the level as it was first, After as it was when the change was seen. Weights are not compared.
	Before, After Level
	// Seen is when, since the look began; nil: somewhere between its two ends.
	Seen *time.Duration
}

// Text says what changed: "from 0.3 to 0.6 CPUs".
func (c LimitChange) Text() string {
	switch before, after := c.Before.limitText(), c.After.limitText(); {
	case before != after:
		if after != noLimit {
			before = strings.TrimSuffix(before, unitCPUs)
		}
		return fmt.Sprintf("from %s to %s", before, after)
	case c.Before.PeriodNS != c.After.PeriodNS:
		return fmt.Sprintf("in its period, from %v to %v", time.Duration(c.Before.PeriodNS), time.Duration(c.After.PeriodNS))
	default:
		return fmt.Sprintf("in its burst, from %v to %v", time.Duration(c.Before.BurstNS), time.Duration(c.After.BurstNS))
	}
}

const (
	unitCPUs = " CPUs"
	noLimit  = "none"
)

// limitText is a limit for people.
func (l Level) limitText() string {
	if l.QuotaNS == nil || l.PeriodNS <= 0 {
		return noLimit
	}
	return fmt.Sprintf("%.4g", float64(*l.QuotaNS)/float64(l.PeriodNS)) + unitCPUs
}

// LimitsChanged says in one clause what changed: "its limit changed from 0.3 to 0.6 CPUs, 2.1 s into the look". own is
// the path of the container; "": there are no changes.
func LimitsChanged(own string, changes []LimitChange) string {
	if len(changes) == 0 {
		return ""
	}
	first := changes[0]
	if madeAnew(first.Before, first.After) {
		if first.Before.Path == own {
			return "it was made anew, in another cgroup of the same path"
		}
		return fmt.Sprintf("%.200q was made anew, in another cgroup of the same path", first.Before.Path)
	}
	text := "its limit changed "
	if first.Before.Path != own {
		text = fmt.Sprintf("the limit of %.200q changed ", first.Before.Path)
	}
	text += first.Text()
	if first.Seen != nil {
		text += fmt.Sprintf(", %.1f s into the look", first.Seen.Seconds())
	}
	return text
}

// madeAnew reports whether two levels of one path are known to be two cgroups: a container that was started again.
func madeAnew(before, after Level) bool {
	return before.ID != 0 && after.ID != 0 && before.ID != after.ID
}

// CompareLimits compares the limits of the cgroups that both lists have, by their paths. What was made anew counts as changed.
func CompareLimits(before, after []Level) []LimitChange {
	var changes []LimitChange
	for _, was := range before {
		i := slices.IndexFunc(after, func(l Level) bool { return l.Path == was.Path })
		if i >= 0 && (madeAnew(was, after[i]) || !sameLimit(was, after[i])) {
			changes = append(changes, LimitChange{Before: was, After: after[i]})
		}
	}
	return changes
}

// sameLimit compares quota, period and burst. Without a quota the other two say nothing.
func sameLimit(a, b Level) bool {
	if a.QuotaNS == nil || b.QuotaNS == nil {
		return a.QuotaNS == nil && b.QuotaNS == nil
	}
	return *a.QuotaNS == *b.QuotaNS && a.PeriodNS == b.PeriodNS && a.BurstNS == b.BurstNS
}

// LimitWatch notices limits that change during a recording: each expiry of a period's timer tells the quota and the
// burst, and the footer the levels as they were at the end.
type LimitWatch struct {
	levels  []Level // of the header
	byID    map[uint64]int
	changes []LimitChange // one a level
}

// NewLimitWatch begins with a recording's header.
func NewLimitWatch(h *Header) *LimitWatch {
	w := &LimitWatch{levels: slices.Concat(h.Levels, h.SubLevels), byID: map[uint64]int{}}
	for i, l := range w.levels {
		if l.ID != 0 {
			w.byID[l.ID] = i
		}
	}
	return w
}

// Add takes the next event.
func (w *LimitWatch) Add(e *Event) {
	if e.Kind != Period {
		return
	}
	i, ok := w.byID[e.Cgroup]
	if !ok {
		return
	}
	is := w.levels[i]
	is.QuotaNS, is.BurstNS = nil, e.Period.BurstNS
	if q := e.Period.QuotaNS; q > 0 && q < math.MaxInt64 {
		is.QuotaNS = &q
	}
	if sameLimit(w.levels[i], is) || w.changed(is.Path) {
		return
	}
	w.changes = append(w.changes, LimitChange{Before: w.levels[i], After: is, Seen: new(time.Duration(e.AtNS))})
}

func (w *LimitWatch) changed(path string) bool {
	return slices.ContainsFunc(w.changes, func(c LimitChange) bool { return c.Before.Path == path })
}

// Finish returns the changes of the whole recording, at most one a level: the first that was seen.
func (w *LimitWatch) Finish(f *Footer) []LimitChange {
	limitChanges := w.changes
	for _, c := range CompareLimits(w.levels, f.Levels) {
		if !w.changed(c.Before.Path) {
			limitChanges = append(limitChanges, c)
		}
	}
	return limitChanges
}
