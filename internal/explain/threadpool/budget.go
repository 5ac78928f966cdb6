package threadpool

import (
	"strconv"
	"strings"

	"github.com/unthrottle/unthrottle/internal/text"
)

// Classes are the classes of tasks of the project's libraries, the most urgent first.
var Classes = []string{"io", "app", "background"}

// Budget is what the project's library in a process says that it has in force: see docs/howto/in-your-go-code.md. The process
// chose it, so it is a claim.
type Budget struct {
	// LimitCPUs is the limit that it follows; nil: it knows of none.
	LimitCPUs *float64 `json:"limit_cpus"`
	// Paced says that the classes app and background hold back in time.
	Paced bool `json:"paced"`
	// Permits are how many tasks of each of [Classes] run at once; 0: as many as come.
	Permits map[string]int `json:"permits"`
	// GOMAXPROCS is what it set; 0: it left Go's or the user's, or is not of Go.
	GOMAXPROCS int `json:"gomaxprocs,omitempty"`
}

// Known returns the budget with no permits but those of [Classes].
func (b Budget) Known() Budget {
	known := map[string]int{}
	for _, class := range Classes {
		if n, ok := b.Permits[class]; ok {
			known[class] = n
		}
	}
	b.Permits = known
	return b
}

// Text says what is in force.
func (b Budget) Text() string {
	all := []string{"it knows of no limit"}
	if b.LimitCPUs != nil {
		all[0] = "limit " + text.CPUs(*b.LimitCPUs)
	}
	if b.Paced {
		all = append(all, "pacing on")
	} else {
		all = append(all, "pacing off")
	}
	for _, class := range Classes {
		switch n, ok := b.Permits[class]; {
		case ok && n == 0:
			all = append(all, "any number of "+class+" tasks at once")
		case ok:
			all = append(all, strconv.Itoa(n)+" "+class+" tasks at once")
		}
	}
	if b.GOMAXPROCS > 0 {
		all = append(all, "GOMAXPROCS "+strconv.Itoa(b.GOMAXPROCS))
	}
	return strings.Join(all, ", ")
}
