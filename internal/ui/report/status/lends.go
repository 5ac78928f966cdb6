package status

import (
	"fmt"
	"io"
	"strings"

	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/page"
)

// maxLentTo bounds how many secondaries are named for one owner.
const maxLentTo = 8

// Lends writes a line for each container that shares its CPUs: with which secondaries,
// or why with none. names are the containers' by path.
func Lends(w io.Writer, sharings []remedy.Sharing, names map[string]string, style page.Style) error {
	name := func(path string) string {
		if n := names[path]; n != "" {
			return text.Shown(n)
		}
		return text.Shown(path)
	}
	var b strings.Builder
	for _, l := range sharings {
		to := make([]string, 0, maxLentTo)
		for i, path := range l.To {
			if i == maxLentTo {
				to = append(to, fmt.Sprintf("%d more", len(l.To)-i))
				break
			}
			to = append(to, name(path))
		}
		fmt.Fprintf(&b, "lends: %s its CPUs %s, ", name(l.Target), l.CPUs)
		switch {
		case l.Revoked != "":
			b.WriteString("revoked: on trial, or lending slowed it")
		case len(to) == 0:
			b.WriteString("to none: no secondary may have them")
		default:
			b.WriteString("while they idle, to " + strings.Join(to, ", "))
		}
		b.WriteByte('\n')
	}
	return style.Send(w, b.String())
}
