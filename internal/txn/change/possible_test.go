package change_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/txn/change"
)

// What cannot be ordered is left with its reason, and its whole cgroup with it; the others are ordered as if it were
// not there.
func TestOrderPossible(t *testing.T) {
	limit := func(path, quota, burst string) map[change.Setting]string {
		at := func(file string) change.Setting {
			return change.Setting{Controller: cgroup.CPU, Path: path, File: file}
		}
		return map[change.Setting]string{at("cpu.cfs_quota_us"): quota, at("cpu.cfs_period_us"): "100000", at("cpu.cfs_burst_us"): burst}
	}
	for _, c := range []struct {
		name    string
		values  []map[change.Setting]string
		changes []change.Change
		steps   []string
		left    []string
		why     string
	}{
		{"all can", []map[change.Setting]string{limit("/a", "-1", "100000")},
			[]change.Change{quota("/a", "-1", "200000"), set("/b", "0", "0-1")},
			[]string{"/a cpu.cfs_quota_us -1>200000", "/b cpuset.cpus 0>0-1"}, nil, ""},
		{"a burst of others is above the quota", []map[change.Setting]string{limit("/a", "-1", "300000"), limit("/b", "-1", "0")},
			[]change.Change{quota("/a", "-1", "200000"), set("/a", "6", "0-7"), quota("/b", "-1", "200000"), set("/b", "0-5", "0-7")},
			[]string{"/b cpu.cfs_quota_us -1>200000", "/b cpuset.cpus 0-5>0-7"},
			[]string{"/a cpu.cfs_quota_us -1>200000", "/a cpuset.cpus 6>0-7"}, "burst 300ms is above the quota 200ms"},
		{"two of them, and one is no list", []map[change.Setting]string{limit("/a", "-1", "300000")},
			[]change.Change{quota("/a", "-1", "200000"), set("/b", "all", "0-7"), set("/c", "0", "0-7")},
			[]string{"/c cpuset.cpus 0>0-7"}, []string{"/a cpu.cfs_quota_us -1>200000", "/b cpuset.cpus all>0-7"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := change.State{Versions: map[cgroup.Controller]cgroup.Version{cgroup.CPU: cgroup.V1, cgroup.CPUSet: cgroup.V1},
				Values: map[change.Setting]string{}}
			for _, values := range c.values {
				for key, value := range values {
					s.Values[key] = value
				}
			}
			steps, left := change.OrderPossible(s, slices.Clone(c.changes))
			if diff := cmp.Diff(c.steps, lines(steps)); diff != "" {
				t.Error(diff)
			}
			var why, changes = "", []change.Change(nil)
			for _, l := range left {
				changes, why = append(changes, l.Change), why+fmt.Sprintln(l.Err)
			}
			if diff := cmp.Diff(c.left, lines(changes)); diff != "" || !strings.Contains(why, c.why) {
				t.Errorf("left because %s:\n%s", why, diff)
			}
		})
	}
}
