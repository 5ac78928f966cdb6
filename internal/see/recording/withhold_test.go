package recording_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/unthrottle/unthrottle/internal/see/recording"
)

// TestWithhold: no name, path or quota of others is left in any string, and all that is the container's own stays.
func TestWithhold(t *testing.T) {
	all := golden()
	all.Events = slices.Insert(all.Events, 2,
		recording.Event{AtNS: 10, Kind: recording.Define, Owner: 4, OwnerKind: recording.OwnerProcess, Text: "batch-agent", TGID: 77},
		recording.Event{AtNS: 10, Kind: recording.Define, Owner: 5, OwnerKind: recording.OwnerProcess, Text: "unthrottle", TGID: 78})
	all.Header.Recorder = 78 // is told: its readers have that program too
	var out bytes.Buffer
	if err := recording.Withhold(bytes.NewReader(written(t, all)), &out); err != nil {
		t.Fatal(err)
	}
	got, err := recording.Read(bytes.NewReader(out.Bytes()))
	if err != nil || got.Truncated {
		t.Fatal(err, got.Truncated)
	}
	if len(got.Events) != len(all.Events) || got.Header.Processes[0].Exe != "/usr/bin/x" || *got.Footer.Periods != 2 {
		t.Error("what is the container's own is not whole")
	}
	for i, e := range got.Events {
		if strings.Contains(e.Text, "batch") || e.Kind == recording.Define && (e.Cgroup != 0 || e.TGID != 0 && e.TGID != 78) {
			t.Errorf("event %d shows %+v", i, e)
		}
		if e.AtNS != all.Events[i].AtNS || e.Owner != all.Events[i].Owner {
			t.Errorf("event %d is another: %+v", i, e)
		}
	}
	if n := got.Footer.Neighbours; len(n) != 1 || n[0] != (recording.Neighbour{Owner: 3, Name: "another container 3"}) {
		t.Errorf("neighbours %+v", n)
	}
	if got.Events[1].Text != "another container 3" || got.Events[2].Text != "another process 4" ||
		got.Events[3].TGID != 78 {
		t.Errorf("owners are called %q and %q", got.Events[1].Text, got.Events[2].Text)
	}
	// A recording that was cut off stays one, and does not gain a footer.
	out.Reset()
	whole := written(t, all)
	if err := recording.Withhold(bytes.NewReader(whole[:len(whole)-8]), &out); err != nil {
		t.Fatal(err)
	}
	if cut, err := recording.Read(bytes.NewReader(out.Bytes())); err != nil || !cut.Truncated {
		t.Errorf("cut off is %v, %v", cut.Truncated, err)
	}
}
