package ls

import (
	"io"

	"github.com/unthrottle/unthrottle/internal/see/observe"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/jsonout"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/listing"
)

// Document is `ls --json`.
type Document = listing.Document

// JSON writes observations as one JSON document, worst first.
func JSON(w io.Writer, observations []observe.Observation) error {
	items := make([]listing.Item, 0, len(observations))
	for _, o := range worstFirst(observations) {
		items = append(items, listing.Of(o))
	}
	return jsonout.Write(w, listing.Schema, Document{Containers: items})
}
