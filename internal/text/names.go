package text

import (
	"fmt"
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
