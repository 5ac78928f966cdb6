package placement_test

import (
	"fmt"
	"testing"
	"testing/fstest"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/kernel/topologytest"
	"github.com/unthrottle/unthrottle/placement"
	"github.com/unthrottle/unthrottle/topology"
)

// TestWholeCoresWithoutClusters places whole cores on a machine of two threads per core, whose kernel knows
// neither dies nor clusters and lists the thread alone there.
func TestWholeCoresWithoutClusters(t *testing.T) {
	for _, number := range []string{"-1", ""} {
		tree := topologytest.Shape{CoresPerL3: 4, Threads: 2}.Tree()
		for id := range 8 {
			for _, level := range []string{"die", "cluster"} {
				file := fmt.Sprintf("devices/system/cpu/cpu%d/topology/%s_", id, level)
				tree[file+"cpus_list"] = &fstest.MapFile{Data: fmt.Appendln(nil, id), Mode: 0o444}
				if number != "" {
					tree[file+"id"] = &fstest.MapFile{Data: []byte(number), Mode: 0o444}
				}
			}
		}
		m, err := topology.Read(tree)
		if err != nil {
			t.Fatal(err)
		}
		n, refused, err := placement.NewNode(placement.State{
			Machine: m, Containers: []placement.Container{{Name: "a", CPUs: 2, FullCores: true}}})
		if err != nil || len(refused) > 0 {
			t.Fatal(err, refused)
		}
		h, _ := n.Find("a")
		if got := n.Placed(h).Own; !got.Equals(cpuset.New(0, 4)) {
			t.Errorf("die and cluster %q: two CPUs as whole cores are %s, want 0,4", number, got)
		}
	}
}
