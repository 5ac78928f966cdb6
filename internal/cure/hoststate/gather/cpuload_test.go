package gather

import (
	"testing"
	"testing/fstest"
	"time"

	"github.com/unthrottle/unthrottle/internal/kernel/procfs"
)

func TestLoads(t *testing.T) {
	const s = time.Second
	before := map[int]procfs.Times{0: {All: 10 * s, Idle: 9 * s}, 1: {All: 10 * s, Idle: 10 * s}, 2: {All: 5 * s},
		3: {All: 9 * s}, 4: {All: s, Idle: s}}
	after := map[int]procfs.Times{0: {All: 20 * s, Idle: 13 * s, Steal: s}, 1: {All: 20 * s, Idle: 20 * s},
		3: {All: 8 * s}, 4: {All: 2 * s}, 5: {All: s}}
	got := loads(before, after)
	if len(got) != 2 || got[0] != 0.6 || got[1] != 0 {
		t.Errorf("got %v", got)
	}
	if loads(before, before) != nil || loads(nil, after) != nil {
		t.Error("a load without time")
	}
	if got := cpuTimes(fstest.MapFS{}); got != nil {
		t.Errorf("read where there is none: %v", got)
	}
}
