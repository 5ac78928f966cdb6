package sampled

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/bandwidth"
	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
)

// A container sees no cgroup above its own, and its pod's quota may stop it: Kubernetes gives the pod of one container the container's
// limit. What is left to see is that all its threads wait, for long, and get on at one moment of a period.
const (
	// leastHidden is what a thread waits at least in a stop by a quota that is not visible, and idleHidden the share of that time in
	// which the container may have run: behind others' threads a container stands still for a few slices at most.
	leastHidden = 10 * time.Millisecond
	idleHidden  = 0.05
	// Stops must end so near to one moment of a period (1: all at the same one), and so many that it is no chance: by Rayleigh's test
	// ends at any moment do so in exp(-5.5), 4 of 1,000 looks.
	leastPhase  = 0.85
	leastBeyond = 5.5
	// sameQuota is the share of the container's own quota that it uses from stop to stop where the quota above is as large: then both
	// are one limit, as in a pod of one container.
	sameQuota = 0.9
)

// hidden are stops by a quota that is not visible.
type hidden struct {
	ends   []hiddenEnd // in the order of time
	period time.Duration
	moment time.Duration // of the period, at which they end
	own    bool          // the quota is as large as the container's own
}

// hiddenEnd is the end of one: in which sample, when, and how long nothing ran before it. used is the CPU time of the period
// that it ended; -1: not all of that was seen.
type hiddenEnd struct{ sample, at, length, used time.Duration }

// findHidden looks for stops that no counter tells. nil: there are none, or can be none.
func findHidden(t *Target, log []Sample) *hidden {
	if !t.Hidden {
		return nil
	}
	h := &hidden{period: bandwidth.DefaultPeriod}
	quota := time.Duration(0)
	if len(t.Levels) > 0 && t.Levels[0].QuotaNS != nil && *t.Levels[0].QuotaNS > 0 && t.Levels[0].PeriodNS > 0 {
		h.period, quota = time.Duration(t.Levels[0].PeriodNS), time.Duration(*t.Levels[0].QuotaNS)
	}
	var window, stopped time.Duration
	h.ends, window = longWaits(log, h.period)
	var used []time.Duration
	for _, e := range h.ends {
		if stopped += e.length; e.used >= 0 {
			used = append(used, e.used)
		}
	}
	at, together := phase(h.ends, h.period)
	if h.moment = at; together < leastPhase ||
		float64(len(h.ends))*together*together < leastBeyond || float64(stopped) < diagnose.Negligible*float64(window) {
		return nil
	}
	slices.Sort(used)
	h.own = quota > 0 && len(used) > 0 && float64(used[len(used)/2]) >= sameQuota*float64(quota)
	return h
}

// HiddenStops is how many stops by a quota that is not visible samples show so far.
func HiddenStops(t Target, log []Sample) int {
	if h := findHidden(&t, log); h != nil {
		return len(h.ends)
	}
	return 0
}

// ended tells whether one ended in a sample.
func (h *hidden) ended(sample time.Duration) bool {
	_, found := slices.BinarySearchFunc(h.ends, sample, func(e hiddenEnd, at time.Duration) int { return cmp.Compare(e.sample, at) })
	return found
}

// expired tells whether a period of the quota ended between two samples: with a stop, or with none near it.
func (h *hidden) expired(from, to time.Duration) bool {
	if h.ended(to) {
		return true
	}
	if to < h.moment {
		return false
	}
	at := to - (to-h.moment)%h.period
	i, _ := slices.BinarySearchFunc(h.ends, at, func(e hiddenEnd, at time.Duration) int { return cmp.Compare(e.at, at) })
	for _, e := range h.ends[max(0, i-1):min(len(h.ends), i+1)] {
		if (e.at - at).Abs() < h.period/4 {
			return false
		}
	}
	return at > from
}

// ran is the CPU time of the container between two samples.
type ran struct{ from, to, used time.Duration }

// longWaits are the moments at which a thread got on that had waited for long, while no thread of the container ran and no counter
// tells of a stop. window is the time in which they were looked for.
func longWaits(log []Sample, period time.Duration) (ends []hiddenEnd, window time.Duration) {
	threads := map[key]Thread{}
	var steps []ran // of the episode
	for i := range log {
		s := &log[i]
		apart := i == 0 || s.Apart
		if apart {
			steps = steps[:0]
		}
		var longest, used, after time.Duration
		for _, now := range s.Threads {
			k := key{now.PID, now.TID}
			was, known := threads[k]
			threads[k] = now
			if apart || !known || now.Ran < was.Ran || now.Waited < was.Waited {
				continue
			}
			used += now.Ran - was.Ran
			if waited := now.Waited - was.Waited; waited > longest {
				longest, after = waited, now.Ran-was.Ran
			}
		}
		if apart {
			continue
		}
		from := log[i-1].At
		window += s.At - from
		end := s.At - min(after, s.At-from)
		began := end - longest
		idle := end
		for _, one := range slices.Backward(steps) {
			if float64(one.used) > idleHidden*float64(one.to-one.from) {
				break
			}
			idle = one.from
		}
		steps = append(steps, ran{from, s.At, used})
		if length := end - max(began, idle); length >= leastHidden && !counted(&log[i-1], s) {
			ends = append(ends, hiddenEnd{s.At, end, length, usedSince(steps[:len(steps)-1], end-period)})
		}
	}
	return ends, window
}

// usedSince is the CPU time of steps from a time on; -1: they begin later.
func usedSince(steps []ran, since time.Duration) (sum time.Duration) {
	if len(steps) == 0 || steps[0].from > since {
		return -1
	}
	for _, one := range slices.Backward(steps) {
		if one.to <= since {
			break
		}
		sum += one.used // also of the step in which the period began: before that it was stopped
	}
	return sum
}

// counted tells whether a counter grew of time in which a quota held threads back.
func counted(was, is *Sample) bool {
	for i, c := range is.Counters {
		if c != nil && i < len(was.Counters) && was.Counters[i] != nil && c.Throttled > was.Counters[i].Throttled {
			return true
		}
	}
	return false
}

// phase is the moment of a period at which ends are on the mean, and how near to it they are: the length of the mean of their directions
// on a circle, 1 where all are at one moment.
func phase(ends []hiddenEnd, period time.Duration) (at time.Duration, together float64) {
	x, y := 0.0, 0.0
	for _, e := range ends {
		angle := 2 * math.Pi * float64(e.at%period) / float64(period)
		x, y = x+math.Cos(angle), y+math.Sin(angle)
	}
	turn := math.Mod(math.Atan2(y, x)/(2*math.Pi)+1, 1)
	return time.Duration(turn * float64(period)), math.Hypot(x, y) / float64(max(1, len(ends)))
}
