package change

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/irq"
	"github.com/unthrottle/unthrottle/internal/kernel/systemd/unitprop"
	"github.com/unthrottle/unthrottle/topology"
)

// IsList tells whether a file or property holds a kernel list such as "0-3,8".
func IsList(file string) bool {
	switch file {
	case cgroup.FileCPUs, cgroup.FileMems, unitprop.AllowedCPUs, unitprop.AllowedMemoryNodes:
		return true
	}
	return irq.IsFile(file)
}

// Canonical is the one spelling of a value, so that equal settings compare equal: lists as the kernel prints them,
// every negative v1 quota as -1, single blanks. A value that cannot be read as what it should be stays as it is.
func Canonical(file, value string) string {
	value = strings.Join(strings.Fields(value), " ")
	if IsList(file) {
		if set, err := topology.ParseList(value); err == nil {
			return set.String()
		}
		return value
	}
	limits := cgroup.LimitFiles(cgroup.V1)
	if file == limits[0] && strings.HasPrefix(value, "-") {
		return "-1"
	}
	return value
}

// Same tells whether two values of a file are one setting.
func Same(file, a, b string) bool { return a == b || Canonical(file, a) == Canonical(file, b) }

// Hold is what one transaction does to a setting.
type Hold struct {
	Op Op
	To string
}

// Fold is the value of a setting: the original with what its holders do to it, in the order they came; what came before
// the last that sets it counts no more. base is what an empty original list stands for (v2: what it inherits); CPUs are
// taken out of that. A fold that would leave no CPU is an error, because on v2 an empty list would mean all of the
// parent's.
func Fold(file, original, base string, holds []Hold) (string, error) {
	value := original
	for i, h := range slices.Backward(holds) {
		if h.Op == OpSet || h.Op == "" {
			holds = holds[i:]
			break
		}
	}
	for _, h := range holds {
		switch h.Op {
		case OpSet, "":
			value = h.To
		case OpRemoveCPUs:
			less, err := without(file, value, base, h.To)
			if err != nil {
				return "", err
			}
			value = less
		case OpAddCPUs:
			more, err := with(file, value, h.To)
			if err != nil {
				return "", err
			}
			value = more
		default:
			return "", fmt.Errorf("unknown operation %q", h.Op)
		}
	}
	return value, nil
}

func without(file, value, base, remove string) (string, error) {
	if !IsList(file) {
		return "", fmt.Errorf("%s: CPUs can be taken out of a list only", file)
	}
	if strings.TrimSpace(value) == "" {
		value = base
	}
	set, err := topology.ParseList(value)
	if err != nil {
		return "", err
	}
	out, err := topology.ParseList(remove)
	if err != nil {
		return "", err
	}
	left := set.Difference(out)
	if left.IsEmpty() && !set.IsEmpty() {
		return "", fmt.Errorf("%s: taking %s out of %s would leave nothing", file, out, set)
	}
	return left.String(), nil
}

func with(file, value, add string) (string, error) {
	if !IsList(file) {
		return "", fmt.Errorf("%s: CPUs can be put into a list only", file)
	}
	set, err := topology.ParseList(value)
	if err != nil || set.IsEmpty() {
		return value, err
	}
	more, err := topology.ParseList(add)
	return set.Union(more).String(), err
}

// Halfway tells of a value that a setting has in the middle of a write: a cgroup that was idle and is to get a weight
// has the default one in between (cgroup.WriteWeight).
func Halfway(file, before, value string) bool {
	return before == cgroup.WeightIdle && value != "" && value == cgroup.DefaultWeightText(file)
}

// union is the list that holds both; an empty list on v2 stands for all that can be had, and wins.
func union(v cgroup.Version, a, b cpuset.CPUSet) cpuset.CPUSet {
	if v == cgroup.V2 && (a.IsEmpty() || b.IsEmpty()) {
		return cpuset.New()
	}
	return a.Union(b)
}
