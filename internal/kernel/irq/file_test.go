package irq

import (
	"testing"

	"k8s.io/utils/cpuset"
	"pgregory.net/rapid"

	"github.com/unthrottle/unthrottle/topology"
)

func TestMaskRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		set := cpuset.New(rapid.SliceOf(rapid.IntRange(0, 1100)).Draw(t, "cpus")...)
		back, err := topology.ParseMask(FormatMask(set))
		if err != nil || !back.Equals(set) {
			t.Fatalf("%s became %s, %v", set, back, err)
		}
	})
}
