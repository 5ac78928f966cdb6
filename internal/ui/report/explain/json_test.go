package explain

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
)

// TestJSONGolden: programs read this output. Keys may be added to it, none may go or mean something else.
// UPDATE_GOLDEN=1 writes the files anew.
func TestJSONGolden(t *testing.T) {
	e := example()
	for i := range e.Timeline {
		e.Timeline[i].Cells = e.Timeline[i].Cells[:12]
	}
	calm := diagnose.Explanation{Target: "calm", Cause: diagnose.None, Verdict: "Nothing wrong.", MeanWidth: new(0.0),
		Causes: []diagnose.RankedCause{{Cause: diagnose.None, Evidence: "idle"}}, Stopped: new(time.Duration(0)), StoppedIntervals: new(0),
		Width: []diagnose.Bar{{Time: ms}}, Wanted: []diagnose.Bar{{Time: ms}}, Window: ms,
		Pools: []diagnose.PoolUse{}, Neighbours: []diagnose.NeighbourUse{}, LostEvents: new(uint64(0))}
	for name, e := range map[string]diagnose.Explanation{"whole": e, "calm": calm} {
		var got bytes.Buffer
		if err := JSON(&got, e, nil); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join("testdata", "explain-"+name+".json")
		if os.Getenv("UPDATE_GOLDEN") != "" {
			if err := os.WriteFile(path, got.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got.String()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
