package threadpool

import (
	"fmt"
	"strings"

	"github.com/unthrottle/unthrottle/internal/text"
)

// describeDefault describes the default, and a value on the command line, for use in brackets.
func (r Row) describeDefault(limitCPUs float64, hostCPUs int) string {
	if r.Given != "" {
		return "it was started with " + r.Given
	}
	usual := r.defaultText()
	if r.size == nil || !r.size.uses("n") {
		return usual
	}
	sees := visibleCPUs(r.rule, limitCPUs, hostCPUs)
	why := text.Count(sees, "CPU")
	if r.sees != nil {
		sees, _ = count(*r.sees)
		why = text.Count(sees, "CPU") + " that it was told"
	}
	if n, ok := r.defaultThreads(float64(sees)); ok {
		usual += fmt.Sprintf(", %d for %s", n, why)
	}
	return usual
}

// defaultText describes the default: the formula, words, or both.
func (r Row) defaultText() string {
	switch {
	case r.Formula == "":
		return "default: " + r.Default
	case r.Default == "":
		return "default " + r.Formula
	}
	return "default " + r.Formula + ": " + r.Default
}

// maxAlso is how many other libraries a sentence names.
const maxAlso = 2

// otherLibraries names the other pools that this may be.
func (r Row) otherLibraries() string {
	if len(r.Also) == 0 {
		return ""
	}
	named := r.Also[:min(len(r.Also), maxAlso)]
	doubt := "; its name may as well be of " + strings.Join(named, " or ")
	if more := len(r.Also) - len(named); more > 0 {
		doubt += " or " + text.Count(more, "other")
	}
	return doubt
}

// effectiveFrom says from when on a new value of the setting takes effect.
func (r Row) effectiveFrom() string {
	switch {
	case !r.Live:
		return "from its next start on"
	case r.LiveHow == "":
		return "while it runs"
	}
	return "while it runs, by " + r.LiveHow
}
