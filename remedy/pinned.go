package remedy

import (
	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/apply"
)

// Pinned are the CPUs that a transaction in force gives to its target alone;
// false: it is no pin.
func Pinned(h apply.InForce) (cpuset.CPUSet, bool) { return Pinned(h) }
