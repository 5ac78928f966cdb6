package live

import (
	"testing"
	"testing/fstest"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/load/cgrouptest"
	"github.com/unthrottle/unthrottle/internal/see/recording"
	"github.com/unthrottle/unthrottle/test/lab/require"
)

// A recording knows the quotas inside its container: their threads are held back by them.
func TestTheHeaderHasTheQuotasInside(t *testing.T) {
	require.Root(t)
	tree := cgrouptest.New(t)
	machine := tree.Make("machine")
	tree.Make("machine/emulator")
	inner := tree.Make("machine/vcpu0")
	tree.Limit(inner, 0.25)
	group, err := tree.Host.Group(machine)
	if err != nil {
		t.Fatal(err)
	}
	var h recording.Header
	Options{Root: fstest.MapFS{}, Host: tree.Host, Target: container.Container{Group: group}}.completeLevels(&h)
	id, err := tree.Host.ID(cgroup.CPU, inner)
	if err != nil || len(h.SubLevels) != 1 || h.SubLevels[0].Path != inner || h.SubLevels[0].ID != id || h.SubLevels[0].QuotaNS == nil {
		t.Errorf("levels below: %+v, %v", h.SubLevels, err)
	}
}
