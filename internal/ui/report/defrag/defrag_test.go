package defrag

import (
	"strings"
	"testing"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/placement"
	"github.com/unthrottle/unthrottle/topology"
)

func TestWrite(t *testing.T) {
	before := QualityOf(placement.Score{Crossings: [3]placement.Crossing{{Level: topology.LevelSocket, Avoidable: 1, Forced: 1}}, Stranded: 3})
	after := QualityOf(placement.Score{Crossings: [3]placement.Crossing{{Level: topology.LevelSocket}}, Fits: placement.Fits{NUMANode: 4}})
	d := Repair{Before: before, After: after, Planned: true,
		Moves: []Move{
			MoveOf(placement.Move{Container: "/a/\xff", From: cpuset.New(4, 5), To: cpuset.New(1, 2), Cost: 2}, "way\x1b[31m"),
			MoveOf(placement.Move{Container: "/b", From: cpuset.New(3, 6), To: cpuset.New(4, 5), Cost: 2, Gain: 2, Overlaps: true}, "b"),
		},
		LeftAlone: []LeftAlone{{Path: "/c", Name: "c\n", Why: "1 of its 4 threads"}},
	}
	show := func() string {
		var b strings.Builder
		if err := Write(&b, d); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	text := show()
	for _, want := range []string{"CPUs 4-5 -> 1-2  (makes way, 2 of 2 CPUs change)", "b: CPUs 3,6 -> 4-5  (2 fewer groups crossed, 2 of 2 CPUs change, overlaps",
		"left alone  c", "socket 2 -> 0", "0 -> 4 CPUs; stranded half-cores: 3 -> 0"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
	if strings.Contains(text, "\x1b") || strings.Contains(d.Moves[0].Path, "\xff") {
		t.Errorf("a stranger's name is not escaped: %q", text)
	}
	d.Planned, d.Moves[0].Done, d.Moves[0].Seconds = false, true, 0.0123
	if text := show(); !strings.Contains(text, "1. moved  way") || !strings.Contains(text, "12.3ms") || !strings.Contains(text, "2. not moved  b") {
		t.Error(text)
	}
	d.Moves = nil
	if text := show(); !strings.Contains(text, "nothing to move") {
		t.Error(text)
	}
}
