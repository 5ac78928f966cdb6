package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/unthrottle/unthrottle/internal/cure/remedy"
)

// MayNames are the remedies that can grant more CPU than the limit, in one text.
func MayNames() string {
	var names []string
	for _, k := range remedy.GrantingMore() {
		names = append(names, string(k))
	}
	return strings.Join(names, ", ")
}

// ParseMay reads the names of remedies that may grant more CPU than the limit.
func ParseMay(names []string) ([]remedy.Kind, error) {
	var may []remedy.Kind
	granting := remedy.GrantingMore()
	for _, name := range names {
		kind := remedy.Kind(name)
		if !slices.Contains(granting, kind) {
			return nil, fmt.Errorf("%.30q grants no more CPU than the limit: give some of %s", name, MayNames())
		}
		may = append(may, kind)
	}
	return may, nil
}
