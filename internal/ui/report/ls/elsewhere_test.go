package ls

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/unthrottle/unthrottle/internal/see/observe"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/listing"
)

// TestTheSameTableElsewhere: what another program reads from the JSON shows the same table, with every column.
func TestTheSameTableElsewhere(t *testing.T) {
	var b bytes.Buffer
	if err := JSON(&b, examples()); err != nil {
		t.Fatal(err)
	}
	var document listing.Document
	if err := json.Unmarshal(b.Bytes(), &document); err != nil {
		t.Fatal(err)
	}
	var read []observe.Observation
	for i := range document.Containers {
		read = append(read, document.Containers[i].Observation())
	}
	for _, wide := range []bool{false, true} {
		want, got := written(t, examples(), Options{Wide: wide}), written(t, read, Options{Wide: wide})
		if want != got {
			t.Errorf("wide %v: %s\nwant %s", wide, got, want)
		}
	}
}
