package pools

import (
	"fmt"
	"strconv"
	"strings"
)

// usual says what the default is, and what was set instead, for the inside of a bracket.
func (r Row) usual(limitCPUs float64, hostCPUs int) string {
	if r.Given != "" {
		return "its command line has " + r.Given
	}
	text := r.defaultWords()
	if r.size == nil || !r.size.uses("n") {
		return text
	}
	sees := seen(r.rule, limitCPUs, hostCPUs)
	why := plural(sees, "CPU")
	if r.sees != nil {
		sees, _ = count(*r.sees)
		why = plural(sees, "CPU") + " that it was told"
	}
	if n, ok := r.Size(float64(sees)); ok {
		text += fmt.Sprintf(", %d for %s", n, why)
	}
	return text
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
	text := "; its name may as well be of " + strings.Join(named, " or ")
	if more := len(r.Also) - len(named); more > 0 {
		text += " or " + plural(more, "other")
	}
	return text
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

func plural[N int | float64](n N, thing string) string {
	text := strings.TrimSuffix(strconv.FormatFloat(float64(n), 'f', 2, 64), ".00")
	if strings.Contains(text, ".") {
		text = strings.TrimRight(text, "0")
	}
	if n == 1 {
		return text + " " + thing
	}
	return text + " " + thing + "s"
}
