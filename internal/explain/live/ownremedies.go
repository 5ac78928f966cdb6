package live

import (
	"fmt"
	"math"
	"slices"

	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/explain/sampled/sampler"
	"github.com/unthrottle/unthrottle/internal/text"
)

// ownRemedies are what somebody without rights on the host can do where a quota stops the container, with what counters tell of
// its effect. There is none where no quota stops it.
func ownRemedies(e *diagnose.Explanation, found sampler.Found) []string {
	all := []string{}
	if len(e.Causes) == 0 || e.Causes[0].Stopped == nil || e.LimitCPUs == nil {
		return all
	}
	first := e.Causes[0]
	if e.Cause == diagnose.Ancestor {
		who := "the containers beside it"
		if len(first.Guilty) > 0 {
			who = text.EscapePath(first.Guilty[0])
		}
		all = append(all, fmt.Sprintf("a limit for %s, or a larger one for the pod: they share the quota", who))
	}
	for _, name := range first.Guilty {
		i := slices.IndexFunc(e.Pools, func(p diagnose.PoolUse) bool { return p.Name == name })
		if i < 0 {
			continue
		}
		switch p := e.Pools[i]; {
		case p.Advice != "":
			all = append(all, "the size of pool `"+name+"`: "+p.Advice)
		case float64(p.Widest) > math.Ceil(*e.LimitCPUs) && p.Setting != "":
			all = append(all, fmt.Sprintf("the size of pool `%s`: %s (%s), so that fewer than %d run at once", name, p.Setting, p.Library, p.Widest))
		case float64(p.Widest) > math.Ceil(*e.LimitCPUs):
			all = append(all, fmt.Sprintf("fewer than %d threads at once in pool `%s`: no library is known by its name, and its setting neither",
				p.Widest, name))
		}
	}
	if limit := widestFills(e, found.CPUsAllowed); limit > 0 {
		all = append(all, fmt.Sprintf("a limit of %s in the manifest: its widest moments do not use more at once, so that no quota "+
			"stops them", text.CPUs(limit)))
	} else if e.Cause != diagnose.Ancestor {
		all = append(all, "a larger limit in the manifest: by how much, counters do not tell")
	}
	if found.LongAll >= enoughSeconds && e.Cause != diagnose.Shortage {
		all = append(all, fmt.Sprintf("the same limit in periods of 1 s, the kubelet's cpuCFSQuotaPeriod, where the platform lets you set "+
			"it: it would have stopped the container in %d of %d s, those in which it used up its limit", found.LongFull, found.LongAll))
	}
	return all
}

// enoughSeconds is how many seconds tell what a period of one second would do.
const enoughSeconds = 5

// widestFills is a limit that the widest moments do not exceed: what its threads wanted at once, or all CPUs that they may use; 0:
// it always wants more.
func widestFills(e *diagnose.Explanation, allowed int) float64 {
	if e.Cause != diagnose.Burst && e.Cause != diagnose.TinyLimit && e.Cause != diagnose.Pool {
		return 0
	}
	most := 0
	for _, b := range e.Wanted {
		if b.Time > 0 {
			most = max(most, b.CPUs)
		}
	}
	if allowed > 0 {
		most = min(most, allowed)
	}
	return float64(most)
}
