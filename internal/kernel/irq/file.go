package irq

import (
	"fmt"
	"path"
	"strconv"
	"strings"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/topology"
)

// Default is the file with the CPUs of interrupts that are requested later.
const Default = "default_smp_affinity"

const affinityList = "smp_affinity_list"

// File returns the file of interrupt n's CPUs, relative to /proc/irq.
func File(n int) string { return strconv.Itoa(n) + "/" + affinityList }

// IsFile reports whether a name is Default or one that File makes. The package opens no other file below /proc/irq.
func IsFile(name string) bool {
	if name == Default {
		return true
	}
	dir, file := path.Split(name)
	n, ok := Number(strings.TrimSuffix(dir, "/"))
	return ok && file == affinityList && name == File(n)
}

// Number reads an interrupt's number as the kernel spells it.
func Number(text string) (int, bool) {
	n, err := strconv.ParseUint(text, 10, 31)
	return int(n), err == nil && strconv.FormatUint(n, 10) == text
}

// FormatMask writes a mask that topology.ParseMask reads.
func FormatMask(set cpuset.CPUSet) string {
	words := []uint32{0}
	for _, id := range set.List() {
		for len(words) <= id/32 {
			words = append(words, 0)
		}
		words[id/32] |= 1 << (id % 32)
	}
	var b strings.Builder
	for i := len(words) - 1; i >= 0; i-- {
		if i == len(words)-1 {
			fmt.Fprintf(&b, "%x", words[i])
			continue
		}
		fmt.Fprintf(&b, ",%08x", words[i])
	}
	return b.String()
}

// List reads the text of a file as CPUs.
func List(name, text string) (cpuset.CPUSet, error) {
	if name == Default {
		return topology.ParseMask(text)
	}
	return topology.ParseList(strings.TrimSpace(text))
}
