package threadpool

import "math"

// runtimeCPUs describes how a runtime or library counts its CPUs. They disagree: of a limit of 1.5 CPUs some make
// 1, some 2, and some ignore it.
type runtimeCPUs struct {
	Key, Name string
	// Rule computes the CPUs from limit (in CPUs; host if there is none) and host (CPUs that it may run on).
	Rule         string
	Since, Until string
	Source       string

	rule *expr
	when evidence
}

// cpus is the CPU count that the runtime believes in, under a limit in CPUs (0 or less: none) on a host where
// it may run on so many CPUs. It is at least 1.
func (r runtimeCPUs) cpus(limit float64, host int) int { return visibleCPUs(r.rule, limit, host) }

func visibleCPUs(rule *expr, limit float64, host int) int {
	host = max(host, 1)
	if !(limit > 0) || limit > float64(host) {
		limit = float64(host)
	}
	n := limit
	if rule != nil {
		n = rule.eval(map[string]float64{"limit": limit, "host": float64(host)})
	}
	whole, _ := count(math.Ceil(n))
	return max(whole, 1)
}

// maxThreads is above the kernel's bound for a process (PID_MAX_LIMIT).
const maxThreads = 1 << 22

// count turns a formula's value into a whole number of threads, 1 to maxThreads. false: it is none.
func count(v float64) (int, bool) {
	if math.IsNaN(v) || math.IsInf(v, 0) || v > maxThreads {
		return 0, false
	}
	return max(1, int(math.Max(v, 1))), true
}
