package schedule_test

import (
	"testing"

	"github.com/unthrottle/unthrottle/internal/see/recording"
	"github.com/unthrottle/unthrottle/internal/see/schedule"
)

// A cgroup that no level is blames none of them, and an event without a cgroup only the one that has a limit alone.
func TestLevelOfAnUnknownCgroup(t *testing.T) {
	h := &recording.Header{
		Levels: []recording.Level{{Path: "/p/c", ID: 5, QuotaNS: new(int64(8e7)), PeriodNS: 1e8},
			{Path: "/p", ID: 4, QuotaNS: new(int64(4e7)), PeriodNS: 1e8}, {Path: "/", ID: 1}},
		SubLevels: []recording.Level{{Path: "/p/c/d", ID: 6, QuotaNS: new(int64(9e7)), PeriodNS: 1e8}},
	}
	const unlisted = 4
	ls := schedule.NewLevels(h)
	for id, want := range map[uint64]int{5: 0, 4: 1, 1: 2, 6: 3, 99: unlisted, 0: unlisted} {
		if got := ls.Of(id); got != want || ls.All[got].Unlisted != (want == unlisted) {
			t.Errorf("cgroup %d is level %d, not %d", id, got, want)
		}
	}
	if ls.Least != 1 {
		t.Errorf("level %d has the least limit", ls.Least)
	}
	h.Levels[0].QuotaNS, h.SubLevels = nil, nil
	if got := schedule.NewLevels(h).Of(0); got != 1 {
		t.Errorf("the only limit is that of level %d, not 1", got)
	}
}
