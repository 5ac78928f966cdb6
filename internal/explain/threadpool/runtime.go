package threadpool

import "math"

// Runtime is how a runtime or library counts the CPUs it has. They disagree: of a limit of 1.5 CPUs some make 1, some 2,
// and some do not look at it at all.
type Runtime struct {
	Key, Name string
	// Rule gives the CPUs from limit (CPUs, host where there is none) and host (CPUs it may run on).
	Rule         string
	Since, Until string
	Source       string

	rule *expr
	when evidence
}

// CPUs is what the runtime believes it has, under a limit in CPUs (0 or less: none) on a host where it may run on so many
// CPUs. At least 1.
func (r Runtime) CPUs(limit float64, host int) int { return seen(r.rule, limit, host) }

func seen(rule *expr, limit float64, host int) int {
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

// Expectation is a runtime with the CPUs that it believes it has.
type Expectation struct {
	Runtime Runtime
	CPUs    int
}

// Expected is what each runtime of the table makes of a limit: see [Runtime.CPUs].
func (t *Table) Expected(limit float64, host int) []Expectation {
	var all []Expectation
	for _, r := range t.runtimes {
		all = append(all, Expectation{r, r.CPUs(limit, host)})
	}
	return all
}

// maxThreads is more than the kernel gives a process (PID_MAX_LIMIT).
const maxThreads = 1 << 22

// count turns a formula's value into a number of threads: whole, 1 to maxThreads. false: it is none.
func count(v float64) (int, bool) {
	if math.IsNaN(v) || math.IsInf(v, 0) || v > maxThreads {
		return 0, false
	}
	return max(1, int(math.Max(v, 1))), true
}
