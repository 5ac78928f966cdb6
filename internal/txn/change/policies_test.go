package change

import (
	"fmt"
	"testing"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/schedpolicy"
)

// A container's threads hurry once its CPUs are its own, and calm down before they become anybody's; the entry that
// finds the children comes before there can be any.
func TestOrderOfPolicies(t *testing.T) {
	s := State{Versions: map[cgroup.Controller]cgroup.Version{cgroup.CPU: cgroup.V1, cgroup.CPUSet: cgroup.V1}}
	policy := func(file, from, to string) Change {
		return Change{Kind: KindSched, Controller: cgroup.CPU, Path: "/a", File: file, From: from, To: to}
	}
	cpus := func(from, to string) Change {
		return Change{Kind: KindFile, Controller: cgroup.CPUSet, Path: "/a", File: cgroup.FileCPUs, From: from, To: to}
	}
	for _, tc := range []struct {
		all  []Change
		want string
	}{
		{[]Change{policy(schedpolicy.File(7), "other", "rr 1"), policy(schedpolicy.Rest, "other", "rr 1"),
			cpus("0-3", "3")}, "[cpuset.cpus threads thread/7]"},
		{[]Change{policy(schedpolicy.Rest, "rr 1", "other"), policy(schedpolicy.File(7), "rr 1", "other"),
			cpus("3", "0-3")}, "[thread/7 threads cpuset.cpus]"},
		{[]Change{policy(schedpolicy.File(7), "rr 1", "rr 1"), policy(schedpolicy.File(8), "other", "nonsense")}, "[thread/8]"},
	} {
		steps, err := Order(s, tc.all)
		if err != nil {
			t.Fatal(err)
		}
		var files []string
		for _, c := range steps {
			files = append(files, c.File)
		}
		if got := fmt.Sprint(files); got != tc.want {
			t.Errorf("%s, want %s", got, tc.want)
		}
	}
}
