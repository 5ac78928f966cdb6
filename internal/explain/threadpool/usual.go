package threadpool

import (
	"fmt"
	"strings"

	"github.com/unthrottle/unthrottle/internal/text"
)

// usual says what the default is, and what was set instead, for the inside of a bracket.
func (r Row) usual(limitCPUs float64, hostCPUs int) string {
	if r.Given != "" {
		return "its command line has " + r.Given
	}
	usual := r.defaultWords()
	if r.size == nil || !r.size.uses("n") {
		return usual
	}
	sees := seen(r.rule, limitCPUs, hostCPUs)
	why := text.Count(sees, "CPU")
	if r.sees != nil {
		sees, _ = count(*r.sees)
		why = text.Count(sees, "CPU") + " that it was told"
	}
	if n, ok := r.Size(float64(sees)); ok {
		usual += fmt.Sprintf(", %d for %s", n, why)
	}
	return usual
}

// defaultWords is the default for people: the formula, words, or both.
func (r Row) defaultWords() string {
	switch {
	case r.Formula == "":
		return "default: " + r.Default
	case r.Default == "":
		return "default " + r.Formula
	}
	return "default " + r.Formula + ": " + r.Default
}

// maxAlso is how many other libraries are named.
const maxAlso = 2

// doubt says what else the pool may be.
func (r Row) doubt() string {
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

// counts says when a new value of the setting counts.
func (r Row) counts() string {
	switch {
	case !r.Live:
		return "from its next start on"
	case r.LiveHow == "":
		return "while it runs"
	}
	return "while it runs, by " + r.LiveHow
}
