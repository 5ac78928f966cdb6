package text

import (
	"fmt"
	"slices"
	"strings"
)

// maxNames bounds how many names Names lists.
const maxNames = 8

// Names lists strangers' names for people: at most 8, each as Name, and the number of the others.
func Names(all []string) string {
	more := ""
	if len(all) > maxNames {
		more = fmt.Sprintf(" and %d more", len(all)-maxNames)
		all = all[:maxNames]
	}
	shown := make([]string, len(all))
	for i, name := range all {
		shown[i] = Name(name)
	}
	return strings.Join(shown, ", ") + more
}

// Name is a stranger's name, at most 400 bytes of it. It is quoted and escaped only where the name needs it.
func Name(name string) string {
	q := fmt.Sprintf("%.400q", name)
	if q == `"`+name+`"` && !strings.Contains(name, " ") && name != "" {
		return name
	}
	return q
}

// EachOnce joins reasons and the like, each once, in the order in which they first occur. Empty ones are left out.
func EachOnce(all []string) string {
	var once []string
	for _, one := range all {
		if one != "" && !slices.Contains(once, one) {
			once = append(once, one)
		}
	}
	return strings.Join(once, "; ")
}
