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
	n, ok := number(strings.TrimSuffix(dir, "/"))
	return ok && file == affinityList && name == File(n)
}

// number reads an interrupt's number in the kernel's form.
func number(text string) (int, bool) {
	n, err := strconv.ParseUint(text, 10, 31)
	return int(n), err == nil && strconv.FormatUint(n, 10) == text
}

// formatMask writes a mask that topology.ParseMask reads.
func formatMask(set cpuset.CPUSet) string {
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

// list reads the text of a file as CPUs.
func list(name, text string) (cpuset.CPUSet, error) {
	if name == Default {
		return topology.ParseMask(text)
	}
	return topology.ParseList(strings.TrimSpace(text))
}
