package apply

import (
	"fmt"
	"slices"
	"strings"

	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/txn"
)

// maxTargets bounds how many targets of one name an error lists.
const maxTargets = 8

// FindTarget finds the target that is meant by an id, a path or a name; "" is
// none. path is the name taken for a path. Several targets of the name are an
// error that lists them: the user says which one is meant.
func FindTarget(inForce []txn.InForce, name, path string) (string, error) {
	var named, ending []string
	for _, f := range inForce {
		switch {
		case f.ID == name, strings.HasPrefix(name, "/") && f.Target == path:
			return f.Target, nil
		case (f.Name == name || f.Target == path) && !slices.Contains(named, f.Target):
			named = append(named, f.Target)
		case name != "" && strings.HasSuffix(f.Target, "/"+name) && !slices.Contains(ending, f.Target):
			ending = append(ending, f.Target)
		}
	}
	if len(named) == 0 {
		named = ending // the last components of a path, as for every other command
	}
	if len(named) <= 1 {
		return strings.Join(named, ""), nil
	}
	var list []string
	for _, target := range named[:min(len(named), maxTargets)] {
		list = append(list, fmt.Sprintf("%q", target))
	}
	if more := len(named) - len(list); more > 0 {
		list = append(list, fmt.Sprintf("%d more", more))
	}
	return "", fmt.Errorf("%q is the name of %d targets, %s: give the path of the one that is meant, or its id "+
		"('unthrottle status --json')", text.Sanitize(name, 128), len(named), strings.Join(list, ", "))
}
