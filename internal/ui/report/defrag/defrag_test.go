package defrag

import (
	"strings"
	"testing"
	"time"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/placing/rebalance"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/page"
	"github.com/unthrottle/unthrottle/placement"
	"github.com/unthrottle/unthrottle/topology"
)

func TestWrite(t *testing.T) {
	d := New(rebalance.Defragmented{
		Before:  placement.Score{Crossings: [3]placement.Crossing{{Level: topology.LevelSocket, Avoidable: 1, Forced: 1}}, Stranded: 3},
		After:   placement.Score{Crossings: [3]placement.Crossing{{Level: topology.LevelSocket}}, Fits: placement.Fits{NUMANode: 4}},
		Planned: true,
		Steps: []rebalance.Step{
			{Move: placement.Move{Container: "/a/\xff", From: cpuset.New(4, 5), To: cpuset.New(1, 2), Cost: 2}, Name: "way\x1b[31m"},
			{Move: placement.Move{Container: "/b", From: cpuset.New(3, 6), To: cpuset.New(4, 5), Cost: 2, Gain: 2,
				Overlaps: true}, Name: "b",
				Done: &rebalance.Moved{ID: "t1", Took: time.Millisecond}},
		},
		LeftAlone: []rebalance.LeftAlone{{Path: "/c", Name: "c\n", Why: "1 of its 4 threads"}},
	})
	if b := d.Moves[1]; !b.Done || b.ID != "t1" || b.Seconds != 0.001 || d.Moves[0].Done {
		t.Errorf("%+v", d.Moves)
	}
	d.Moves[1].Done = false
	show := func() string {
		var b strings.Builder
		if err := Write(&b, d, page.Style{Width: page.Unbounded}); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	text := show()
	for _, want := range []string{"CPUs 4-5 -> 1-2  (makes way, 2 of 2 CPUs change)",
		"b: CPUs 3,6 -> 4-5  (2 fewer groups crossed, 2 of 2 CPUs change, overlaps",
		"left alone  c", "socket 2 -> 0", "0 -> 4 CPUs; stranded half-cores: 3 -> 0"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
	if strings.Contains(text, "\x1b") || strings.Contains(d.Moves[0].Path, "\xff") {
		t.Errorf("a stranger's name is not escaped: %q", text)
	}
	d.Planned, d.Moves[0].Done, d.Moves[0].Seconds = false, true, 0.0123
	if text := show(); !strings.Contains(text, "1. moved  way") || !strings.Contains(text, "12 ms") ||
		!strings.Contains(text, "2. not moved  b") {
		t.Error(text)
	}
	d.Moves = nil
	if text := show(); !strings.Contains(text, "nothing to move") {
		t.Error(text)
	}
}
